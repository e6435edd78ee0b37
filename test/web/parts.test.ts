/** The page's own computations, tested without a browser. */
import FFT from "fft.js";
import { expect, test } from "vitest";
import { AudioValidity, EnrollReason } from "../../src/contract/index.js";
import type { Measures } from "../../src/engine/port.js";
import { levelOf } from "../../src/microphone/index.js";
import { ProfileKeyLostError, SealError, type SealErrorCode } from "../../src/store/errors.js";
import { adviceFor } from "../../src/web/advice.js";
import { failureText } from "../../src/web/failure.js";
import { Fourier, MelSpectrogram, melBands } from "../../src/web/mel-spectrogram.js";
import { refusal, strings } from "../../src/web/strings.js";
import { random, tone } from "../voice.js";

test("the Fourier transform agrees with another library", () => {
  for (const size of [256, 1024]) {
    const draw = random(size);
    const signal = Float32Array.from({ length: size }, () => 2 * draw() - 1);
    const fft = new FFT(size);
    const expected = fft.createComplexArray() as number[];
    fft.realTransform(expected, Array.from(signal));
    const re = signal.slice();
    const im = new Float32Array(size);
    new Fourier(size).transform(re, im);
    for (let k = 0; k <= size / 2; k++) {
      // Sums of 1,024 products, rounded to 24 bits ten times.
      expect(Math.abs(re[k]! - expected[2 * k]!)).toBeLessThan(1e-4);
      expect(Math.abs(im[k]! - expected[2 * k + 1]!)).toBeLessThan(1e-4);
    }
  }
});

test("draws a tone in the right band, however it is split into chunks", () => {
  const band = (hz: number) => {
    const columns = new MelSpectrogram(48_000).push(tone(0.2, 48_000, hz));
    const column = columns.at(-1)!;
    return column.indexOf(Math.max(...column));
  };
  const mel = (hz: number) => 1127 * Math.log1p(hz / 700);
  for (const hz of [500, 1000, 3000, 6000]) {
    expect(Math.abs(band(hz) - Math.floor((mel(hz) / mel(8000)) * melBands))).toBeLessThanOrEqual(1);
  }
  const whole = tone(0.3, 16_000, 440);
  const pieces = new MelSpectrogram(16_000);
  const parts = [whole.subarray(0, 1001), whole.subarray(1001, 1500), whole.subarray(1500)];
  expect(parts.flatMap((part) => pieces.push(part))).toEqual(new MelSpectrogram(16_000).push(whole));
});

test("level of a sine is 3 dB under its peak", () => {
  expect(levelOf(tone(1, 16_000, 1000, 1))).toBeCloseTo(-3.01, 2);
  expect(levelOf(new Float32Array(0))).toBe(-100);
});

const limits = { minSnrDb: 8, minSpeechLevelDb: -45, maxSaturationRatio: 0.01, targetSeconds: 3 };
const fine: Measures = {
  rateHz: 48_000,
  grossSeconds: 2,
  netSpeechSeconds: 1.5,
  speechLevelDb: -26,
  snrDb: 30,
  saturatedPerMinute: 0,
  saturationRatio: 0,
  bandwidthHz: 7000,
};

test.each([
  ["waiting", null],
  ["speak", { ...fine, netSpeechSeconds: 0, speechLevelDb: null, snrDb: null }],
  ["keepTalking", fine],
  ["almost", { ...fine, netSpeechSeconds: 2.5 }],
  ["closer", { ...fine, speechLevelDb: -42 }],
  ["quieter", { ...fine, snrDb: 9 }],
  ["away", { ...fine, saturationRatio: 0.02 }],
] as const)("advises: %s", (advice, measures) => {
  expect(adviceFor(measures, limits)).toBe(advice);
});

test("has a text for every refusal of the contract", () => {
  const names = (values: object) => Object.keys(values).filter((name) => Number.isNaN(Number(name)));
  const silent = ["UNSPECIFIED", "INTERNAL_ERROR", "AUDIO_OK", "ENROLL_OK", "NOT_ENOUGH_SEGMENTS", "MISSING_MODEL"];
  const refusals = [...names(AudioValidity), ...names(EnrollReason)].filter((name) => !silent.includes(name));
  expect(refusals.length).toBeGreaterThan(6);
  expect(refusals.filter((name) => refusal(name) === strings.refusals.other)).toEqual([]);
});

test("an error of the keys concerns all voices, damage or the key of a profile only one", () => {
  const text = (code: SealErrorCode) => failureText(new Error("56", { cause: new SealError(code, "") }));
  expect([text("wrong-key"), text("key-lost")]).toEqual([strings.storage.unreadable, strings.storage.unreadable]);
  expect(text("damaged")).toBe(strings.damaged);
  expect(failureText(new ProfileKeyLostError("ada"))).toBe(strings.damaged);
});
