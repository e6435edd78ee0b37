/** The errors that callers get when something below an operation fails. */
import { expect, test } from "vitest";
import { StatusCode } from "../../src/contract/index.js";
import { EngineError } from "../../src/engine/engine-error.js";
import { failureOf } from "../../src/processor/failures.js";
import { StoreError } from "../../src/store/errors.js";

const errorOf = (message: string, code?: string) => Object.assign(new Error(message), code ? { code } : {});

test("a database that does not answer: BUSY, with a retry delay", () => {
  const error = new StoreError("unavailable", "the database does not answer");
  const failure = failureOf(error);
  expect(failure.code).toBe(StatusCode.BUSY);
  expect(failure.status.retryAfter?.seconds).toBe(5n);
  expect(failure.cause).toBe(error);
});

test.each([
  ["an engine that cannot start its workers", new EngineError("NO_WORKERS", "no threads left"), 5],
  ["a full queue that names a delay", Object.assign(errorOf("full", "QUEUE_FULL"), { retryAfterMs: 2500 }), 2.5],
  ["a full queue that names none", errorOf("full", "QUEUE_FULL"), 1],
  ["a record that others keep changing", errorOf("changed too often", "contended"), 1],
  ["too many open files", errorOf("accept EMFILE", "EMFILE"), 5],
  ["too many open files in the system", errorOf("accept ENFILE", "ENFILE"), 5],
  ["too many processes", errorOf("spawn EAGAIN", "EAGAIN"), 5],
])("%s: BUSY, with a retry delay", (_, error, seconds) => {
  const { code, status } = failureOf(error);
  expect(code).toBe(StatusCode.BUSY);
  expect(Number(status.retryAfter!.seconds) + status.retryAfter!.nanos / 1e9).toBe(seconds);
});

test("a call that took too long, in the engine or elsewhere: DEADLINE_EXCEEDED", () => {
  for (const late of [new EngineError("TIMEOUT", "late"), new DOMException("late", "TimeoutError")])
    expect(failureOf(late).code).toBe(StatusCode.DEADLINE_EXCEEDED);
});

test("a full disk is reported; other internal details are not", () => {
  for (const code of ["53100", "ENOSPC"]) {
    const full = failureOf(errorOf("could not extend file: No space left on device", code));
    expect([full.code, full.status.message]).toEqual([StatusCode.INTERNAL_ERROR, "the disk is full; free some space"]);
  }
  const cleared = "the browser closed the store, because its data was cleared; reload the page";
  for (const closed of [new StoreError("closed", cleared), new EngineError("CLOSED", "the engine is closed")])
    expect(failureOf(closed).status).toMatchObject({ statusCode: StatusCode.INTERNAL_ERROR, message: closed.message });
  for (const code of ["key-lost", "wrong-key"])
    expect(failureOf(errorOf('the key of "bank" is lost', code)).status.message).toBe('the key of "bank" is lost');
  const browser = new StoreError("disk-full", "the browser's storage for this page is full");
  expect(failureOf(browser).status.message).toBe("the browser's storage for this page is full");
  const other = failureOf(errorOf('duplicate key value "alice"', "23505"));
  const text = failureOf("out of order");
  for (const { status } of [other, text])
    expect(status.message).toBe("internal error; search the log for the request id");
});
