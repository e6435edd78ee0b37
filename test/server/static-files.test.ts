/** Public files over real connections: a file is in memory once, however many clients request it and do not read. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { servePage } from "../../src/server/http/page.js";
import { serveFolder } from "../../src/server/http/static-files.js";

const MODEL_BYTES = 8 * 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), "vivavoce-static-"));
const model = Buffer.from(Uint8Array.from({ length: MODEL_BYTES }, (_, i) => (i * 7) & 255));
let server: http.Server;
let port: number;

beforeAll(async () => {
  mkdirSync(join(folder, "models"));
  writeFileSync(join(folder, "models", "m.vvm"), model);
  const page = serveFolder(folder);
  server = http.createServer(getRequestListener((request) => page(request) ?? new Response(null, { status: 404 })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

test("GET returns every byte of a model, HEAD only the headers", async () => {
  const url = `http://127.0.0.1:${port}/models/m.vvm`;
  const got = await fetch(url);
  expect(Buffer.from(await got.arrayBuffer()).equals(model)).toBe(true);
  const head = await fetch(url, { method: "HEAD" });
  expect(head.headers.get("content-length")).toBe(String(MODEL_BYTES));
  expect(head.headers.get("etag")).toBe(got.headers.get("etag"));
  const again = await fetch(url, { headers: { "if-none-match": got.headers.get("etag")! } });
  expect(again.status).toBe(304);
});

test("two hundred callers that do not read share one copy", async () => {
  await (await fetch(`http://127.0.0.1:${port}/models/m.vvm`)).arrayBuffer();
  const before = process.memoryUsage().rss;
  const sockets = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const socket = net.connect(port, "127.0.0.1");
      socket.write("GET /models/m.vvm HTTP/1.1\r\nhost: box\r\n\r\n");
      await new Promise<void>((resolve) =>
        socket.once("data", () => {
          socket.pause();
          resolve();
        }),
      );
      return socket;
    }),
  );
  const grown = process.memoryUsage().rss - before;
  for (const socket of sockets) socket.destroy();
  // A copy for each would be 1,600 MB. Both ends of the connections are in this process.
  expect(grown).toBeLessThan(200 * 1024 * 1024);
});

test("the page of a folder is served at /, and there is none if the folder is missing", async () => {
  const pages = join(folder, "pages");
  mkdirSync(pages);
  writeFileSync(join(pages, "index.html"), "<html><head></head>voices</html>");
  const page = await servePage(pages);
  expect(await page!(new Request("http://box/"))!.text()).toBe("<html><head></head>voices</html>");
  expect(await page!(new Request("http://box/index.html"))!.text()).toContain("voices");
  expect(await servePage(join(folder, "missing"))).toBeNull();
});
