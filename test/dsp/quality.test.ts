import { describe, expect, it } from "vitest";
import { g711 } from "../../bench/conditions.mjs";
import { activePower, type Interval, mix, type NoiseColour, noise, random, speak, tone, utter } from "../voice.js";
import { instantiate, listen, resample } from "./kernels.js";

const kernels = instantiate();
kernels.seal();

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Share of frames judged correctly; 50 ms around a beginning and 120 ms after an end are not judged. */
function agreementWith(phrases: readonly Interval[], marks: readonly number[]): number {
  let right = 0;
  let judged = 0;
  marks.forEach((mark, f) => {
    const middle = f * 0.01 + 0.0125;
    if (phrases.some((p) => Math.abs(middle - p.startSeconds) < 0.05)) return;
    if (phrases.some((p) => middle >= p.endSeconds && middle < p.endSeconds + 0.12)) return;
    const speech = phrases.some((p) => middle >= p.startSeconds && middle < p.endSeconds) ? 1 : 0;
    judged++;
    if (mark === speech) right++;
  });
  return right / judged;
}

describe("voice activity", () => {
  const cases = [1, 2, 3, 4, 5, 6].flatMap((speaker) =>
    [
      { rateHz: 16000, levelDb: -26, snrDb: 30 },
      { rateHz: 16000, levelDb: -50, snrDb: 30 },
      { rateHz: 8000, levelDb: -20, snrDb: 20 },
      { rateHz: 44100, levelDb: -30, snrDb: 15 },
    ].map((c) => ({ speaker, ...c })),
  );

  it("finds synthesized phrases where they are", () => {
    const agreement = cases.map(({ speaker, rateHz, levelDb, snrDb }) => {
      const { samples, phrases } = utter({ speaker, seconds: 8, rateHz, levelDb, seed: speaker });
      const { marks } = listen(kernels, mix(samples, noise(8, rateHz, speaker), snrDb), rateHz);
      return agreementWith(phrases, marks);
    });
    expect(median([...agreement])).toBeGreaterThanOrEqual(0.95);
    expect(Math.min(...agreement)).toBeGreaterThanOrEqual(0.7);
  });

  it("hears a recording that begins in the middle of speech as it does after a pause", () => {
    for (const rateHz of [8000, 16000, 44100]) {
      const missed = [1, 2, 3, 4, 5, 6].map((speaker) => {
        const spoken = utter({ speaker, seconds: 6, rateHz, seed: speaker, leadSeconds: 0.1 });
        const cut = spoken.samples.subarray(Math.round(0.25 * rateHz));
        const afterPause = new Float32Array(rateHz + cut.length);
        afterPause.set(noise(1, rateHz, speaker, -80));
        afterPause.set(cut, rateHz);
        const speech = listen(kernels, cut, rateHz).marks.slice(0, 100);
        return listen(kernels, afterPause, rateHz)
          .marks.slice(100, 200)
          .filter((mark, f) => mark && !speech[f]).length;
      });
      expect(median(missed)).toBeLessThanOrEqual(5);
    }
  });

  it("keeps the beginning of phrases", () => {
    let kept = 0;
    let all = 0;
    for (const speaker of [1, 2, 3, 4, 5, 6]) {
      const { samples, phrases } = utter({ speaker, seconds: 10, seed: 40 + speaker });
      const { marks } = listen(kernels, mix(samples, noise(10, 16000, speaker), 30), 16000);
      for (const { startSeconds } of phrases) {
        // From the first voiced sound on, 150 ms in, all frames are speech.
        const from = Math.round(startSeconds * 100) + 15;
        for (let f = from; f < from + 10; f++, all++) kept += marks[f] ?? 0;
      }
    }
    expect(kept / all).toBeGreaterThanOrEqual(0.95);
  });

  /** A second-order Butterworth high-pass. */
  const withoutBass = (x: Float32Array, hz: number, rateHz: number) => {
    const w = Math.tan((Math.PI * hz) / rateHz);
    const scale = 1 / (1 + Math.SQRT2 * w + w * w);
    let [x1, x2, y1, y2] = [0, 0, 0, 0];
    return x.map((value) => {
      const y = scale * (value - 2 * x1 + x2 - 2 * (w * w - 1) * y1 - (1 - Math.SQRT2 * w + w * w) * y2);
      [x2, x1, y2, y1] = [x1, value, y1, y];
      return y;
    });
  };

  // No noise, low frequencies present, nothing above 4 kHz: typical for voice over IP, and once not detected as speech at all.
  it.each([4, 6, 14, 20, 24])(
    "finds as much speech of speaker %i over G.711 as in wideband, with low frequencies and without",
    async (speaker) => {
      const wide = speak({ speaker, seconds: 8 });
      const seconds = listen(kernels, wide, 16000).measured.netSpeechSeconds;
      expect(seconds).toBeGreaterThan(4);
      for (const law of ["alaw", "mulaw"] as const) {
        const { samples, rateHz } = await g711(law).apply({ samples: wide, rateHz: 16000 }, "");
        for (const line of [samples, withoutBass(samples, 120, rateHz), withoutBass(samples, 300, rateHz)]) {
          const heard = listen(kernels, line, rateHz).measured.netSpeechSeconds;
          expect(Math.abs(heard / seconds - 1)).toBeLessThan(0.08);
        }
      }
    },
  );

  const dtmf = (seconds: number, rateHz: number) => {
    const draw = random(11);
    const x = new Float32Array(seconds * rateHz);
    for (let at = 0; at < x.length; at += rateHz * 0.2) {
      const low = [697, 770, 852, 941][Math.floor(draw() * 4)] ?? 697;
      const high = [1209, 1336, 1477, 1633][Math.floor(draw() * 4)] ?? 1209;
      for (let i = 0; i < rateHz * 0.1 && at + i < x.length; i++) {
        x[at + i] = 0.2 * (Math.sin((2 * Math.PI * low * i) / rateHz) + Math.sin((2 * Math.PI * high * i) / rateHz));
      }
    }
    return x;
  };

  it.each([
    ["white noise", noise(20, 16000, 1, -30), 16000],
    ["loud white noise at 8 kHz", noise(20, 8000, 2, -12), 8000],
    ["pink noise", noise(20, 16000, 3, -30, "pink"), 16000],
    ["brown noise", noise(20, 16000, 4, -20, "brown"), 16000],
    ["a 440 Hz tone", tone(20, 16000, 440, 0.3), 16000],
    ["a 1 kHz tone at 8 kHz", tone(20, 8000, 1000, 0.5), 8000],
    ["a dial tone", tone(20, 8000, 350, 0.1).map((x, i) => x + 0.1 * Math.sin((2 * Math.PI * 440 * i) / 8000)), 8000],
    ["a ringing tone", tone(20, 8000, 425, 0.2).map((x, i) => (i % 40000 < 8000 ? x : 0)), 8000],
    ["DTMF", dtmf(20, 8000), 8000],
    ["mains hum", tone(20, 48000, 50, 0.1), 48000],
  ] as const)("finds speech in at most one frame in a hundred of %s", (_, x, rateHz) => {
    const { marks } = listen(kernels, x, rateHz);
    expect(marks.filter((m) => m === 1).length / marks.length).toBeLessThanOrEqual(0.01);
  });
});

describe("active speech level", () => {
  it("of continuous speech is its rms; pauses do not lower it", () => {
    for (const levelDb of [-16, -26, -40]) {
      for (const speaker of [1, 4]) {
        const spoken = speak({ speaker, seconds: 12, levelDb, leadSeconds: 0 });
        const alone = listen(kernels, spoken, 16000).measured.speechLevelDb ?? Number.NaN;
        // The method keeps 200 ms of hang-over after each phrase: up to 1.5 dB below the phrases' own rms.
        expect(alone).toBeGreaterThan(levelDb - 1.5);
        expect(alone).toBeLessThan(levelDb + 0.5);
        const spaced = new Float32Array(spoken.length * 2);
        spaced.set(spoken);
        expect(Math.abs((listen(kernels, spaced, 16000).measured.speechLevelDb ?? 0) - alone)).toBeLessThan(0.2);
      }
    }
  });

  it("follows the definition, computed sample by sample in f64", () => {
    for (const [speaker, levelDb] of [
      [2, -20],
      [3, -35],
      [6, -50],
    ] as const) {
      const x = mix(speak({ speaker, seconds: 9, levelDb }), noise(9, 16000, speaker), 40);
      expect(Math.abs((listen(kernels, x, 16000).measured.speechLevelDb ?? 0) - p56(x))).toBeLessThan(0.1);
    }
  });

  it.each([
    [1, -16, 60, -17.012],
    [2, -26, 40, -26.744],
    [3, -40, 30, -40.768],
    [4, -30, 20, -30.457],
    [5, -50, 35, -51.037],
  ])("agrees with actlevel of ITU-T G.191 for voice %i at %i dB", (speaker, levelDb, snrDb, expected) => {
    // Software tool library 2023, `actlevel -q -sf 16000`, on the same samples written as 16-bit PCM.
    const x = mix(speak({ speaker, seconds: 9, levelDb }), noise(9, 16000, speaker), snrDb);
    const pcm = x.map((v) => Math.max(-32768, Math.min(32767, Math.round(v * 32768))) / 32768);
    expect(Math.abs((listen(kernels, pcm, 16000).measured.speechLevelDb ?? 0) - expected)).toBeLessThanOrEqual(0.05);
  });

  it("of a long recording with a short louder sound in it follows the definition, too", () => {
    const x = speak({ speaker: 2, seconds: 60, levelDb: -40 });
    for (const seconds of [0.02, 0.1, 0.3]) {
      const knocked = x.slice();
      knocked.set(tone(seconds, 16000, 300, 0.5), 16000);
      const level = listen(kernels, knocked, 16000).measured.speechLevelDb ?? Number.NaN;
      expect(Math.abs(level - p56(knocked))).toBeLessThan(1 /* interpolated between thresholds 6 dB apart */);
    }
  });

  it("rises with the gain, at any rate", () => {
    for (const rateHz of [8000, 22050, 48000]) {
      const x = speak({ speaker: 5, seconds: 6, rateHz, levelDb: -40 });
      const low = listen(kernels, x, rateHz).measured.speechLevelDb ?? Number.NaN;
      const high =
        listen(
          kernels,
          x.map((v) => v * 4),
          rateHz,
        ).measured.speechLevelDb ?? Number.NaN;
      expect(Math.abs(high - low - 12.04)).toBeLessThan(0.1);
    }
  });
});

/** ITU-T P.56 method B by its text: finds the activity by a search for the lowest threshold that is near enough, not by a table. */
function p56(x: Float32Array): number {
  const g = Math.exp(-1 / (16000 * 0.03));
  const envelope = new Float64Array(x.length);
  let p = 0;
  let q = 0;
  let energy = 0;
  for (let i = 0; i < x.length; i++) {
    p = g * p + (1 - g) * Math.abs(x[i] ?? 0);
    q = g * q + (1 - g) * p;
    envelope[i] = q;
    energy += (x[i] ?? 0) ** 2;
  }
  const level = (threshold: number) => {
    let active = 0;
    let since = 3201;
    for (const e of envelope) {
      since = e >= threshold ? 0 : since + 1;
      if (since <= 3200) active++;
    }
    return 10 * Math.log10(energy / Math.max(1, active));
  };
  const isFarBelow = (threshold: number) => level(threshold) - 20 * Math.log10(threshold) >= 15.9;
  let high = 2 ** -16;
  while (isFarBelow(high)) high *= 2;
  let low = high / 2;
  for (let i = 0; i < 20; i++) {
    const threshold = Math.sqrt(low * high);
    if (isFarBelow(threshold)) low = threshold;
    else high = threshold;
  }
  return level(low);
}

describe("signal-to-noise ratio", () => {
  const ratios = [-5, 0, 5, 10, 15, 20, 25, 30];
  const colours: NoiseColour[] = ["white", "pink"];

  it("is within 1.5 dB of mixtures at known ratios (median) and grows with them", () => {
    const medians = ratios.map((snrDb) => {
      const errors: number[] = [];
      const estimates: number[] = [];
      for (const speaker of [1, 2, 3, 4, 5, 6]) {
        for (const colour of colours) {
          const speech = speak({ speaker, seconds: 10, seed: speaker + 10 });
          const x = mix(speech, noise(10, 16000, speaker, -30, colour), snrDb);
          const estimate = listen(kernels, x, 16000).measured.snrDb;
          if (estimate === null) continue;
          estimates.push(estimate);
          errors.push(Math.abs(estimate - snrDb));
        }
      }
      // With noise at -5 dB most of these voices are not detected as speech at all: then there is no ratio.
      expect(errors.length).toBeGreaterThanOrEqual(snrDb < 0 ? 3 : 9);
      expect(median(errors)).toBeLessThanOrEqual(1.5);
      return median(estimates);
    });
    for (let i = 1; i < medians.length; i++) expect(medians[i]).toBeGreaterThan(medians[i - 1] ?? 0);
  });

  it("stays the same with digital silence before and after the speech, as recorders and codecs add it", () => {
    const silence = 4 * 16000;
    for (const speaker of [1, 2, 3]) {
      for (const snrDb of [0, 5, 10, 20]) {
        const x = mix(speak({ speaker, seconds: 8 }), noise(8, 16000, speaker, -30), snrDb);
        const padded = new Float32Array(x.length + 2 * silence);
        padded.set(x, silence);
        const [plain, added] = [x, padded].map((samples) => listen(kernels, samples, 16000).measured.snrDb);
        expect(Math.abs(added! - plain!), `speaker ${speaker} at ${snrDb} dB`).toBeLessThanOrEqual(4);
      }
    }
  });

  /** Chords of a plucked instrument. */
  const music = (seconds: number) =>
    Float32Array.from({ length: seconds * 16000 }, (_, i) => {
      const [beat, root] = [(i / 16000) % 0.5, [262, 220, 349, 392][Math.floor(i / 32000) % 4]!];
      const wave = (ratio: number) => Math.sin((2 * Math.PI * root * ratio * i) / 16000);
      return 0.1 * Math.exp(-3 * beat) * (wave(1) + wave(1.25) + wave(1.5) + wave(2));
    });

  it("is that of the speech after music on hold, and before it", () => {
    const hold = music(60);
    for (const speaker of [1, 2, 3]) {
      const x = mix(speak({ speaker, seconds: 8 }), noise(8, 16000, speaker, -30), 20);
      const plain = listen(kernels, x, 16000).measured.snrDb!;
      for (const silence of [0, 4 * 16000]) {
        const held = new Float32Array(hold.length + silence + x.length + hold.length);
        held.set(hold);
        held.set(x, hold.length + silence);
        held.set(hold, hold.length + silence + x.length);
        const { snrDb } = listen(kernels, held, 16000).measured;
        expect(Math.abs(snrDb! - plain), `speaker ${speaker}, ${silence} samples`).toBeLessThanOrEqual(4);
      }
    }
  });

  it("is measured without pauses too, by the amplitude distribution", () => {
    const { samples, phrases } = utter({ speaker: 2, seconds: 10 });
    const spoken = Float32Array.from(
      phrases.flatMap((p) => [
        ...samples.subarray(Math.round(p.startSeconds * 16000), Math.round(p.endSeconds * 16000)),
      ]),
    );
    const estimates = [0, 10, 20].map(
      (snrDb) => listen(kernels, mix(spoken, noise(10, 16000, 4), snrDb), 16000).measured.wadaDb ?? Number.NaN,
    );
    expect(estimates[1]).toBeGreaterThan(estimates[0] ?? 0);
    expect(estimates[2]).toBeGreaterThan(estimates[1] ?? 0);
  });
});

describe("saturation", () => {
  // A microphone's crests are round: three samples wide.
  const spoken = speak({ speaker: 3, seconds: 6, levelDb: -16 });
  const speech = spoken.map((v, i) => 0.25 * (spoken[i - 1] ?? 0) + 0.5 * v + 0.25 * (spoken[i + 1] ?? 0));
  const peak = Math.max(...speech.map(Math.abs));
  const clip = (x: Float32Array, limit: number) => x.map((v) => Math.max(-limit, Math.min(limit, v)));
  const flat = (x: Float32Array, limit: number) => x.filter((v) => Math.abs(v) >= limit).length;

  it("is not found in speech that was not clipped, at any scale, nor in tones", () => {
    for (const gain of [0.2, 1, 0.999 / peak]) {
      expect(
        listen(
          kernels,
          speech.map((v) => v * gain),
          16000,
        ).measured.saturatedSamples,
      ).toBeLessThanOrEqual(2);
    }
    for (const rateHz of [8000, 48000]) {
      expect(listen(kernels, tone(3, rateHz, 100, 0.5), rateHz).measured.saturatedSamples).toBe(0);
    }
  });

  it.each([0.5, 0.3, 0.15])("is counted if speech is clipped at %f of its peak and full scale", (part) => {
    const x = clip(
      speech.map((v) => v / (part * peak)),
      1,
    );
    const { saturatedSamples, saturatedRuns } = listen(kernels, x, 16000).measured;
    expect(saturatedSamples).toBeGreaterThanOrEqual(0.8 * flat(x, 1));
    expect(saturatedSamples).toBeLessThanOrEqual(1.1 * flat(x, 0.998));
    expect(saturatedRuns).toBeGreaterThan(0);
    expect(saturatedRuns).toBeLessThan(saturatedSamples);
  });

  it("is a share of what is audible, however long nobody speaks, at any rate", () => {
    for (const rateHz of [8000, 16000, 48000]) {
      const x = speak({ speaker: 3, seconds: 6, levelDb: -16, rateHz });
      const clipped = clip(
        x.map((v) => v / 0.3),
        1,
      );
      const padded = new Float32Array(clipped.length + 60 * rateHz);
      padded.set(clipped, 30 * rateHz);
      const [plain, added] = [clipped, padded].map((samples) => listen(kernels, samples, rateHz).measured);
      expect(added!.saturatedSamples).toBe(plain!.saturatedSamples);
      expect(plain!.audibleSamples).toBeLessThanOrEqual(clipped.length);
      expect(Math.abs(added!.audibleSamples - plain!.audibleSamples)).toBeLessThanOrEqual(0.5 * rateHz);
    }
  });

  it.each([0.5, 0.3, 0.15])("is counted if the source was clipped at %f of its peak and then attenuated", (part) => {
    const limit = part * peak;
    const x = clip(speech, limit).map((v) => Math.round(v * 32768) / 32768);
    const { saturatedSamples } = listen(kernels, x, 16000).measured;
    const truth = flat(x, Math.floor(limit * 32768) / 32768);
    expect(saturatedSamples).toBeGreaterThanOrEqual(0.6 * truth);
    expect(saturatedSamples).toBeLessThanOrEqual(1.1 * truth);
  });

  it("is counted before resampling", () => {
    const at48k = clip(speak({ speaker: 1, seconds: 3, rateHz: 48000, levelDb: -10 }), 0.5).map((v) => v * 2);
    const { saturatedSamples, samples } = listen(kernels, at48k, 48000).measured;
    expect(samples).toBe(at48k.length);
    expect(saturatedSamples).toBeGreaterThanOrEqual(0.8 * flat(at48k, 1));
  });
});

describe("bandwidth", () => {
  /** Speech at 16 kHz from a source with another rate: nothing above half of that rate. */
  const bandwidth = (speaker: number, rateHz: number, snrDb: number) => {
    const x = mix(speak({ speaker, seconds: 6, rateHz }), noise(6, rateHz, speaker, -40), snrDb);
    return listen(kernels, resample(kernels, x, rateHz), 16000).measured.bandwidthHz ?? Number.NaN;
  };

  it.each([
    [8000, 3400, 4200],
    [11025, 4900, 5700],
    [32000, 7000, 8000],
  ])("of speech from %i Hz is where its band ends", (rateHz, low, high) => {
    for (const speaker of [1, 2, 3, 4]) {
      for (const snrDb of [40, 25]) {
        expect(bandwidth(speaker, rateHz, snrDb)).toBeGreaterThan(low);
        expect(bandwidth(speaker, rateHz, snrDb)).toBeLessThanOrEqual(high + 1e-9);
      }
    }
  });

  it("stays the same with digital silence around noisy speech", () => {
    for (const speaker of [1, 2, 3]) {
      const speech = new Float32Array(10 * 16000);
      speech.set(resample(kernels, speak({ speaker, seconds: 8, rateHz: 8000 }), 8000), 16000);
      const x = mix(speech, noise(10, 16000, speaker, -30), 5);
      const padded = new Float32Array(x.length + 10 * 16000);
      padded.set(x, 5 * 16000);
      const [plain, added] = [x, padded].map((samples) => listen(kernels, samples, 16000).measured.bandwidthHz);
      expect(Math.abs(added! - plain!), `speaker ${speaker}, ${plain} Hz`).toBeLessThanOrEqual(
        300 /* a mel bin or two */,
      );
    }
  });
});

it("keeps the powers that the test mixtures rely on", () => {
  const x = speak({ speaker: 1, seconds: 5, levelDb: -26 });
  expect(10 * Math.log10(activePower(x))).toBeCloseTo(-26, 0);
});
