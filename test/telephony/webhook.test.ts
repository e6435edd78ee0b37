/** What the log says of a webhook that cannot be reached. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import type { Line } from "../../src/telephony/line.js";
import type { LineMessage } from "../../src/telephony/line-message.js";
import { Webhook } from "../../src/telephony/webhook.js";

it("the log says why a webhook was not delivered, and of which session", async () => {
  const noted: unknown[] = [];
  const note = (_: string, fields?: object) => noted.push(fields);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const webhook = { url: `http://127.0.0.1:${port}/`, secret: "a webhook's secret", attempts: 1, timeoutSeconds: 5 };
  const line = { name: "line", webhook } as Line;
  const sender = new Webhook(line, { info: note, warn: note, error() {} });
  const context = { gkSessionId: { value: "its-session" } };
  sender.send({ callId: "1" }, { context, type: "result", party: "caller" } as LineMessage);
  await sender.delivered();
  // No session could be opened.
  sender.send({ callId: "2" }, { type: "failed", status: "BUSY", reason: "too many calls" });
  await sender.delivered();
  expect(noted).toEqual([
    { line: "line", session: "its-session", reason: "connection refused" },
    { line: "line", reason: "connection refused" },
  ]);
});
