import { describe, expect, it } from "vitest";
import { cut, g711, gsm, noisy } from "../../bench/conditions.mjs";
import { activePower, speak } from "../voice.js";

const pcm = () => ({ samples: speak({ speaker: 2, seconds: 2, rateHz: 16_000 }), rateHz: 16_000 });
const power = (samples: Float32Array) => samples.reduce((sum, x) => sum + x * x, 0) / samples.length;

describe("conditions of the tested side", () => {
  it.each(["alaw", "mulaw"] as const)(
    "%s halves the rate, keeps the length, and leaves little companding noise",
    async (law) => {
      const out = await g711(law).apply(pcm(), "a.wav");
      expect(out.rateHz).toBe(8000);
      expect(Math.abs(out.samples.length - 16_000)).toBeLessThan(20);
      // G.711 gives about 38 dB; the input is at 8 kHz, so that only companding makes a difference.
      const narrow = { samples: speak({ speaker: 2, seconds: 2, rateHz: 8000 }), rateHz: 8000 };
      const companded = await g711(law).apply(narrow, "a.wav");
      const difference = companded.samples.map((x, i) => x - narrow.samples[i]!);
      expect(power(difference) / activePower(narrow.samples)).toBeLessThan(0.001);
      expect(power(difference)).toBeGreaterThan(0);
    },
  );

  it("noise has the given ratio, and is the same for the same file", async () => {
    const clean = pcm();
    const out = await noisy(10).apply(clean, "s/1/a.wav");
    const added = out.samples.map((x, i) => x - clean.samples[i]!);
    expect(10 * Math.log10(activePower(clean.samples) / power(added))).toBeCloseTo(10, 0);
    expect((await noisy(10).apply(pcm(), "s/1/a.wav")).samples).toEqual(out.samples);
    expect((await noisy(10).apply(pcm(), "s/1/b.wav")).samples).not.toEqual(out.samples);
  });

  it("a cut keeps the beginning", async () => {
    const out = await cut(0.5).apply(pcm(), "a.wav");
    expect(out.samples).toEqual(pcm().samples.slice(0, 8000));
  });

  it("GSM returns 8 kHz speech, if ffmpeg supports it", async (context) => {
    const codec = await gsm();
    if (!codec) return context.skip();
    const out = await codec.apply(pcm(), "a.wav");
    expect(out.rateHz).toBe(8000);
    expect(Math.abs(out.samples.length - 16_000)).toBeLessThan(400);
    expect(power(out.samples) / power(pcm().samples)).toBeGreaterThan(0.5);
  });
});
