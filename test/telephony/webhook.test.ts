/** Webhooks that cannot be reached, and those of a box that stops. */
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
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

it.each([1, 4])("after a stop, with %i attempts, what is not delivered is sent once more", async (attempts) => {
  const heard: string[] = [];
  let isBusy = true;
  const receiver = createHttpServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    heard.push(JSON.parse(body).call.callId);
    if (!isBusy) response.end();
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const webhook = { url, secret: "a webhook's secret", attempts, timeoutSeconds: 60 };
  const noted: string[] = [];
  const note = (message: string) => noted.push(message);
  const sender = new Webhook({ name: "line", webhook } as Line, { info: note, warn: note, error() {} });
  sender.send({ callId: "running" }, { type: "result" } as LineMessage);
  while (heard.length < 1) await new Promise((resume) => setTimeout(resume, 10));
  isBusy = false;
  sender.stop();
  sender.send({ callId: "late" }, { type: "result" } as LineMessage);
  await sender.delivered();
  expect(heard.sort()).toEqual(["late", "running", "running"]);
  expect(noted).toEqual([]);
  receiver.closeAllConnections();
  receiver.close();
  await once(receiver, "close");
  sender.send({ callId: "lost" }, { type: "result" } as LineMessage);
  await sender.delivered();
  expect(noted).toEqual(["a webhook was not delivered"]);
});
