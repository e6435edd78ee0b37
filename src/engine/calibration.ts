/**
 * What the section `calibration` of a model file says, as `training/` writes it:
 *
 *   terms        [[feature, feature, weight], …]  llr = Σ weight · feature · feature
 *   reliability  [[feature, feature, weight], …]  reliability = logistic(Σ …)
 *   strangers    { oneInTen, oneInHundred }: such terms, of the quality alone, of the ratio that so many different people exceed
 *   thresholds   [[false-accept rate, steps], …]  measured on different people, in steps from oneInTen to oneInHundred; between them and
 *                                                 beyond, straight in ln rate
 *   nearest      cohort voices that the s-norm looks at
 *   consistency  cosine below which a segment disagrees with the others
 *   speakers     { cosine, seconds }: two groups of windows less alike than this, each with this much speech, are two people
 *
 * What each feature is stands in assembly/score/calibration.ts.
 */
import { EngineError } from "./engine-error.js";

export const featureNames = [
  "one",
  "cosine",
  "snorm",
  "znorm",
  "tnorm",
  "templateSpeech",
  "probeSpeech",
  "leastSpeech",
  "templateSnr",
  "probeSnr",
  "leastSnr",
  "templateWideness",
  "probeWideness",
  "leastWideness",
  "widenessDifference",
] as const;

export type FeatureName = (typeof featureNames)[number];
export type Term = readonly [FeatureName, FeatureName, number];

export interface Calibration {
  readonly terms: readonly Term[];
  readonly reliability: readonly Term[];
  readonly strangers: { readonly oneInTen: readonly Term[]; readonly oneInHundred: readonly Term[] };
  readonly thresholds: readonly (readonly [rate: number, steps: number])[];
  readonly nearest: number;
  readonly consistency: number;
  readonly speakers: { readonly cosine: number; readonly seconds: number };
}

/**
 * For a network whose calibration has not been fitted yet: cosines of 0.3 mean nothing either way, more speech counts more.
 * Ratios made with it are not calibrated; a released model carries its own. The two cosines were read off development speech
 * (18 wideband, 20 telephone speakers, 4 s each): of one recording's windows none fell under 0.45, of two people's pairs 7 % wideband
 * and 9 % telephone stayed above; a segment of another session agreed by less than 0.38 in 0 % and 5 %, a stranger's by more in 11 % and 9 %.
 */
const unfitted: Calibration = {
  terms: [
    ["one", "one", -6],
    ["cosine", "one", 20],
  ],
  reliability: [
    ["one", "one", -1],
    ["leastSpeech", "one", 1.5],
    ["leastSnr", "one", 0.8],
  ],
  strangers: { oneInTen: [], oneInHundred: [["one", "one", 1]] },
  thresholds: [],
  nearest: 200,
  consistency: 0.38,
  speakers: { cosine: 0.45, seconds: 2 },
};

function bad(what: string): EngineError {
  return new EngineError("BAD_MODEL", `the model's calibration is not usable: ${what}`);
}

function numberOf(value: unknown, fallback: number, what: string): number {
  if (value === undefined) return fallback;
  if (typeof value !== "number" || !Number.isFinite(value)) throw bad(`${what} is no number`);
  return value;
}

function termsOf(value: unknown, fallback: readonly Term[], what: string): readonly Term[] {
  if (value === undefined) return fallback;
  if (!Array.isArray(value)) throw bad(`${what} is no list`);
  return value.map((term: unknown): Term => {
    const [a, b, weight] = Array.isArray(term) ? (term as unknown[]) : [];
    if (!featureNames.includes(a as FeatureName) || !featureNames.includes(b as FeatureName)) {
      throw bad(`${what} names a feature that does not exist: ${String(a)}, ${String(b)}`);
    }
    return [a as FeatureName, b as FeatureName, numberOf(weight, Number.NaN, what)];
  });
}

/** Before a comparison is made there is its quality, and no score. */
const scores: readonly FeatureName[] = ["cosine", "snorm", "znorm", "tnorm"];

function qualityTermsOf(value: unknown, fallback: readonly Term[], what: string): readonly Term[] {
  const terms = termsOf(value, fallback, what);
  const [a, b] = terms.find(([a, b]) => scores.includes(a) || scores.includes(b)) ?? [];
  if (a) throw bad(`${what} is made of quality alone, not of ${a}, ${b}`);
  return terms;
}

function thresholdsOf(value: unknown): Calibration["thresholds"] {
  if (value === undefined) return unfitted.thresholds;
  if (!Array.isArray(value) || value.length < 2) throw bad("thresholds are a list of at least two");
  const pairs = value.map((pair: unknown): [number, number] => {
    const [rate, steps] = Array.isArray(pair) ? (pair as unknown[]) : [];
    return [numberOf(rate, Number.NaN, "a rate"), numberOf(steps, Number.NaN, "a threshold")];
  });
  pairs.sort(([a], [b]) => b - a);
  for (const [i, [rate, steps]] of pairs.entries()) {
    const before = pairs[i - 1];
    if (!(rate > 0 && rate <= 1)) throw bad(`${rate} is no false-accept rate`);
    if (before && !(rate < before[0] && steps >= before[1])) throw bad("a smaller rate needs a higher threshold");
  }
  return pairs;
}

export function calibrationOf(section: Readonly<Record<string, unknown>> | null): Calibration {
  if (section === null) return unfitted;
  const speakers = (section.speakers ?? {}) as Record<string, unknown>;
  const strangers = (section.strangers ?? {}) as Record<string, unknown>;
  return {
    terms: termsOf(section.terms, unfitted.terms, "terms"),
    reliability: termsOf(section.reliability, unfitted.reliability, "reliability"),
    strangers: {
      oneInTen: qualityTermsOf(strangers.oneInTen, unfitted.strangers.oneInTen, "one stranger in ten"),
      oneInHundred: qualityTermsOf(
        strangers.oneInHundred,
        unfitted.strangers.oneInHundred,
        "one stranger in a hundred",
      ),
    },
    thresholds: thresholdsOf(section.thresholds),
    nearest: numberOf(section.nearest, unfitted.nearest, "nearest"),
    consistency: numberOf(section.consistency, unfitted.consistency, "consistency"),
    speakers: {
      cosine: numberOf(speakers.cosine, unfitted.speakers.cosine, "speakers.cosine"),
      seconds: numberOf(speakers.seconds, unfitted.speakers.seconds, "speakers.seconds"),
    },
  };
}
