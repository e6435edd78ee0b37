import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Calibration, calibrationOf } from "../../src/engine/calibration.js";
import { Kernels } from "../../src/engine/kernels.js";
import type { Template, Voice } from "../../src/engine/port.js";
import { Scoring, type ScoringModel } from "../../src/engine/scoring.js";
import { dimensions, dot, kernelsModule, like, random, unit, voice } from "./vectors.js";

const revision = "a".repeat(64);
const fitted: Calibration = {
  terms: [
    ["one", "one", -3],
    ["cosine", "one", 7],
    ["probeSpeech", "one", 0.25],
    ["bandwidthDifference", "cosine", -1],
    ["leastSnr", "one", 0.125],
  ],
  reliability: [
    ["one", "one", -2],
    ["leastSpeech", "one", 1],
  ],
  impostors: {
    center: [
      ["one", "one", 0.1],
      ["leastBandwidth", "one", 0.2],
    ],
    spread: [["one", "one", 0.15]],
  },
  consistency: 0.4,
  speakers: { cosine: 0.4, seconds: 2 },
};

function scoring(change: Partial<ScoringModel> = {}): Scoring {
  const kernels = new Kernels(kernelsModule);
  const made = new Scoring(kernels, { dimensions, revision, voiceClass: null, calibration: fitted, ...change });
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

  test("the template is the speech-weighted mean, at unit length", () => {
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

  test("another person's segment is left out, however long", () => {
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

  test("one segment gives a template; two that disagree, or no segments, give none", () => {
    const one = scoring().train([stranger]);
    expect(one.segments).toEqual([{ score: 1, consistent: true }]);
    expect(Math.abs(dot(one.template!.embedding, stranger.embedding) - 1)).toBeLessThan(1e-6);
    const two = scoring().train([stranger, segments[0]!]);
    expect(two.template).toBeNull();
    expect(two.segments.map(({ consistent }) => consistent)).toEqual([false, false]);
    expect(two.segments[0]!.score).toBe(two.segments[1]!.score);
    expect(scoring().train([])).toEqual({ segments: [], template: null });
  });

  test("values that were not measured stay unknown", () => {
    const unknown = segments.map((known) => ({ ...known, snrDb: null, bandwidthHz: null }));
    expect(scoring().train(unknown).template).toMatchObject({ snrDb: null, bandwidthHz: null });
    expect(scoring().train([segments[0]!, ...unknown.slice(1)]).template).toMatchObject({ snrDb: 20 });
  });

  test("too many segments, no speech, and vectors that are not of unit length are refused", () => {
    const code = (wanted: string) => expect.objectContaining({ code: wanted });
    expect(() => scoring().train(Array.from({ length: 257 }, () => stranger))).toThrow(code("TOO_MANY_SEGMENTS"));
    expect(() => scoring().train([segment(person, 0)])).toThrow(code("BAD_ARGUMENT"));
    expect(() => scoring().train([segment(person, Number.NaN)])).toThrow(code("BAD_ARGUMENT"));
    expect(() => scoring().train([segment(new Float32Array(256))])).toThrow(code("BAD_EMBEDDING"));
  });
});

describe("scores", () => {
  test("cosine and calibration follow their definition", () => {
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
    const bandwidth = (5500 - 4000) / 3000;
    const llr = -3 + 7 * raw + 0.25 * Math.log(2.5) - (1 - bandwidth) * raw + 0.125 * 1.2;
    expect(Math.abs(score!.raw - raw)).toBeLessThan(1e-6);
    expect(Math.abs(score!.llr - llr)).toBeLessThan(1e-5);
    expect(score!.reliability).toBeCloseTo(1 / (1 + Math.exp(2 - Math.log(2.5))), 12);
    expect(score!.impostors).toEqual({ center: 0.1 + 0.2 * bandwidth, spread: 0.15 });
    const { unlike, identical } = score!.ratios;
    expect(unlike + score!.raw * (identical - unlike)).toBeCloseTo(score!.llr, 12 /* rounding */);
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

  test("never NaN: a voice against itself, against its opposite, with nothing measured", () => {
    const embedding = voice(random(14));
    const unknown = { netSpeechSeconds: 0, snrDb: null, bandwidthHz: null };
    for (const other of [embedding, embedding.map((value) => -value)]) {
      const [score] = scoring().scores([{ embedding: other, revision, ...unknown }], { embedding, ...unknown });
      const { ratios, impostors, ...rest } = score!;
      const told = [rest, ratios, impostors].flatMap((part): number[] => Object.values(part));
      expect(told.every(Number.isFinite)).toBe(true);
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
  const rate = fc.double({ min: 1e-9, max: 0.5, noNaN: true });
  const expectation = fc.record({
    ratios: fc.record({
      unlike: fc.double({ min: -20, max: 0, noNaN: true }),
      identical: fc.double({ min: 1, max: 30, noNaN: true }),
    }),
    impostors: fc.record({
      center: fc.double({ min: -0.5, max: 0.8, noNaN: true }),
      spread: fc.double({ min: 0.05, max: 0.3, noNaN: true }),
    }),
  });

  /** P(Z > z) by its continued fraction and, near 0, its series: another method than the kernel's. */
  function normalTail(z: number): number {
    const density = Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
    if (z < 2.5) {
      let term = z;
      let sum = z;
      for (let n = 1; n < 80; n++) {
        term *= (z * z) / (2 * n + 1);
        sum += term;
      }
      return 0.5 - density * sum;
    }
    let fraction = 0;
    for (let n = 80; n > 0; n--) fraction = n / (z + fraction);
    return density / (z + fraction);
  }

  test("impostors with normal atanh cosine exceed them at the rate", () => {
    const kernels = scoring();
    fc.assert(
      fc.property(rate, expectation, (given, { ratios, impostors }) => {
        const at = kernels.threshold(given, { ratios, impostors });
        const cosine = (at - ratios.unlike) / (ratios.identical - ratios.unlike);
        const z = (Math.atanh(cosine) - impostors.center) / impostors.spread;
        expect(Math.abs(normalTail(z) / given - 1)).toBeLessThan(1e-5);
      }),
    );
  });

  test("a smaller rate has a higher threshold, and an identical recording passes any", () => {
    const kernels = scoring();
    fc.assert(
      fc.property(rate, rate, expectation, (a, b, given) => {
        const [strict, lax] = [Math.min(a, b), Math.max(a, b)].map((one) => kernels.threshold(one, given));
        expect(strict!).toBeGreaterThanOrEqual(lax!);
        expect(strict!).toBeLessThan(given.ratios.identical);
      }),
    );
  });

  test("a higher cosine is more evidence, whatever the quality", () => {
    const kernels = scoring();
    const next = random(31);
    const embedding = voice(next);
    const quality = fc.record({
      netSpeechSeconds: fc.double({ min: 0.1, max: 300, noNaN: true }),
      snrDb: fc.option(fc.double({ min: -20, max: 60, noNaN: true })),
      bandwidthHz: fc.option(fc.double({ min: 1000, max: 24_000, noNaN: true })),
    });
    fc.assert(
      fc.property(quality, quality, (t, p) => {
        const llrs = [0.2, 0.5, 0.8].map((likeness) => {
          const probe = { ...p, embedding: like(embedding, likeness, random(5)) };
          const [score] = kernels.scores([{ ...t, embedding, revision }], probe);
          return [score!.raw, score!.llr] as const;
        });
        const byLlr = [...llrs].sort(([, a], [, b]) => a - b);
        expect(byLlr).toEqual([...llrs].sort(([a], [b]) => a - b));
      }),
      { numRuns: 60 },
    );
  });

  test("invalid rates, and a rate without a score, are refused", () => {
    const plain = { ratios: { unlike: -6, identical: 14 }, impostors: { center: 0.2, spread: 0.17 } };
    for (const none of [0, -1, 1, 1.5, Number.NaN]) {
      expect(() => scoring().threshold(none, plain)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
    }
    for (const none of [undefined, 3, {}]) {
      expect(() => scoring().threshold(0.01, none as never)).toThrow(
        expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringContaining("engine.score") }),
      );
    }
  });

  test("a calibration whose ratio falls with the cosine, or whose impostors depend on it, is refused", () => {
    const section = { ...fitted, impostors: { ...fitted.impostors, center: [["cosine", "one", 1]] } };
    expect(() => calibrationOf(section)).toThrow(/quality features only/);
    const falling = [
      ["cosine", "one", 5],
      ["cosine", "probeBandwidth", -6],
    ];
    expect(() => calibrationOf({ ...fitted, terms: falling })).toThrow(/higher cosine/);
    expect(() => calibrationOf({ ...fitted, terms: [["cosine", "cosine", 5]] })).toThrow(/linear in the cosine/);
  });

  test("a calibration that would accept voices that are nothing alike is refused", () => {
    const { center, spread } = fitted.impostors;
    const low = { center: [...center, ["probeSnr", "leastSpeech", 0.5]], spread };
    for (const impostors of [
      low,
      { center: [["one", "one", -0.35]], spread },
      { center, spread: [["one", "one", -1]] },
    ])
      expect(() => calibrationOf({ ...fitted, impostors })).toThrow(
        /threshold above a cosine of 0 for 1 % false accepts/,
      );
    const strict = { center: [["one", "one", -0.34]], spread };
    expect(calibrationOf({ ...fitted, impostors: strict }).impostors).toEqual(strict);
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

  test("one voice is one speaker, two are several, none is 0", () => {
    const kernels = scoring();
    expect(kernels.summarize(windowsOf(anna, 1)).speakers).toBe(1);
    expect(kernels.summarize(windowsOf(anna, 20)).speakers).toBe(1);
    expect(kernels.summarize([...windowsOf(anna, 6), ...windowsOf(bert, 3)]).speakers).toBe(2);
    expect(
      kernels.summarize(windowsOf(anna, 9).flatMap((window, i) => [window, windowsOf(bert, 9)[i]!])).speakers,
    ).toBe(2);
    expect(kernels.summarize([])).toEqual({ embedding: null, voiceClass: null, speakers: 0 });
  });

  test("hours of windows: the speech-weighted mean is the same as in one sum", () => {
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

  test("two people in turns are parted in any number of windows", () => {
    for (const [count, turn] of [
      [2, 1],
      [40, 5],
      [257, 20],
      [1000, 40],
    ] as const) {
      const isBert = (i: number) => Math.floor(i / turn) % 2;
      const windows = Array.from({ length: count }, (_, i) => windowsOf(isBert(i) ? bert : anna, 1)[0]!);
      const groups = scoring().partVoices(windows);
      expect(groups.length).toBe(count);
      const wrong = groups.filter((group, i) => (group === groups[0] ? 0 : 1) !== isBert(i)).length;
      // Where only every nth window is compared, a turn begins up to half of n early or late.
      expect(wrong).toBeLessThanOrEqual(count <= 256 ? 0 : 2 * (count / turn));
    }
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
    ["a weight that is not a number", { terms: [["cosine", "one", "1"]] }],
    ["terms that are not a list", { terms: 3 }],
    ["a consistency that is not a number", { consistency: Number.NaN }],
    ...Object.keys(fitted).map((part): [string, Record<string, unknown>] => [`no ${part}`, { [part]: undefined }]),
  ];
  for (const [name, section] of cases) {
    test(name, () =>
      expect(() => calibrationOf({ ...fitted, ...section })).toThrow(expect.objectContaining({ code: "BAD_MODEL" })),
    );
  }

  test("more terms than the kernels support", () => {
    const terms = Array.from({ length: 65 }, () => ["cosine", "one", 1]);
    expect(() => scoring({ calibration: calibrationOf({ ...fitted, terms }) })).toThrow(
      expect.objectContaining({ code: "BAD_MODEL" }),
    );
  });
});
