import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const wasm = readFileSync(new URL("../../dist/engine/vivavoce.wasm", import.meta.url));

/**
 * Runs kernels on samples that are the same on every engine and returns all resulting bytes in hexadecimal: elementary functions, resampled
 * audio, log-mel, details, and a stream's windows and measures. Self-contained, because it also runs inside a browser page.
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
  /**
   * Two vowels in turn, with pauses and a little noise: pulses through resonances with literal coefficients, so that
   * they need only additions and multiplications, which every engine rounds alike. The formants are right at 16 kHz.
   */
  const vowels = [
    [
      [1.889198, -0.976713],
      [1.732947, -0.965274],
      [1.051101, -0.95023],
    ],
    [
      [1.963773, -0.976713],
      [1.246562, -0.965274],
      [0.781298, -0.95023],
    ],
  ];
  const babble = (samples: number, rateHz: number): Float32Array => {
    const x = new Float32Array(samples);
    const memory = [0, 0, 0, 0, 0, 0];
    let phase = 0;
    for (let i = 0; i < samples; i++) {
      const second = i / rateHz;
      const period = Math.floor(rateHz / 120) + ((i >> 11) % 23);
      phase = phase >= period ? 0 : phase + 1;
      const vowel = vowels[Math.floor(second * 4) % 2] ?? [];
      const syllable = (second * 4) % 1;
      const loud = second % 1.5 < 1.1 ? 4 * syllable * (1 - syllable) : 0;
      let y = loud * (phase === 0 ? 1 : phase < period / 2 ? -0.01 : 0);
      vowel.forEach(([b = 0, c = 0], f) => {
        const y1 = memory[2 * f] ?? 0;
        y = (1 - b - c) * y + b * y1 + c * (memory[2 * f + 1] ?? 0);
        memory[2 * f + 1] = y1;
        memory[2 * f] = y;
      });
      x[i] = 2 * y + next() / 400 / 32768;
    }
    return x;
  };
  const out: Record<string, string> = {};
  const x = run("reserve", 64000);
  const y = run("reserve", 128000);
  const [resampler, resampled] = [run("reserve", 8192), run("reserve", 4160)];
  run("seal");
  for (const name of ["exp", "log", "sigmoid", "tanh"]) {
    const values = new Float32Array(memory.buffer, x, 4096);
    for (let i = 0; i < 4096; i++) values[i] = name === "log" ? (i + 1) / 64 : (i - 2048) / 64;
    run(name, y, x, 4096);
    out[name] = hex(y, 4096 * 4);
  }
  new Float32Array(memory.buffer, x, 16000).set(babble(16000, 16000));
  out.logMel = hex(y, run("logMel", y, x, 16000) * 320);
  out.detail = hex(y, run("detail", y, x, 12000) * 1152);
  for (const rateHz of [8000, 16000, 16001, 44100]) {
    const samples = babble(rateHz * 4, rateHz);
    let audio = "";
    run("resamplerStart", resampler, rateHz);
    for (let at = 0; at < 500 * Math.ceil(rateHz / 2000); at += 250) {
      const chunk = samples.subarray(at, at + 250);
      new Float32Array(memory.buffer, x, 250).set(chunk);
      audio += hex(resampled, run("resamplerPush", resampler, resampled, x, chunk.length) * 4);
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
    out[`windows at ${rateHz}`] = windows;
    out[`stream at ${rateHz}`] = hex(run("streamStatePtr"), run("streamStateBytes")) + hex(run("measuresPtr"), 112);
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
        "detail": "9220f0adb023c305",
        "exp": "38c8036f092e76ad",
        "log": "ed3038dbacbb5833",
        "logMel": "f21c41ae373f58e9",
        "resampled from 16000": "7819a60f1fa19b3c",
        "resampled from 16001": "ff09e26e19c91faa",
        "resampled from 44100": "870c4451e376cbcf",
        "resampled from 8000": "e33783667ef59196",
        "sigmoid": "59a1394e41b20a2e",
        "stream at 16000": "8921ebb6d1b56f1e",
        "stream at 16001": "ed55b198bc7fe441",
        "stream at 44100": "d4ed3adbad720daf",
        "stream at 8000": "edd431ef3fd58c0c",
        "tanh": "7dff3e5165981621",
        "windows at 16000": "2aa6803c4717b5db",
        "windows at 16001": "59ce45c1e32ea843",
        "windows at 44100": "49a29e3b2b04f923",
        "windows at 8000": "28eb0d5238480b8c",
      }
    `);
  });

  it("find speech in the samples, so that the bits include windows", async () => {
    const { "windows at 16000": windows = "" } = await results(wasm.toString("base64"));
    expect(windows.length / 2 / 320).toBeGreaterThan(100);
  });

  it("give the same bits in Chromium", async () => {
    const page = await browser.newPage();
    const there = await page.evaluate(results, wasm.toString("base64"));
    expect(hashes(there)).toEqual(hashes(await results(wasm.toString("base64"))));
  });
});
