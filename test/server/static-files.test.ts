/** Public files over real connections: a file is in memory once, however many clients request it and do not read. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { getRequestListener } from "@hono/node-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describedModel } from "../../src/engine/model-file.js";
import { type Page, servePage } from "../../src/server/http/page.js";
import { serveFolder } from "../../src/server/http/static-files.js";
import { plainCalibration, randomModel } from "../engine/random-model.js";

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

test("text is compressed for whoever accepts that, a model never", async () => {
  writeFileSync(join(folder, "page.js"), "1;".repeat(1000));
  const page = serveFolder(folder);
  const get = (path: string, accepted?: string, method = "GET") =>
    page(new Request(`http://box${path}`, { method, headers: accepted ? { "accept-encoding": accepted } : {} }))!;
  const zipped = get("/page.js", "br, gzip");
  expect(zipped.headers.get("content-encoding")).toBe("gzip");
  expect(gunzipSync(await zipped.arrayBuffer()).toString()).toBe("1;".repeat(1000));
  expect(Number(zipped.headers.get("content-length"))).toBeLessThan(200);
  for (const accepted of [undefined, "br", "gzipped", "gzip;q=0", "br, gzip; q=0.00, identity"]) {
    const plain = get("/page.js", accepted);
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(await plain.text()).toHaveLength(2000);
  }
  for (const accepted of ["GZIP", "gzip;q=0.1", "identity;q=0, gzip;q=1"])
    expect(get("/page.js", accepted).headers.get("content-encoding")).toBe("gzip");
  expect(get("/models/m.vvm", "gzip").headers.get("content-encoding")).toBeNull();
  const head = get("/page.js", "gzip", "HEAD");
  expect([head.headers.get("content-length"), await head.text()]).toEqual([zipped.headers.get("content-length"), ""]);
});

test("a file is read once; what replaces it is served after the next start", async () => {
  const [path, empty] = [join(folder, "once.html"), join(folder, "empty.css")];
  writeFileSync(path, "first");
  writeFileSync(empty, "");
  const page = serveFolder(folder);
  const get = (name: string) => page(new Request(`http://box/${name}`))!;
  const first = get("once.html");
  writeFileSync(path, "second");
  const again = get("once.html");
  expect([await first.text(), await again.text()]).toEqual(["first", "first"]);
  expect(again.headers.get("etag")).toBe(first.headers.get("etag"));
  expect(await serveFolder(folder)(new Request("http://box/once.html"))!.text()).toBe("second");
  const nothing = get("empty.css");
  expect([nothing.headers.get("content-length"), await nothing.text()]).toEqual(["0", ""]);
});

describe("a page with a model of its own", () => {
  const own = join(folder, "own");
  const html = (name: string) => `<html><head><meta name="vivavoce-model" content="${name}" /></head></html>`;
  const file = randomModel();
  const calibrationOf = (modelRevision: string) =>
    Buffer.from(
      JSON.stringify({ format: "vivavoce-calibration", version: 1, modelRevision, calibration: plainCalibration }),
    );
  const textAt = async (page: Page | null, path: string) =>
    (await page!(new Request(`http://box${path}`))!.text()) as string;
  beforeAll(() => {
    mkdirSync(own);
    writeFileSync(join(own, "own.vvm"), file);
    writeFileSync(join(own, "other.html"), html("own.vvm"));
    writeFileSync(join(own, "index.html"), html("own.vvm"));
  });

  test("is served with the calibration of the box in its first file only", async () => {
    const calibration = calibrationOf(describedModel(file).revision);
    const page = await servePage(own, calibration);
    const written = `<meta name="vivavoce-calibration" content="data:application/json;base64,${calibration.toString("base64")}" />`;
    for (const path of ["/", "/index.html"]) expect(await textAt(page, path)).toContain(`${written}\n  </head>`);
    expect(await textAt(page, "/other.html")).toBe(html("own.vvm"));
    expect(await textAt(await servePage(own), "/")).toBe(html("own.vvm"));
  });

  test("refuses a calibration that was made for another model", async () => {
    await expect(servePage(own, calibrationOf("0".repeat(64)))).rejects.toMatchObject({ code: "BAD_CALIBRATION" });
  });
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

describe("parts of a model", () => {
  const url = () => `http://127.0.0.1:${port}/models/m.vvm`;
  const part = (range: string, headers = {}) => fetch(url(), { headers: { range, ...headers } });

  test.each([
    ["bytes=0-1048575", 0, 1_048_576],
    ["bytes=1048576-1048576", 1_048_576, 1_048_577],
    ["bytes=8388600-", 8_388_600, MODEL_BYTES],
    ["bytes=8388600-99999999", 8_388_600, MODEL_BYTES],
    ["bytes=-100", MODEL_BYTES - 100, MODEL_BYTES],
  ])("%s", async (range, from, end) => {
    const got = await part(range);
    expect([got.status, got.headers.get("content-range")]).toEqual([206, `bytes ${from}-${end - 1}/${MODEL_BYTES}`]);
    expect(got.headers.get("content-length")).toBe(String(end - from));
    expect(Buffer.from(await got.arrayBuffer()).equals(model.subarray(from, end))).toBe(true);
  });

  test("that do not exist are refused; what is not one part, or of another version, is sent as a whole", async () => {
    for (const range of [`bytes=${MODEL_BYTES}-`, "bytes=-0", "bytes=99999999-999999999"]) {
      const refused = await part(range);
      expect([refused.status, refused.headers.get("content-range")]).toEqual([416, `bytes */${MODEL_BYTES}`]);
    }
    const { headers } = await fetch(url(), { method: "HEAD" });
    expect(headers.get("accept-ranges")).toBe("bytes");
    expect((await part("bytes=0-0", { "if-range": headers.get("etag")! })).status).toBe(206);
    for (const [range, ifRange] of [
      ["bytes=0-0", '"another"'],
      ["bytes=0-1,5-6", null],
      ["bytes=5-4", null],
      ["bytes=-", null],
      ["items=0-1", null],
    ] as const) {
      const got = await part(range, ifRange ? { "if-range": ifRange } : {});
      expect([got.status, (await got.arrayBuffer()).byteLength]).toEqual([200, MODEL_BYTES]);
    }
  });

  test("are sent as often as somebody asks, the whole file 60 times at once", async () => {
    const page = serveFolder(folder);
    const get = (headers = {}, method = "GET") => page(new Request("http://box/models/m.vvm", { method, headers }))!;
    for (let i = 0; i < 60; i++) expect(get(i % 2 ? { range: "bytes=0-1048576" } : {}).status).toBe(i % 2 ? 206 : 200);
    for (const headers of [{}, { range: "bytes=0-1048576" }, { range: "bytes=1-" }]) {
      const refused = get(headers);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
      expect(await refused.text()).toContain("load it in parts of 1048576 bytes");
    }
    for (let i = 0; i < 100; i++) expect(get({ range: "bytes=0-1048575" }).status).toBe(206);
    expect(get({}, "HEAD").status).toBe(200);
    expect(page(new Request("http://box/page.js"))!.status).toBe(200);
  });
});

test("fifty callers that do not read share one copy", async () => {
  await (await fetch(`http://127.0.0.1:${port}/models/m.vvm`)).arrayBuffer();
  const before = process.memoryUsage().rss;
  const sockets = await Promise.all(
    Array.from({ length: 50 }, async () => {
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
  // A copy for each would be 400 MB. Both ends of the connections are in this process.
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
