import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BAD_RATE } from "../../src/engine/gen/kernel-exports.js";
import { noise, tone } from "../voice.js";
import { instantiate, RESAMPLING, resample } from "./kernels.js";

const kernels = instantiate();
kernels.seal();
const OUT_HZ = 16000;
const RATES = [4000, 8000, 11025, 12000, 22050, 24000, 32000, 44100, 48000, 96000, 192000];
const ODD_RATES = [7919, 15999, 16001, 44101, 191999];

interface Fit {
  /** Gain at the tone's own frequency. */
  readonly gainDb: number;
  /** Everything else, relative to the input tone. */
  readonly restDb: number;
}

/** A least-squares fit of the tone in the middle of the output, away from the ends. */
function through(rateHz: number, hz: number): Fit {
  const y = resample(kernels, tone(0.5, rateHz, hz, 0.5), rateHz);
  const from = 1600;
  const to = 6400;
  const w = (2 * Math.PI * hz) / OUT_HZ;
  let ss = 0;
  let sc = 0;
  let cc = 0;
  let ys = 0;
  let yc = 0;
  for (let i = from; i < to; i++) {
    const s = Math.sin(w * i);
    const c = Math.cos(w * i);
    ss += s * s;
    sc += s * c;
    cc += c * c;
    ys += (y[i] ?? 0) * s;
    yc += (y[i] ?? 0) * c;
  }
  const det = ss * cc - sc * sc;
  const a = (ys * cc - yc * sc) / det;
  const b = (yc * ss - ys * sc) / det;
  let rest = 0;
  for (let i = from; i < to; i++) rest += ((y[i] ?? 0) - a * Math.sin(w * i) - b * Math.cos(w * i)) ** 2;
  return {
    gainDb: 20 * Math.log10(Math.hypot(a, b) / 0.5),
    restDb: 10 * Math.log10(rest / (to - from) / 0.125 + 1e-30),
  };
}

function passed(rateHz: number, hz: number): number {
  const y = resample(kernels, tone(0.5, rateHz, hz, 0.5), rateHz);
  let power = 0;
  for (let i = 1600; i < 6400; i++) power += (y[i] ?? 0) ** 2;
  return 10 * Math.log10(power / 4800 / 0.125 + 1e-30);
}

describe.each([...RATES, ...ODD_RATES])("from %i Hz", (rateHz) => {
  const band = Math.min(rateHz, OUT_HZ) / 2;

  it("is flat to 0.9 of the band, with images and noise 80 dB down", () => {
    for (const part of [0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9]) {
      const { gainDb, restDb } = through(rateHz, part * band);
      expect(Math.abs(gainDb)).toBeLessThanOrEqual(0.01);
      expect(restDb).toBeLessThanOrEqual(-80);
    }
  });

  it("gives one output per 1/16,000 s, at the right time", () => {
    const y = resample(
      kernels,
      Float32Array.from({ length: rateHz }, () => 0.25),
      rateHz,
    );
    expect(y.length).toBe(OUT_HZ);
    expect(Math.max(...y.subarray(1000, 15000).map((v) => Math.abs(v - 0.25)))).toBeLessThan(1e-6);
  });
});

describe.each([...RATES, ...ODD_RATES].filter((rateHz) => rateHz > OUT_HZ + 10))("down from %i Hz", (rateHz) => {
  it("blocks everything from 8 kHz on", () => {
    for (const part of [0, 0.02, 0.1, 0.3, 0.6, 0.95]) {
      expect(passed(rateHz, 8001 + part * (rateHz / 2 - 8001))).toBeLessThanOrEqual(-80);
    }
  });
});

describe("chunking", () => {
  it("does not change a bit", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 512 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(
        fc.constantFrom(...RATES, ...ODD_RATES),
        sizes,
        fc.integer({ min: 1, max: 9000 }),
        (rateHz, chunks, n) => {
          const x = noise(n / rateHz, rateHz, n, -20);
          expect(resample(kernels, x, rateHz, chunks)).toEqual(resample(kernels, x, rateHz));
        },
      ),
      { numRuns: 60 },
    );
  });

  it("passes 16 kHz untouched", () => {
    const x = noise(0.2, OUT_HZ, 3, -10);
    expect(resample(kernels, x, OUT_HZ, [7, 100])).toEqual(x);
  });
});

it("refuses rates outside 4..192 kHz", () => {
  for (const rateHz of [0, -1, 1, 3999, 192001, 1_000_000, 0x7fffffff, -0x80000000]) {
    expect(kernels.streamStart(rateHz, 0, 0)).toBe(BAD_RATE);
  }
});

it("keeps the filters of the usual rates", () => {
  const own = instantiate();
  const state = own.reserve(RESAMPLING.state);
  own.seal();
  const usual = [8000, 11025, 12000, 22050, 24000, 32000, 44100, 48000, 96000];
  for (const rateHz of usual) own.resamplerStart(state, rateHz);
  const before = new Uint8Array(own.memory.buffer).slice();
  for (const rateHz of usual) own.resamplerStart(state, rateHz);
  // The order of use may change, and the state of the conversion. A filter that is made anew replaces another one.
  const after = new Uint8Array(own.memory.buffer);
  const changed = before.reduce((sum, byte, i) => sum + (byte === after[i] ? 0 : 1), 0);
  expect(changed).toBeLessThan(200);
});
