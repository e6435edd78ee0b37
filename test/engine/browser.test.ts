import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openEngine } from "../../dist/engine/index.js";
import { accurateModel, shippedModel } from "../../src/engine/shipped-model.js";
import { launch } from "../chromium.js";
import { utter } from "../voice.js";
import { randomModel } from "./random-model.js";

const model = randomModel({ attacks: ["synthetic", "playback"] });
/** One of each network that the engine runs. */
const shipped = [shippedModel, accurateModel];
const modelFile = (name: string) => readFileSync(new URL(`../../models/${name}`, import.meta.url));
/** In 16 bits, so that the last bit of the host's sine does not matter. */
const rounded = (samples: Float32Array) => samples.map((value) => Math.round(value * 32768) / 32768);
const anna = rounded(utter({ speaker: 1, seconds: 9, rateHz: 16_000 }).samples);
const bert = rounded(utter({ speaker: 2, seconds: 5, rateHz: 44_100 }).samples);

/**
 * Hashes of measures, windows, embeddings, template, scores and attack checks. Made once with Node; any engine on any machine
 * must give the same. They change only with the kernels: then name the kernel and the reason in the commit.
 */
const golden = {
  anna: "221a2306255b5fdf01d80287b4614659",
  bert: "f66970ead39054c39e063695f19396a8",
  template: "196635d801ed6f900ea5c36d6c37a7c1",
  scores: "4e5bcb00541248f41661e3018f548551",
  attacks: "dd0b595ff1c59daa1cf6d45ec851dcac",
};

/** Runs both in Node and in the page: uses only its arguments. */
async function pass(
  open: typeof openEngine,
  workers: number,
  modelBytes: Uint8Array,
  voices: { a: Float32Array; b: Float32Array },
) {
  const engine = await open({ workers, model: modelBytes });
  try {
    const one = await engine.analyze(voices.a.slice(), 16_000);
    const other = await engine.analyze(voices.b.slice(), 44_100);
    const voiceOf = (analysis: typeof one) => ({ embedding: analysis.embedding!, ...analysis.measures });
    const segments = one.windows.map((window) => ({
      ...voiceOf(one),
      embedding: window.embedding,
      netSpeechSeconds: window.speechSeconds,
    }));
    const { template, segments: told } = await engine.train(segments);
    const [foreign] = await engine.score([template!], voiceOf(other));
    const [own] = await engine.score([template!], voiceOf(one));
    const scores = [foreign, own, engine.threshold(0.003, foreign!)];
    const attacks = [
      await engine.attack("synthetic", voices.a.slice(), 16_000),
      await engine.attack("playback", voices.b.slice(), 44_100),
    ];
    // Numbers as their shortest exact text: equal text means equal bits.
    const text = (value: unknown) =>
      JSON.stringify(value, (_, part) => (part instanceof Float32Array ? Array.from(part) : part));
    return {
      anna: text(one),
      bert: text(other),
      template: text([template, told]),
      scores: text(scores),
      attacks: text(attacks),
    };
  } finally {
    await engine.close();
  }
}

function hashed(texts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, createHash("sha256").update(text).digest("hex").slice(0, 32)]),
  );
}

/** What the page puts on its window. */
interface Window {
  readonly vivavoce: { readonly openEngine: typeof openEngine };
}

let server: Server;
let browser: Browser;
let page: Page;
let origin: string;
const requested: string[] = [];

beforeAll(async () => {
  const types: Record<string, string> = { js: "text/javascript", wasm: "application/wasm", html: "text/html" };
  const bytesOf = (samples: Float32Array) => Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  const made: Record<string, Uint8Array | string> = {
    "/": `<!doctype html><title>vivavoce</title>
      <script type="module">import * as vivavoce from "/bundle/vivavoce.js"; window.vivavoce = vivavoce;</script>`,
    "/anna": bytesOf(anna),
    "/bert": bytesOf(bert),
    "/bundle/vivavoce.vvm": model,
    ...Object.fromEntries(shipped.map((name) => [`/${name}`, modelFile(name)])),
  };
  server = createServer((request, response) => {
    const path = new URL(request.url!, "http://x").pathname;
    requested.push(path);
    const extension = path.split(".").pop()!;
    try {
      const body =
        made[path] ?? readFileSync(new URL(`../../dist/browser/${path.replace("/bundle/", "")}`, import.meta.url));
      response.writeHead(200, {
        "content-type": path === "/" ? "text/html" : (types[extension] ?? "application/octet-stream"),
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await launch();
  page = await browser.newPage();
  await page.goto(origin);
  await page.waitForFunction(() => "vivavoce" in window);
});
afterAll(async () => {
  await browser?.close();
  server?.close();
});

async function inPage(workers: number, source: string, modelPath = "/bundle/vivavoce.vvm") {
  return page.evaluate(
    async ({ workers, source, modelPath }) => {
      const { openEngine } = (window as never as Window).vivavoce;
      const floats = async (path: string) => new Float32Array(await (await fetch(path)).arrayBuffer());
      const modelBytes = new Uint8Array(await (await fetch(modelPath)).arrayBuffer());
      const pass = new Function(`return (${source})`)();
      return pass(openEngine, workers, modelBytes, { a: await floats("/anna"), b: await floats("/bert") });
    },
    { workers, source, modelPath },
  ) as Promise<Record<string, string>>;
}

describe("the same bits everywhere", () => {
  test("Node, in the calling thread", async () => {
    expect(hashed(await pass(openEngine, 0, model, { a: anna, b: bert }))).toEqual(golden);
  });
  test("Node, in workers", async () => {
    expect(hashed(await pass(openEngine, 2, model, { a: anna, b: bert }))).toEqual(golden);
  });
  test("Chromium, in the page", async () => {
    expect(hashed(await inPage(0, pass.toString()))).toEqual(golden);
  });
  test("Chromium, in workers", async () => {
    expect(hashed(await inPage(2, pass.toString()))).toEqual(golden);
  });
  // test/nn/golden.test.ts compares Node's results with golden embeddings.
  test.each(shipped)(
    "%s in Chromium, in the page and in workers, as in Node",
    async (name) => {
      const inNode = hashed(await pass(openEngine, 0, modelFile(name), { a: anna, b: bert }));
      expect(hashed(await inPage(0, pass.toString(), `/${name}`))).toEqual(inNode);
      expect(hashed(await inPage(2, pass.toString(), `/${name}`))).toEqual(inNode);
    },
    120_000,
  );
});

describe("in a browser", () => {
  test("kernels, worker and model are found beside the bundle without configuration", async () => {
    requested.length = 0;
    const id = await page.evaluate(async () => {
      const { openEngine } = (window as never as Window).vivavoce;
      const engine = await openEngine();
      const { calibrationModelId } = engine.model;
      await engine.close();
      return calibrationModelId as string;
    });
    expect(id).toBe("random-1");
    const bundle = requested.filter((path) => path.startsWith("/bundle/"));
    expect(new Set(bundle)).toEqual(new Set(["/bundle/vivavoce.wasm", "/bundle/vivavoce.vvm", "/bundle/worker.js"]));
  });

  test("errors keep their codes; a time limit replaces the worker", async () => {
    const seen = await page.evaluate(async () => {
      const { openEngine } = (window as never as Window).vivavoce;
      const engine = await openEngine({ workers: 1, graceMs: 0 });
      const codeOf = (call: Promise<unknown>) =>
        call.then(
          () => "fine",
          (error: { code?: string; name: string }) => (error.name === "EngineError" ? error.code : error.name),
        );
      const codes = [
        await codeOf(engine.analyze(Float32Array.of(Number.NaN), 16_000)),
        await codeOf(engine.analyze(new Float32Array(3600 * 16_000), 16_000, { timeoutMs: 30 })),
        await codeOf(engine.analyze(new Float32Array(16_000), 16_000)),
        await codeOf(engine.analyze(new Float32Array(16_000), 16_000, { signal: AbortSignal.abort() })),
      ];
      const under = codeOf(engine.analyze(new Float32Array(3600 * 16_000), 16_000));
      await engine.close();
      return [...codes, await under];
    });
    expect(seen).toEqual(["BAD_SAMPLES", "TIMEOUT", "fine", "AbortError", "CLOSED"]);
  });
});
