import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Calibration, calibrationOf } from "../../src/engine/calibration.js";
import { Kernels } from "../../src/engine/kernels.js";
import type { Template, Voice } from "../../src/engine/port.js";
import { Scoring, type ScoringModel } from "../../src/engine/scoring.js";
import { Standings } from "../../src/engine/standings.js";
import { dimensions, dot, kernelsModule, like, random, unit, voice } from "./vectors.js";

const revision = "a".repeat(64);
const fitted: Calibration = {
  terms: [
    ["one", "one", -3],
    ["cosine", "one", 7],
    ["snorm", "leastWideness", 0.5],
    ["probeSpeech", "one", 0.25],
    ["widenessDifference", "cosine", -1],
    ["leastSnr", "one", 0.125],
  ],
  reliability: [
    ["one", "one", -2],
    ["leastSpeech", "one", 1],
  ],
  strangers: {
    oneInTen: [
      ["one", "one", 1],
      ["leastWideness", "one", 2],
    ],
    oneInHundred: [["one", "one", 5]],
  },
  thresholds: [
    [0.1, 0],
    [0.01, 2],
    [0.001, 5],
  ],
  nearest: 20,
  consistency: 0.4,
  speakers: { cosine: 0.4, seconds: 2 },
};

const cohortVoices = (() => {
  const next = random(99);
  return Array.from({ length: 203 }, () => voice(next));
})();
const cohortScale = 0.35 / 127;
const cohort = {
  revision: "c",
  count: cohortVoices.length,
  dimensions,
  scale: cohortScale,
  rows: Int8Array.from(cohortVoices.flatMap((row) => [...row].map((value) => Math.round(value / cohortScale)))),
};

function scoring(change: Partial<ScoringModel> = {}): Scoring {
  const kernels = new Kernels(kernelsModule);
  const made = new Scoring(kernels, { dimensions, revision, cohort, voiceClass: null, calibration: fitted, ...change });
  kernels.run.seal();
  return made;
}

function segment(embedding: Float32Array, netSpeechSeconds = 3): Voice {
  return { embedding, netSpeechSeconds, snrDb: 20, bandwidthHz: 7000 };
}

function template(embedding: Float32Array): Template {
  return { ...segment(embedding), revision };
}

describe("training", () => {
  const next = random(7);
  const person = voice(next);
  const segments = [0.8, 0.75, 0.85, 0.8].map((likeness, i) => segment(like(person, likeness, next), 2 + i));
  const stranger = segment(voice(next), 30);

  test("the template is the mean by speech, at unit length", () => {
    const { template: trained, segments: told } = scoring().train(segments);
    const mean = unit(
      Float32Array.from({ length: dimensions }, (_, i) =>
        segments.reduce((sum, { embedding, netSpeechSeconds }) => sum + embedding[i]! * netSpeechSeconds, 0),
      ),
    );
    // One rounding to f32 of numbers below 1.
    for (let i = 0; i < dimensions; i++) expect(Math.abs(trained!.embedding[i]! - mean[i]!)).toBeLessThan(6e-8);
    expect(trained).toMatchObject({ netSpeechSeconds: 14, snrDb: 20, bandwidthHz: 7000, revision });
    for (const [i, { score, consistent }] of told.entries()) {
      const others = segments.filter((_, j) => j !== i);
      const expected = others.reduce((sum, other) => sum + dot(segments[i]!.embedding, other.embedding), 0) / 3;
      expect(consistent).toBe(true);
      expect(Math.abs(score - expected)).toBeLessThan(1e-6);
    }
  });

  test("a stranger is left out, however long he speaks", () => {
    const { template: trained, segments: told } = scoring().train([
      ...segments.slice(0, 2),
      stranger,
      ...segments.slice(2),
    ]);
    expect(told.map(({ consistent }) => consistent)).toEqual([true, true, false, true, true]);
    expect(told[2]!.score).toBeLessThan(0.3);
    expect(trained!.embedding).toEqual(scoring().train(segments).template!.embedding);
  });

  test("the order of segments changes nothing, to the last bit", () => {
    const kernels = scoring();
    const all = [...segments, stranger, segment(segments[0]!.embedding, 9)];
    const first = kernels.train(all);
    fc.assert(
      fc.property(fc.shuffledSubarray([...all.keys()], { minLength: all.length }), (order) => {
        const again = kernels.train(order.map((i) => all[i]!));
        expect(again.template).toEqual(first.template);
        expect(again.segments).toEqual(order.map((i) => first.segments[i]!));
      }),
      { numRuns: 60 },
    );
  });

  test("one segment is a template, two that disagree are none, no segments are none", () => {
    const one = scoring().train([stranger]);
    expect(one.segments).toEqual([{ score: 1, consistent: true }]);
    expect(Math.abs(dot(one.template!.embedding, stranger.embedding) - 1)).toBeLessThan(1e-6);
    const two = scoring().train([stranger, segments[0]!]);
    expect(two.template).toBeNull();
    expect(two.segments.map(({ consistent }) => consistent)).toEqual([false, false]);
    expect(two.segments[0]!.score).toBe(two.segments[1]!.score);
    expect(scoring().train([])).toEqual({ segments: [], template: null });
  });

  test("what was not measured stays unknown", () => {
    const unknown = segments.map((known) => ({ ...known, snrDb: null, bandwidthHz: null }));
    expect(scoring().train(unknown).template).toMatchObject({ snrDb: null, bandwidthHz: null });
    expect(scoring().train([segments[0]!, ...unknown.slice(1)]).template).toMatchObject({ snrDb: 20 });
  });

  test("too many segments, no speech and no unit vector are refused", () => {
    const code = (wanted: string) => expect.objectContaining({ code: wanted });
    expect(() => scoring().train(Array.from({ length: 257 }, () => stranger))).toThrow(code("TOO_MANY_SEGMENTS"));
    expect(() => scoring().train([segment(person, 0)])).toThrow(code("BAD_ARGUMENT"));
    expect(() => scoring().train([segment(person, Number.NaN)])).toThrow(code("BAD_ARGUMENT"));
    expect(() => scoring().train([segment(new Float32Array(256))])).toThrow(code("BAD_EMBEDDING"));
  });
});

describe("scores", () => {
  function nearest(embedding: Float32Array): { mean: number; deviation: number } {
    const rows = cohortVoices.map((row) => row.map((value) => Math.round(value / cohortScale) * cohortScale));
    const best = rows
      .map((row) => dot(row, embedding))
      .sort((a, b) => b - a)
      .slice(0, fitted.nearest);
    const mean = best.reduce((sum, value) => sum + value, 0) / best.length;
    const square = best.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    return { mean, deviation: Math.sqrt(square / (best.length - 1)) };
  }

  test("cosine, s-norm and calibration as written down", () => {
    const next = random(11);
    const enrolled: Template = { ...template(voice(next)), netSpeechSeconds: 12, snrDb: 25, bandwidthHz: 7500 };
    const probe: Voice = {
      embedding: like(enrolled.embedding, 0.6, next),
      netSpeechSeconds: 2.5,
      snrDb: 12,
      bandwidthHz: 5500,
    };
    const [score] = scoring().scores([enrolled], probe);
    const raw = dot(enrolled.embedding, probe.embedding);
    const t = nearest(enrolled.embedding);
    const p = nearest(probe.embedding);
    const snorm = 0.5 * ((raw - t.mean) / t.deviation + (raw - p.mean) / p.deviation);
    const wideness = (5500 - 4000) / 3000;
    const llr = -3 + 7 * raw + 0.5 * snorm * wideness + 0.25 * Math.log(2.5) - (1 - wideness) * raw + 0.125 * 1.2;
    expect(Math.abs(score!.raw - raw)).toBeLessThan(1e-6);
    // The cohort is scored in 8 by 16 bits: its deviation is good to four digits, and divides a score of about ten.
    expect(Math.abs(score!.llr - llr)).toBeLessThan(5e-3);
    expect(score!.reliability).toBeCloseTo(1 / (1 + Math.exp(2 - Math.log(2.5))), 12);
    expect(score!.strangers).toEqual({ oneInTen: 1 + 2 * wideness, oneInHundred: 5 });
  });

  test("many templates at once score as each alone, and repeatably", () => {
    const next = random(12);
    const templates = Array.from({ length: 40 }, () => template(voice(next)));
    const probe = segment(like(templates[3]!.embedding, 0.7, next));
    const kernels = scoring();
    const together = kernels.scores(templates, probe);
    expect(templates.map((one) => kernels.scores([one], probe)[0])).toEqual(together);
    expect(together.indexOf(together.reduce((a, b) => (b.llr > a.llr ? b : a)))).toBe(3);
    expect(kernels.scores([], probe)).toEqual([]);
  });

  test("a standing that is known gives the bits of one that is found, and is known until the embedding changes", () => {
    const next = random(16);
    const templates = Array.from({ length: 5 }, () => template(voice(next)));
    const probe = segment(like(templates[2]!.embedding, 0.7, next));
    const kernels = scoring();
    const standings = templates.map((one) => kernels.standing(one));
    expect(kernels.scores(templates, probe, standings)).toEqual(kernels.scores(templates, probe));
    const known = new Standings();
    const { embedding } = templates[0]!;
    expect(known.get(embedding)).toBeNull();
    known.set(embedding, standings[0]!);
    expect(known.get(embedding)).toEqual(standings[0]);
    expect(known.get(embedding.slice())).toBeNull();
    [embedding[0], embedding[1]] = [embedding[1]!, embedding[0]!];
    expect(known.get(embedding)).toBeNull();
  });

  test("without a cohort the s-norm is the cosine", () => {
    const next = random(13);
    const calibration: Calibration = { ...fitted, terms: [["snorm", "one", 1]] };
    const probe = segment(voice(next));
    const [score] = scoring({ cohort: null, calibration }).scores([template(voice(next))], probe);
    expect(score!.llr).toBe(score!.raw);
  });

  test("never NaN: a voice against itself, against its opposite, with nothing measured", () => {
    const embedding = voice(random(14));
    const unknown = { netSpeechSeconds: 0, snrDb: null, bandwidthHz: null };
    for (const other of [embedding, embedding.map((value) => -value)]) {
      const [score] = scoring().scores([{ embedding: other, revision, ...unknown }], { embedding, ...unknown });
      const { strangers, ...rest } = score!;
      expect([...Object.values(rest), ...Object.values(strangers)].every(Number.isFinite)).toBe(true);
      expect(Math.abs(score!.raw)).toBeLessThanOrEqual(1);
    }
  });

  test("a template of another network is refused, never scored", () => {
    const embedding = voice(random(15));
    const old = { ...template(embedding), revision: "b".repeat(64) };
    expect(() => scoring().scores([old], segment(embedding))).toThrow(
      expect.objectContaining({ code: "OTHER_REVISION" }),
    );
  });
});

describe("thresholds", () => {
  const plain = { strangers: { oneInTen: 0, oneInHundred: 1 } };

  test("measured ones are met, between and beyond them straight in ln rate", () => {
    const threshold = (rate: number) => scoring().threshold(rate, plain);
    expect([0.1, 0.01, 0.001].map(threshold)).toEqual([0, 2, 5]);
    expect(threshold(Math.sqrt(0.1 * 0.01))).toBeCloseTo(1, 12);
    expect(threshold(0.0001)).toBeCloseTo(8, 12);
    expect(threshold(1)).toBeCloseTo(-2, 12);
  });

  test("they stand where strangers of this quality do", () => {
    const at = (rate: number) => scoring().threshold(rate, { strangers: { oneInTen: -1, oneInHundred: 3 } });
    expect([0.1, 0.01, 0.001].map(at)).toEqual([-1, 7, 19]);
  });

  test("a smaller rate never has a lower threshold, whatever the quality", () => {
    const kernels = scoring();
    const rate = fc.double({ min: 1e-9, max: 1, noNaN: true });
    const ratio = fc.double({ min: -50, max: 50, noNaN: true });
    fc.assert(
      fc.property(rate, rate, fc.record({ oneInTen: ratio, oneInHundred: ratio }), (a, b, strangers) => {
        const of = (rate: number) => kernels.threshold(rate, { strangers });
        return of(Math.min(a, b)) >= of(Math.max(a, b));
      }),
    );
  });

  test("rates that are none are refused; without measurements the bound of every calibrated ratio holds", () => {
    for (const rate of [0, -1, 1.5, Number.NaN]) {
      expect(() => scoring().threshold(rate, plain)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
    }
    const unfitted = scoring({ calibration: calibrationOf(null) });
    const embedding = voice(random(17));
    const [score] = unfitted.scores([template(embedding)], segment(embedding));
    expect(unfitted.threshold(0.001, score!)).toBeCloseTo(Math.log(1000), 12);
  });

  test("strangers are told by quality, never by the score", () => {
    const section = { strangers: { oneInTen: [["cosine", "one", 1]] } };
    expect(() => calibrationOf(section)).toThrow(/quality alone/);
  });
});

describe("a recording's windows", () => {
  const next = random(21);
  const [anna, bert] = [voice(next), voice(next)];
  const windowsOf = (person: Float32Array, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      embedding: like(person, 0.8, next),
      speechSeconds: 3,
      startSeconds: 3 * i,
      endSeconds: 3 * i + 3,
    }));

  test("one voice is one speaker, two are several, none is none", () => {
    const kernels = scoring();
    expect(kernels.summarize(windowsOf(anna, 1)).speakers).toBe(1);
    expect(kernels.summarize(windowsOf(anna, 20)).speakers).toBe(1);
    expect(kernels.summarize([...windowsOf(anna, 6), ...windowsOf(bert, 3)]).speakers).toBe(2);
    expect(
      kernels.summarize(windowsOf(anna, 9).flatMap((window, i) => [window, windowsOf(bert, 9)[i]!])).speakers,
    ).toBe(2);
    expect(kernels.summarize([])).toEqual({ embedding: null, voiceClass: null, speakers: 0 });
  });

  test("hours of windows: the mean by speech is the same as in one sum", () => {
    const windows = [...windowsOf(anna, 500), ...windowsOf(bert, 100)];
    const { embedding, speakers } = scoring().summarize(windows);
    const mean = unit(
      Float32Array.from({ length: dimensions }, (_, i) =>
        windows.reduce((sum, window) => sum + window.embedding[i]!, 0),
      ),
    );
    expect(speakers).toBe(2);
    for (let i = 0; i < dimensions; i++) expect(Math.abs(embedding![i]! - mean[i]!)).toBeLessThan(1e-7);
  });

  test("windows that cancel out leave no voice, and no NaN", () => {
    const [window] = windowsOf(anna, 1);
    const opposite = { ...window!, embedding: window!.embedding.map((value) => -value) };
    expect(scoring().summarize([window!, opposite])).toMatchObject({ embedding: null, voiceClass: null });
  });

  test("voice class: the share of training speakers below, between 0 and 100", () => {
    const axis = voice(next);
    const quantiles = Float32Array.of(-0.5, 0, 0.1, 0.5, 0.9);
    const kernels = scoring({ voiceClass: { axis, quantiles } });
    const classOf = (value: number) => {
      const across = unit(voice(next).map((x, i, all) => x - dot(all, axis) * axis[i]!));
      const embedding = unit(axis.map((x, i) => value * x + Math.sqrt(1 - value * value) * across[i]!));
      return kernels.summarize([{ embedding, speechSeconds: 3, startSeconds: 0, endSeconds: 3 }]).voiceClass!;
    };
    for (const [value, expected] of [
      [-0.9, 0],
      [-0.25, 12.5],
      [0.05, 37.5],
      [0.3, 62.5],
      [0.99, 100],
    ] as const) {
      expect(Math.abs(classOf(value) - expected)).toBeLessThan(0.01);
    }
  });
});

describe("a calibration that is not usable is refused with its reason", () => {
  const cases: [string, Record<string, unknown>][] = [
    ["a feature that does not exist", { terms: [["cosines", "one", 1]] }],
    ["a weight that is no number", { terms: [["cosine", "one", "1"]] }],
    ["terms that are no list", { terms: 3 }],
    [
      "a threshold that falls",
      {
        thresholds: [
          [0.1, 2],
          [0.01, 1],
        ],
      },
    ],
    [
      "a rate of 0",
      {
        thresholds: [
          [0.1, 2],
          [0, 3],
        ],
      },
    ],
    ["a consistency that is no number", { consistency: Number.NaN }],
  ];
  for (const [name, section] of cases) {
    test(name, () => expect(() => calibrationOf(section)).toThrow(expect.objectContaining({ code: "BAD_MODEL" })));
  }

  test("more terms than there is room for", () => {
    const terms = Array.from({ length: 65 }, () => ["cosine", "one", 1]);
    expect(() => scoring({ calibration: calibrationOf({ terms }) })).toThrow(
      expect.objectContaining({ code: "BAD_MODEL" }),
    );
  });
});
