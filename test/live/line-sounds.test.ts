/** Telephone sounds without speech: none of them may count as speech. Keys are reported. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Kernels } from "../../src/engine/kernels.js";
import { StreamKernel } from "../../src/engine/stream-kernel.js";
import { DtmfDetector } from "../../src/processor/live/dtmf.js";
import { gaussian, random, speak } from "../voice.js";

const module = new WebAssembly.Module(readFileSync(new URL("../../dist/engine/vivavoce.wasm", import.meta.url)));
const rateHz = 8000;

/** Share of net speech in it. */
function speechShare(samples: Float32Array): number {
  const kernel = new StreamKernel(new Kernels(module), 400, "mel");
  const { state } = kernel.advance(null, { rateHz, maxSpeechSeconds: 0 }, samples);
  const { measures } = kernel.peek(state, { rateHz, maxSpeechSeconds: 0 });
  return measures.netSpeechSeconds / measures.grossSeconds;
}

const filled = (seconds: number, at: (t: number) => number): Float32Array =>
  Float32Array.from({ length: Math.round(seconds * rateHz) }, (_, i) => at(i / rateHz));
const tone = (t: number, ...frequencies: number[]) =>
  frequencies.reduce((sum, hz) => sum + Math.sin(2 * Math.PI * hz * t), 0) / frequencies.length;

const LOW = [697, 770, 852, 941];
const HIGH = [1209, 1336, 1477, 1633];
const KEYS = ["123A", "456B", "789C", "*0#D"].join("");

/** Key tones of the given milliseconds with pauses between them. */
const keys = (digits: string, onMs: number, offMs: number, level = 0.3) =>
  filled((digits.length * (onMs + offMs)) / 1000, (t) => {
    const n = Math.floor((t * 1000) / (onMs + offMs));
    const inside = t * 1000 - n * (onMs + offMs) < onMs;
    const key = KEYS.indexOf(digits[n] ?? " ");
    return inside && key >= 0 ? level * tone(t, LOW[key >> 2]!, HIGH[key & 3]!) : 0;
  });

describe("keys", () => {
  it.each([
    [50, 50],
    [80, 80],
    [200, 100],
  ])("of %i ms with pauses of %i ms are reported once each, in order", (onMs, offMs) => {
    const digits = "159D7#0*26A3B84C9";
    const samples = keys(digits, onMs, offMs);
    for (const size of [160, 7, samples.length]) {
      const detector = new DtmfDetector(rateHz);
      const heard = [];
      for (let at = 0; at < samples.length; at += size) heard.push(...detector.push(samples.subarray(at, at + size)));
      expect(heard.map(({ digit }) => digit).join("")).toBe(digits);
    }
  });

  it("are reported once if a few samples are missing, and again after a pause of two blocks", () => {
    /** One block of the detector. */
    const block = 102;
    const held = (missing: number, blocks = 20) =>
      filled((blocks * block) / rateHz, (t) => {
        const isMissing = Math.floor((t * rateHz + 0.5) / block) - 10;
        return isMissing >= 0 && isMissing < missing ? 0 : 0.3 * tone(t, 852, 1336);
      });
    const heard = (samples: Float32Array) => new DtmfDetector(rateHz).push(samples);
    expect(heard(held(0, 1))).toEqual([]);
    expect(heard(held(0, 2).subarray(1))).toEqual([]);
    expect(heard(held(0, 2))).toEqual([{ digit: "8", atSeconds: 0 }]);
    expect(heard(held(1))).toHaveLength(1);
    expect(heard(held(2))).toEqual([
      { digit: "8", atSeconds: 0 },
      { digit: "8", atSeconds: (12 * block) / rateHz },
    ]);
  });

  it("are reported each if one follows the other without a pause", () => {
    expect(
      new DtmfDetector(rateHz)
        .push(keys("1213", 60, 0))
        .map(({ digit }) => digit)
        .join(""),
    ).toBe("1213");
  });

  it("are detected in noise, and at 16 and 48 kHz", () => {
    const noise = gaussian(random(5));
    const noisy = keys("0123456789", 80, 60).map((x) => x + 0.01 * noise());
    expect(
      new DtmfDetector(rateHz)
        .push(noisy)
        .map(({ digit }) => digit)
        .join(""),
    ).toBe("0123456789");
    for (const rate of [16_000, 48_000]) {
      const samples = Float32Array.from({ length: rate / 10 }, (_, i) => 0.3 * tone(i / rate, 852, 1336));
      expect(new DtmfDetector(rate).push(samples).map(({ digit }) => digit)).toEqual(["8"]);
    }
  });

  it("are detected down to -48 dB relative to full scale, not below", () => {
    const heard = (level: number) => new DtmfDetector(rateHz).push(keys("159", 80, 60, level)).length;
    // Two tones of half the level each have a quarter of its square as power.
    const atLimit = 2 * 10 ** -2.4;
    expect(heard(1.2 * atLimit)).toBe(3);
    expect(heard(0.8 * atLimit)).toBe(0);
  });

  it.each([
    [-10.6, 0],
    [-9, 1],
    [5.5, 1],
    [6.5, 0],
  ])("whose high tone is %f dB stronger than the low one are reported %i times", (highDb, times) => {
    const [low, high] = [0.2 * 10 ** (Math.min(0, -highDb) / 20), 0.2 * 10 ** (Math.min(0, highDb) / 20)];
    for (const i of LOW.keys()) {
      const pressed = filled(0.5, (t) => low * tone(t, LOW[i]!) + high * tone(t, HIGH[i]!));
      expect(new DtmfDetector(rateHz).push(pressed)).toHaveLength(times);
    }
  });

  it("are not detected if noise is as strong", () => {
    const noise = gaussian(random(6));
    const drowned = keys("0123456789", 80, 60).map((x) => x + 0.15 * noise());
    expect(new DtmfDetector(rateHz).push(drowned)).toEqual([]);
  });

  it("are not detected in speech, a single tone, or ring-back", () => {
    for (const speaker of [1, 2, 3, 4, 5, 6])
      expect(new DtmfDetector(rateHz).push(speak({ speaker, seconds: 30, rateHz }))).toEqual([]);
    expect(new DtmfDetector(rateHz).push(filled(5, (t) => 0.3 * tone(t, 770)))).toEqual([]);
    expect(new DtmfDetector(rateHz).push(filled(5, (t) => 0.3 * tone(t, 440, 480)))).toEqual([]);
  });
});

describe("no speech", () => {
  const on = (t: number, onSeconds: number, offSeconds: number) => t % (onSeconds + offSeconds) < onSeconds;
  const noise = gaussian(random(3));
  /** Chords of a plucked instrument, as in hold music. */
  const music = (t: number) => {
    const [beat, chord] = [t % 0.5, Math.floor(t / 2) % 4];
    const root = [262, 220, 349, 392][chord]!;
    return 0.25 * Math.exp(-3 * beat) * tone(t, root, root * 1.25, root * 1.5, root * 2);
  };
  it.each<[string, Float32Array]>([
    ["keys", keys("15937046280".repeat(10), 100, 100)],
    ["ring-back, American", filled(24, (t) => (on(t, 2, 4) ? 0.2 * tone(t, 440, 480) : 0))],
    ["ring-back, European", filled(25, (t) => (on(t, 1, 4) ? 0.2 * tone(t, 425) : 0))],
    ["busy", filled(20, (t) => (on(t, 0.5, 0.5) ? 0.2 * tone(t, 480, 620) : 0))],
    ["comfort noise", filled(20, () => 0.003 * noise())],
    ["comfort noise that comes and goes", filled(20, (t) => (on(t, 0.7, 0.3) ? 0.004 * noise() : 0))],
    ["lost packets of comfort noise", filled(20, (t) => (on(t, 0.06, 0.02) ? 0.004 * noise() : 0))],
    ["hold music", filled(30, music)],
  ])("%s", (_, samples) => {
    expect(speechShare(samples)).toBeLessThan(0.03);
  });

  it("but speech is", () => {
    expect(speechShare(speak({ speaker: 2, seconds: 20, rateHz }))).toBeGreaterThan(0.3);
  });
});
