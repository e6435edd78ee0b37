/** What a single call must not do to the box. */
import { expect, it } from "vitest";
import { Call, type CallParts } from "../../src/telephony/call.js";
import { DialectSession, type Received } from "../../src/telephony/port.js";

class BrokenSession extends DialectSession {
  receive(): Received {
    throw new TypeError("a mistake in a dialect");
  }
}

it("a mistake in a dialect ends its call and is logged, and nothing is thrown into the connection", () => {
  const failures: (string | undefined)[] = [];
  const log = { info() {}, warn() {}, error: (_: string, fields?: { stack?: string }) => failures.push(fields?.stack) };
  let isClosed = false;
  const socket = {
    send() {},
    close: () => {
      isClosed = true;
    },
    flow: null,
  };
  const parts = { line: { name: "broken" }, log } as unknown as CallParts;
  const call = new Call(parts, new BrokenSession(), socket, () => {});
  call.receive("frame");
  expect(isClosed).toBe(true);
  expect(failures).toEqual([expect.stringContaining("a mistake in a dialect")]);
});
