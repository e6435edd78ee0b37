/** A box without tokens on a developer's machine, and web pages open on that machine. */
import { once } from "node:events";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { localCallersOnly } from "../../src/server/http/local-callers.js";
import type { Service } from "../../src/server/service.js";
import { LIVE_PATH, LIVE_PROTOCOL } from "../../src/server/websocket/live-socket.js";
import { rehearse } from "./rehearsal.js";

let service: Service;
beforeAll(async () => {
  ({ service } = rehearse({}, { auth: { required: false }, limits: { headerSeconds: 1 } }));
  await service.listen();
});
afterAll(() => service.stop());

function post(headers: Record<string, string>, url = service.url): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = http.request(`${url}/v1/sessions/start`, { method: "POST", headers }, (response) => {
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
  for (const host of ["localhost:1", "LOCALHOST", "127.1.2.3", "[::1]:8080"]) expect(await post({ host })).toBe(200);
  for (const host of ["localhost.evil.example", "evil.example", "127.0.0.1.evil.example", "voice.example"])
    expect(await post({ host })).toBe(403);
});

test("over WebSocket, the same pages are served as over HTTP", async () => {
  const connected = (headers: Record<string, string>) =>
    new Promise<number>((resolve) => {
      const socket = new WebSocket(service.url.replace("http", "ws") + LIVE_PATH, [LIVE_PROTOCOL], { headers });
      socket.once("open", () => resolve(101));
      socket.once("unexpected-response", (_, { statusCode }) => resolve(statusCode!));
      socket.once("open", () => socket.terminate());
      socket.on("error", () => {});
    });
  for (const origin of [service.url, "http://localhost:3000", "http://127.0.0.1:3000", "http://[::1]:3000"])
    expect([origin, await connected({ origin })]).toEqual([origin, 101]);
  expect(await connected({})).toBe(101);
  for (const origin of [
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
  ])
    expect([origin, await connected({ origin })]).toEqual([origin, 403]);
  // A name that was pointed to this machine: the page of that name, and a page on this machine.
  for (const origin of ["http://evil.example:8080", "http://localhost:3000"])
    expect(await connected({ host: "evil.example:8080", origin })).toBe(403);
});

test.each(["http", "https"])("behind a proxy, a box is also called by its %s address", async (scheme) => {
  const own = `${scheme}://voice.example`;
  const listed = "https://app.example";
  const server = http.createServer(
    localCallersOnly(
      (_, response) => void response.end(),
      () => own,
      [listed],
    ),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const host = "voice.example";
  for (const headers of [{ host }, { host, origin: own }, { host, origin: listed }])
    expect(await post(headers, url)).toBe(200);
  for (const headers of [{ host: "voice.example:81" }, { host, origin: `${own}:81` }, { origin: "voice.example" }])
    expect(await post(headers, url)).toBe(403);
  server.close();
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
