/** A box without tokens on a developer's machine, and web pages open on that machine. */
import http from "node:http";
import net from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../src/server/service.js";
import { rehearse } from "./rehearsal.js";

let service: Service;
beforeAll(async () => {
  ({ service } = rehearse({}, { auth: { required: false }, limits: { headerSeconds: 1 } }));
  await service.listen();
});
afterAll(() => service.stop());

function post(headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${service.url}/v1/sessions/start`, { method: "POST", headers }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    request.once("error", reject);
    request.end('{"context":{"gk_scope_id":{"value":"default"}}}');
  });
}

test("programs and pages on this machine are served", async () => {
  expect(await post({ "content-type": "application/json" })).toBe(200);
  expect(await post({ origin: "http://localhost:3000" })).toBe(200);
  expect(await post({ origin: service.url })).toBe(200);
});

test("a page of another origin is refused, also without a preflight request", async () => {
  expect(await post({ origin: "https://evil.example" })).toBe(403);
  expect(await post({ origin: "null" })).toBe(403);
});

test("a foreign host name that resolves to this machine is refused", async () => {
  expect(await post({ host: "evil.example:8080" })).toBe(403);
});

test("a client that sends only the beginning of HTTP/2 is disconnected as early as one that sends nothing", async () => {
  const socket = net.connect(Number(new URL(service.url).port), "127.0.0.1");
  socket.write("PRI");
  const closed = await new Promise<boolean>((resolve) => {
    socket.once("close", () => resolve(true));
    setTimeout(() => resolve(false), 20_000).unref();
  });
  expect(closed).toBe(true);
}, 30_000);
