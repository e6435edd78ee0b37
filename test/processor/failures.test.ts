/** The errors that callers get when something below an operation fails. */
import { expect, test } from "vitest";
import { StatusCode } from "../../src/contract/index.js";
import { EngineError } from "../../src/engine/engine-error.js";
import { asStatusError } from "../../src/processor/failures.js";

const errorOf = (message: string, code?: string) => Object.assign(new Error(message), code ? { code } : {});

test.each([
  ["refuses connections", errorOf("connect ECONNREFUSED 127.0.0.1:5432", "ECONNREFUSED")],
  ["is being stopped", errorOf("terminating connection due to administrator command", "57P01")],
  ["is starting", errorOf("the database system is starting up", "57P03")],
  ["closes the connection", errorOf("Connection terminated unexpectedly")],
  ["closed the connection before", errorOf("Client has encountered a connection error and is not queryable")],
])("a PostgreSQL that %s: BUSY, with a retry delay", (_, error) => {
  const failure = asStatusError(error);
  expect(failure.code).toBe(StatusCode.BUSY);
  expect(failure.status.retryAfter?.seconds).toBe(5n);
  expect(failure.cause).toBe(error);
});

test("an engine that cannot start its workers: BUSY, with a retry delay", () => {
  const failure = asStatusError(new EngineError("NO_WORKERS", "no worker can be started: no threads left"));
  expect(failure.code).toBe(StatusCode.BUSY);
  expect(failure.status.retryAfter?.seconds).toBe(5n);
});

test("a full disk is reported; other internal details are not", () => {
  const full = asStatusError(errorOf("could not extend file: No space left on device", "53100"));
  expect([full.code, full.status.message]).toEqual([StatusCode.INTERNAL_ERROR, "the server's disk is full"]);
  const other = asStatusError(errorOf('duplicate key value "alice"', "23505"));
  expect(other.status.message).toBe("internal error; search the log for the request id");
});
