// The page in a real browser: its download size, and the time until recording is possible, from a warm cache.
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { serveFolder } from "../dist/server/http/static-files.js";
import { atMost, median } from "./measure.mjs";

const site = fileURLToPath(new URL("../dist/page", import.meta.url));
const visits = 9;

export default async function page() {
  const sizes = readdirSync(site, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => ({
      name,
      bytes: gzipSync(readFileSync(join(parentPath, name)), { level: 9 }).length,
    }));
  const total = (files) => files.reduce((sum, { bytes }) => sum + bytes, 0);
  const model = total(sizes.filter(({ name }) => name.endsWith(".vvm")));
  const { record, ready } = await visited();
  const times = (values) => `${values.map((ms) => Math.round(ms)).join(", ")} ms`;
  return [
    atMost("page, gzip: all", "8 MB", total(sizes) / 1e6, 8, "", " MB"),
    atMost(
      "page, gzip: to show it and record",
      "500 kB",
      (total(sizes) - model) / 1e3,
      500,
      "all but the model",
      " kB",
    ),
    atMost("page, warm cache: ready to record", "1 s", median(record) / 1e3, 1, times(record), " s"),
    atMost("page, warm cache: voice model ready", "the same", median(ready) / 1e3, 1, times(ready), " s"),
  ];
}

/** Milliseconds from the start of a visit until the record button works, and until the model is loaded. */
async function visited() {
  const files = serveFolder(site);
  const server = createServer(async (incoming, outgoing) => {
    const headers = { "accept-encoding": String(incoming.headers["accept-encoding"] ?? "") };
    const response =
      files(new Request(`http://page${incoming.url}`, { headers })) ?? new Response(null, { status: 404 });
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(Buffer.from(await response.arrayBuffer()));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu"],
  });
  try {
    const context = await browser.newContext();
    await context.addInitScript(() => {
      const seen = {};
      globalThis.seen = seen;
      const watch = () => {
        if (document.querySelector(".ring-button")) seen.record ??= performance.now();
        if (document.querySelector('.model[data-state="ready"]')) seen.ready ??= performance.now();
      };
      new MutationObserver(watch).observe(document, { subtree: true, childList: true, attributes: true });
    });
    const record = [];
    const ready = [];
    for (let visit = 0; visit <= visits; visit++) {
      const tab = await context.newPage();
      await tab.goto(`http://127.0.0.1:${server.address().port}/`);
      await tab.waitForFunction(() => globalThis.seen.ready !== undefined, undefined, { timeout: 60_000 });
      const seen = await tab.evaluate(() => globalThis.seen);
      // The first visit fills the caches: files, model, compiled kernels.
      if (visit > 0) {
        record.push(seen.record);
        ready.push(seen.ready);
      } else await tab.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
      await tab.close();
    }
    return { record, ready };
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}
