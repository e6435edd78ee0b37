/**
 * The contents of a model's section `calibration`, and of an operator's calibration file:
 *
 *   terms        [[feature, feature, weight], …]  llr = Σ weight · feature · feature, linear in the cosine
 *   reliability  [[feature, feature, weight], …]  reliability = logistic(Σ …)
 *   impostors    { center, spread }: terms of quality features only; atanh of impostors' cosine is normal in its upper tail, with this center
 *                and this spread
 *   consistency  cosine below which a segment disagrees with the others
 *   speakers     { cosine, seconds }: two groups of windows less alike than this, each with this much speech, are two people
 *
 * assembly/score/calibration.ts defines each feature.
 */
import { badModel } from "./engine-error.js";

export const featureNames = [
  "one",
  "cosine",
  "templateSpeech",
  "probeSpeech",
  "leastSpeech",
  "templateSnr",
  "probeSnr",
  "leastSnr",
  "templateBandwidth",
  "probeBandwidth",
  "leastBandwidth",
  "bandwidthDifference",
] as const;

export type FeatureName = (typeof featureNames)[number];
export type Term = readonly [FeatureName, FeatureName, number];

export interface Calibration {
  readonly terms: readonly Term[];
  readonly reliability: readonly Term[];
  readonly impostors: { readonly center: readonly Term[]; readonly spread: readonly Term[] };
  readonly consistency: number;
  readonly speakers: { readonly cosine: number; readonly seconds: number };
}

/** Lower limit of the impostors' spread, so that a smaller rate always gives a higher threshold. A fit must not go below it. */
export const leastSpread = 0.05;

const bad = (what: string) => badModel(`the calibration cannot be used: ${what}`);

/** `String` throws for some objects that JSON can hold. */
const shown = (value: unknown): string => `${JSON.stringify(value)}`.slice(0, 64);

function numberOf(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw bad(`${what} must be a number, got ${shown(value)}`);
  return value;
}

function termsOf(value: unknown, what: string): readonly Term[] {
  if (!Array.isArray(value)) throw bad(`${what} must be a list, got ${shown(value)}`);
  return value.map((term: unknown): Term => {
    const [a, b, weight] = Array.isArray(term) ? (term as unknown[]) : [];
    if (!featureNames.includes(a as FeatureName) || !featureNames.includes(b as FeatureName))
      throw bad(`${what} names an unknown feature: ${shown(a)}, ${shown(b)}`);
    return [a as FeatureName, b as FeatureName, numberOf(weight, `each weight of ${what}`)];
  });
}

/** What each feature can be, clamped. */
const ranges: Readonly<Record<FeatureName, readonly [number, number]>> = {
  one: [1, 1],
  cosine: [-1, 1],
  templateSpeech: [Math.log(0.5), Math.log(16)],
  probeSpeech: [Math.log(0.5), Math.log(16)],
  leastSpeech: [Math.log(0.5), Math.log(16)],
  templateSnr: [-0.5, 2],
  probeSnr: [-0.5, 2],
  leastSnr: [-0.5, 2],
  templateBandwidth: [0, 1],
  probeBandwidth: [0, 1],
  leastBandwidth: [0, 1],
  bandwidthDifference: [0, 1],
};

/** No quality gives these terms a lower sum. */
const leastOf = (terms: readonly Term[]): number =>
  terms.reduce(
    (sum, [a, b, weight]) => sum + Math.min(...ranges[a].flatMap((x) => ranges[b].map((y) => weight * x * y))),
    0,
  );

/** The ratio is linear in the cosine and must rise with it at every quality. */
function ratioTermsOf(value: unknown): readonly Term[] {
  const terms = termsOf(value, "terms");
  if (terms.some(([a, b]) => a === "cosine" && b === "cosine")) throw bad("terms must be linear in the cosine");
  const slope = terms.flatMap(([a, b, weight]): Term[] =>
    a === "cosine" ? [[b, "one", weight]] : b === "cosine" ? [[a, "one", weight]] : [],
  );
  if (!(leastOf(slope) > 0)) throw bad("terms must give a higher ratio for a higher cosine, at every quality");
  return terms;
}

function qualityTermsOf(value: unknown, what: string): readonly Term[] {
  const terms = termsOf(value, what);
  const [a, b] = terms.find(([a, b]) => a === "cosine" || b === "cosine") ?? [];
  if (a) throw bad(`${what} must use quality features only, got ${a}, ${b}`);
  return terms;
}

/** How many spreads above the center the best of 100 impostors is. */
const bestOfHundred = 2.33;

/** A cosine of 0 says nothing about two voices, and a threshold below it would accept almost everybody. */
function impostorsOf(value: unknown): Calibration["impostors"] {
  const given = (value ?? {}) as Record<string, unknown>;
  const center = qualityTermsOf(given.center, "impostors.center");
  const spread = qualityTermsOf(given.spread, "impostors.spread");
  if (!(leastOf(center) + bestOfHundred * leastOf(spread) > 0))
    throw bad("impostors must give a threshold above a cosine of 0 for 1 % false accepts, at every quality");
  return { center, spread };
}

export function calibrationOf(section: Readonly<Record<string, unknown>> | null): Calibration {
  if (section === null) throw badModel("the model has no calibration; open it with a calibration file");
  const speakers = (section.speakers ?? {}) as Record<string, unknown>;
  return {
    terms: ratioTermsOf(section.terms),
    reliability: qualityTermsOf(section.reliability, "reliability"),
    impostors: impostorsOf(section.impostors),
    consistency: numberOf(section.consistency, "consistency"),
    speakers: {
      cosine: numberOf(speakers.cosine, "speakers.cosine"),
      seconds: numberOf(speakers.seconds, "speakers.seconds"),
    },
  };
}
