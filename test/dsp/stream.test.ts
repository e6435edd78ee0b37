import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BAD_RATE, BAD_WINDOW } from "../../src/engine/gen/kernel-exports.js";
import { mix, noise, speak } from "../voice.js";
import {
  floats,
  instantiate,
  type Kernels,
  listen,
  measured,
  push,
  resample,
  type Window,
  windowOf,
} from "./kernels.js";

const kernels = instantiate();
kernels.seal();

const recording = mix(speak({ speaker: 5, seconds: 7, rateHz: 8000 }), noise(7, 8000, 2), 25);
const chunkSizes = fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 5 });

function stateOf(k: Kernels): Uint8Array {
  return new Uint8Array(k.memory.buffer, k.streamStatePtr(), k.streamStateBytes()).slice();
}

function restore(k: Kernels, state: Uint8Array): void {
  new Uint8Array(k.memory.buffer, k.streamStatePtr(), k.streamStateCapacity()).set(state);
}

describe("a stream", () => {
  it("gives the same in any chunking, bit for bit", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(8000, 11025, 16000, 16001, 44100),
        chunkSizes,
        fc.constantFrom(0, 110),
        (rateHz, chunks, limitFrames) => {
          const options = { windowFrames: 120, limitFrames };
          expect(listen(kernels, recording, rateHz, { ...options, chunks })).toEqual(
            listen(kernels, recording, rateHz, options),
          );
        },
      ),
      { numRuns: 25 },
    );
  });

  it("of any rate gives the same as its samples at 16 kHz, wherever it ends", () => {
    // With half the band of a telephone, little is recognized as speech.
    const options = { lowered: 50 };
    for (const rateHz of [4_000, 4_411, 8_000, 11_025, 44_100, 192_000]) {
      const said = speak({ speaker: 3, seconds: 1, rateHz, leadSeconds: 0 });
      // Ends after each number of whole blocks that can leave a different rest of audio, and within a block.
      for (const cut of [0, 1, 2, 30, 257, 513, 769, 1025].map((more) => (said.length % 256) + more)) {
        const x = said.subarray(0, said.length - cut);
        const { measured, windows, marks } = listen(kernels, x, rateHz, options);
        const resampled = listen(kernels, resample(kernels, x, rateHz), 16_000, options);
        const { netSpeechSeconds, snrDb, wadaDb, bandwidthHz, speechLevelDb, frames } = resampled.measured;
        expect(netSpeechSeconds).toBeGreaterThan(0.5);
        expect(measured, `${rateHz} Hz, ${x.length} samples`).toMatchObject({
          ...{ netSpeechSeconds, snrDb, wadaDb, bandwidthHz, speechLevelDb, frames },
        });
        expect(marks).toEqual(resampled.marks);
        expect(windows).toEqual(resampled.windows);
      }
    }
  });

  it("collects speech into windows of the requested length, and the rest at the end", () => {
    const { windows, measured, marks } = listen(kernels, recording, 8000, { windowFrames: 100 });
    expect(windows.length).toBeGreaterThanOrEqual(3);
    for (const window of windows.slice(0, -1)) expect(window.features.length).toBe(100 * 80);
    expect(windows.reduce((sum, w) => sum + w.speechSeconds, 0)).toBeCloseTo(measured.netSpeechSeconds, 6);
    expect(marks.reduce((a, b) => a + b, 0)).toBe(Math.round(measured.netSpeechSeconds * 100));
    for (const [i, window] of windows.entries()) {
      expect(window.endSeconds).toBeGreaterThan(window.startSeconds);
      expect(window.endSeconds - window.startSeconds).toBeGreaterThanOrEqual(window.speechSeconds - 1e-9);
      if (i > 0) expect(window.startSeconds).toBeGreaterThan((windows[i - 1]?.endSeconds ?? 0) - 0.026);
    }
    expect(windows.at(-1)?.endSeconds).toBeLessThanOrEqual(7.0001);
  });

  it("shows measures and the partial window at any time without changing the stream", () => {
    const untouched = listen(kernels, recording, 8000, { windowFrames: 150 });
    kernels.streamStart(8000, 150, 0);
    const windows: Window[] = [];
    for (let at = 0; at < recording.length; at += 5000) {
      push(kernels, recording.subarray(at, at + 5000), [700], (w) => windows.push(w));
      kernels.streamPeek();
      const soFar = listen(instantiate(), recording.subarray(0, at + 5000), 8000, { windowFrames: 150 });
      expect(measured(kernels)).toEqual(soFar.measured);
      const last = windowOf(kernels);
      if (last.features.length > 0) expect(last).toEqual(soFar.windows.at(-1));
    }
    if (kernels.streamFinish() > 0) windows.push(windowOf(kernels));
    expect(measured(kernels)).toEqual(untouched.measured);
    expect(windows).toEqual(untouched.windows);
  });

  it("can be saved and restored: streams of several rates share one instance", () => {
    const rates = [8000, 16000, 22050, 44100, 48000, 12345];
    const alone = rates.map((rateHz) => listen(kernels, recording, rateHz, { windowFrames: 90 }));
    const states: Uint8Array[] = [];
    const windows: Window[][] = rates.map(() => []);
    for (const [i, rateHz] of rates.entries()) {
      kernels.streamStart(rateHz, 90, 0);
      states[i] = stateOf(kernels);
    }
    for (let at = 0; at < recording.length; at += 4321) {
      for (const [i, state] of states.entries()) {
        restore(kernels, state);
        push(kernels, recording.subarray(at, at + 4321), [1000], (w) => windows[i]?.push(w));
        states[i] = stateOf(kernels);
      }
    }
    for (const [i, state] of states.entries()) {
      restore(kernels, state);
      if (kernels.streamFinish() > 0) windows[i]?.push(windowOf(kernels));
      expect(measured(kernels)).toEqual(alone[i]?.measured);
      expect(windows[i]).toEqual(alone[i]?.windows);
    }
  });

  it("stops at the limit of net speech and reads no further", () => {
    const { measured: all } = listen(kernels, recording, 8000);
    const { measured: some, windows } = listen(kernels, recording, 8000, { limitFrames: 150, windowFrames: 100 });
    expect(some.netSpeechSeconds).toBe(1.5);
    expect(some.grossSeconds).toBeLessThan(all.grossSeconds);
    expect(windows.reduce((sum, w) => sum + w.speechSeconds, 0)).toBeCloseTo(1.5, 9);
    expect(kernels.streamPush(0, 100)).toBe(0);
  });

  it("uses the same memory for an hour, and counts correctly", () => {
    const bytes = kernels.memory.buffer.byteLength;
    kernels.streamStart(4000, 0, 0);
    const chunk = noise(4, 4000, 1, -45);
    floats(kernels, kernels.inputPtr(), chunk.length).set(chunk);
    const chunks = 900;
    for (let i = 0; i < chunks; i++) {
      for (let at = 0; at < chunk.length; kernels.streamTake()) at += kernels.streamPush(at, chunk.length - at);
    }
    kernels.streamFinish();
    const { grossSeconds, frames } = measured(kernels);
    expect(grossSeconds).toBe(3600);
    expect(frames).toBe(kernels.logMelFrames(3600 * 16000));
    expect(kernels.memory.buffer.byteLength).toBe(bytes);
    expect(bytes).toBeLessThanOrEqual(32 * 1024 * 1024);
  });

  it("needs at most 640 KiB when saved", () => {
    expect(kernels.streamStateCapacity()).toBeLessThan(640 * 1024);
  });
});

describe("bad input", () => {
  it("is refused by code and leaves the running stream alone", () => {
    kernels.streamStart(16000, 0, 0);
    for (const rateHz of [0, -8000, 3999, 192001, 1_000_000]) {
      expect(kernels.streamStart(rateHz, 0, 0)).toBe(BAD_RATE);
    }
    for (const frames of [-1, 1, 49, 1001]) expect(kernels.streamStart(8000, frames, 0)).toBe(BAD_WINDOW);
    expect(kernels.streamStart(8000, 0, -5)).toBe(BAD_WINDOW);
    expect(kernels.streamPush(0, 160)).toBe(160);
  });

  it("cannot push past the input slot", () => {
    kernels.streamStart(16000, 0, 0);
    const capacity = kernels.inputCapacity();
    expect(kernels.streamPush(capacity - 5, 100)).toBe(5);
    expect(kernels.streamPush(-3, -1)).toBe(0);
    expect(kernels.streamPush(capacity + 1, 1)).toBe(0);
  });

  const silent = {
    netSpeechSeconds: 0,
    speechLevelDb: null,
    snrDb: null,
    wadaDb: null,
    bandwidthHz: null,
  };

  it.each([
    ["nothing", new Float32Array(0)],
    ["one sample", Float32Array.of(0.5)],
    ["25 ms", noise(0.025, 16000, 1, -20)],
    ["zeros", new Float32Array(32000)],
    ["a constant", Float32Array.from({ length: 32000 }, () => 0.4)],
    ["only NaN", Float32Array.from({ length: 32000 }, () => Number.NaN)],
  ])("%s: no speech, no level, no crash", (_, x) => {
    for (const rateHz of [8000, 16000, 48000]) {
      const { measured, windows } = listen(kernels, x, rateHz);
      expect(measured).toMatchObject(silent);
      expect(measured.samples).toBe(x.length);
      expect(windows).toEqual([]);
    }
  });

  it("all at full scale is saturated", () => {
    for (const value of [1, -1]) {
      const { measured } = listen(
        kernels,
        Float32Array.from({ length: 16000 }, () => value),
        16000,
      );
      expect(measured).toMatchObject({ ...silent, saturatedSamples: 16000, saturatedRuns: 1 });
    }
    const square = Float32Array.from({ length: 16000 }, (_, i) => (i % 100 < 50 ? 1 : -1));
    expect(listen(kernels, square, 16000).measured).toMatchObject({ saturatedSamples: 16000, saturatedRuns: 320 });
  });

  it("NaN and infinite samples are counted, treated as zero, and do not spread", () => {
    const holes = [100, 101, 5000, 20000, 31234, 55999];
    const clean = recording.slice();
    const broken = recording.slice();
    for (const [i, at] of holes.entries()) {
      clean[at] = 0;
      broken[at] = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY][i % 3] ?? 0;
    }
    const heard = listen(kernels, broken, 8000);
    const expected = listen(kernels, clean, 8000);
    expect(heard.measured).toEqual({ ...expected.measured, invalidSamples: holes.length });
    expect(heard.windows).toEqual(expected.windows);
  });

  it("samples far below any converter's are silence, so that no subnormal number slows a stream down", () => {
    const states = [0, 1e-45, 1e-38, 1e-20, 9e-13].map((size) => {
      const x = Float32Array.from({ length: 256 * 40 }, (_, i) => (i % 3 === 0 ? -size : size));
      kernels.streamStart(44100, 0, 0);
      push(kernels, x, [1000], () => {});
      return stateOf(kernels);
    });
    for (const state of states) expect(Buffer.compare(state, states[0]!)).toBe(0);
  });

  it("any floats give finite measures and features", () => {
    fc.assert(
      fc.property(
        fc.float32Array({ minLength: 0, maxLength: 2000 }),
        fc.integer({ min: 4000, max: 192000 }),
        (part, rateHz) => {
          const x = new Float32Array(part.length * 8);
          for (let i = 0; i < 8; i++) x.set(part, i * part.length);
          const { measured, windows } = listen(kernels, x, rateHz);
          for (const value of Object.values(measured)) expect(value === null || Number.isFinite(value)).toBe(true);
          for (const window of windows) expect(window.features.every(Number.isFinite)).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });
});
