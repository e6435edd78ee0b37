import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const wasm = readFileSync(new URL("../../dist/engine/vivavoce.wasm", import.meta.url));

/**
 * Runs kernels on samples made of integers alone and returns every byte that they gave, in hexadecimal: elementary functions, resampled
 * audio, log-mel, and a stream's windows and measures. Self-contained, because it also runs inside a browser's page.
 */
async function results(binary: string): Promise<Record<string, string>> {
  const bytes = Uint8Array.from(atob(binary), (c) => c.charCodeAt(0));
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const call = instance.exports as unknown as Record<string, (...values: number[]) => number>;
  const memory = instance.exports.memory as WebAssembly.Memory;
  const run = (name: string, ...values: number[]): number => {
    const kernel = call[name];
    if (!kernel) throw new Error(`no kernel ${name}`);
    return kernel(...values);
  };
  const hex = (at: number, length: number): string =>
    Array.from(new Uint8Array(memory.buffer, at, length), (b) => b.toString(16).padStart(2, "0")).join("");
  let seed = 12345;
  const next = (): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) | 0;
    return seed >> 16;
  };
  /** A buzz of changing pitch with pauses and a little noise, in steps of 2^-15. */
  const buzz = (samples: number, rateHz: number): Float32Array => {
    const x = new Float32Array(samples);
    let phase = 0;
    let low = 0;
    for (let i = 0; i < samples; i++) {
      const second = i / rateHz;
      const period = Math.floor(rateHz / 120) + ((i >> 11) % 23);
      phase = phase >= period ? 0 : phase + 1;
      const loud = second % 1.5 < 1.1 ? 1 : 0;
      low += ((phase === 0 ? 20000 : phase < period / 2 ? -400 : 200) * loud - low) / 4;
      x[i] = Math.trunc(low + next() / 400) / 32768;
    }
    return x;
  };
  const out: Record<string, string> = {};
  const x = run("reserve", 64000);
  const y = run("reserve", 64000);
  run("seal");
  for (const name of ["exp", "log", "sigmoid", "tanh"]) {
    const values = new Float32Array(memory.buffer, x, 4096);
    for (let i = 0; i < 4096; i++) values[i] = name === "log" ? (i + 1) / 64 : (i - 2048) / 64;
    run(name, y, x, 4096);
    out[name] = hex(y, 4096 * 4);
  }
  new Float32Array(memory.buffer, x, 16000).set(buzz(16000, 16000));
  out.logMel = hex(y, run("logMel", y, x, 16000) * 320);
  for (const rateHz of [8000, 16000, 16001, 44100]) {
    const samples = buzz(rateHz * 4, rateHz);
    let audio = "";
    run("resampleStart", rateHz);
    for (let at = 0; at < rateHz / 4; at += 500) {
      const chunk = samples.subarray(at, at + 500);
      new Float32Array(memory.buffer, run("resampleInputPtr"), 500).set(chunk);
      audio += hex(run("resampleOutputPtr"), run("resamplePush", chunk.length) * 4);
    }
    out[`resampled from ${rateHz}`] = audio;
    run("streamStart", rateHz, 100, 0);
    let windows = "";
    for (let from = 0; from < samples.length; from += 4000) {
      const chunk = samples.subarray(from, from + 4000);
      new Float32Array(memory.buffer, run("inputPtr"), chunk.length).set(chunk);
      for (let at = 0; at < chunk.length; run("streamTake")) {
        at += run("streamPush", at, chunk.length - at);
        if (run("streamStatus") & 1) windows += hex(run("windowPtr"), run("windowFrames") * 320);
      }
    }
    run("streamFinish");
    windows += hex(run("windowPtr"), run("windowFrames") * 320);
    out[`stream at ${rateHz}`] =
      windows + hex(run("streamStatePtr"), run("streamStateBytes")) + hex(run("measuresPtr"), 112);
  }
  return out;
}

function hashes(of: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(of).map(([name, hex]) => [name, createHash("sha256").update(hex).digest("hex").slice(0, 16)]),
  );
}

describe("bit-exact kernels", () => {
  let browser: Awaited<ReturnType<typeof chromium.launch>>;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  });
  afterAll(() => browser?.close());

  it("give the golden bits in Node", async () => {
    expect(hashes(await results(wasm.toString("base64")))).toMatchInlineSnapshot(`
      {
        "exp": "38c8036f092e76ad",
        "log": "ed3038dbacbb5833",
        "logMel": "4d433f98152f4be3",
        "resampled from 16000": "0b73f786a1c20281",
        "resampled from 16001": "fc5266ab4a1de069",
        "resampled from 44100": "542f4da687e42aef",
        "resampled from 8000": "e67114b2685e7dcd",
        "sigmoid": "59a1394e41b20a2e",
        "stream at 16000": "302807f122bfb023",
        "stream at 16001": "c3a91c47489d3291",
        "stream at 44100": "97fecb4bf38bff16",
        "stream at 8000": "c24d5ca95018a5fc",
        "tanh": "7dff3e5165981621",
      }
    `);
  });

  it("give the same bits in Chromium", async () => {
    const page = await browser.newPage();
    const there = await page.evaluate(results, wasm.toString("base64"));
    expect(hashes(there)).toEqual(hashes(await results(wasm.toString("base64"))));
  });
});
