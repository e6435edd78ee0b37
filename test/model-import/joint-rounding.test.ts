import { describe, expect, test } from "vitest";
import { gaussian, random } from "../../src/demo/voice.js";
import { JointRounding } from "../../src/model-import/joint-rounding.js";
import { Moments } from "../../src/model-import/moments.js";

const [channels, frames] = [24, 300];
const next = gaussian(random(5));

/** Correlated channels, like those of a network: a few common causes and a little independent noise. */
const causes = Array.from({ length: 4 * frames }, next);
const mixing = Array.from({ length: channels * 4 }, next);
const data = Float32Array.from({ length: channels * frames }, (_, i) => {
  const [c, t] = [Math.floor(i / frames), i % frames];
  const common = [0, 1, 2, 3].reduce((sum, k) => sum + mixing[c * 4 + k]! * causes[k * frames + t]!, 0);
  return 20 * common + next();
});
const heard = { shape: [1, channels, frames], data };

describe("second moments", () => {
  test.each([
    [1, 1],
    [3, 2],
  ])("of %s taps, %s apart, are the sums of products over all frames", (taps, dilation) => {
    const inputs = channels * taps;
    const steps = Float64Array.from({ length: inputs }, (_, i) => 1 + (i % 5));
    const moments = new Moments({ input: "x", taps, dilation });
    moments.add(heard);
    moments.add(heard);
    const found = moments.inSteps(steps);
    const value = (input: number, t: number) =>
      data[(input % channels) * frames + t + Math.floor(input / channels) * dilation]!;
    for (let i = 0; i < inputs; i += 5)
      for (let j = 0; j <= i; j++) {
        let sum = 0;
        for (let t = 0; t < frames - (taps - 1) * dilation; t++) sum += 2 * value(i, t) * value(j, t);
        expect(found[i * inputs + j]).toBeCloseTo(sum / (steps[i]! * steps[j]!), 3);
      }
  });
});

describe("rounding together", () => {
  const moments = new Moments({ input: "x", taps: 1, dilation: 1 });
  moments.add(heard);
  const joint = new JointRounding(channels, moments.inSteps(new Float64Array(channels).fill(1)));
  const errorOf = (row: Float64Array, rounded: Float64Array) => {
    let sum = 0;
    for (let t = 0; t < frames; t++) {
      let error = 0;
      for (let c = 0; c < channels; c++) error += (row[c]! - rounded[c]!) * data[c * frames + t]!;
      sum += error ** 2;
    }
    return sum;
  };

  test("leaves a fraction of the error of rounding to the nearest", () => {
    const errors = Array.from({ length: 40 }, () => {
      const row = Float64Array.from({ length: channels }, () => 10 * next());
      return { together: errorOf(row, joint.round(row, 127)), nearest: errorOf(row, row.map(Math.round)) };
    });
    const total = (kind: "together" | "nearest") => errors.reduce((sum, one) => sum + one[kind], 0);
    expect(total("together")).toBeLessThan(total("nearest") / 4);
  });

  test("gives integers within bounds, and keeps integers", () => {
    const row = Float64Array.from({ length: channels }, () => 100 * next());
    const rounded = joint.round(row, 127);
    for (const value of rounded) {
      expect(Number.isInteger(value)).toBe(true);
      expect(Math.abs(value)).toBeLessThanOrEqual(127);
    }
    const whole = Float64Array.from({ length: channels }, (_, i) => (i % 7) - 3);
    expect(joint.round(whole, 127)).toEqual(whole);
  });
});
