/**
 * Estimates this caller's impostor scores from the list itself. All candidates but the best are impostors, unless a fraudster is listed twice. Their
 * scores show how similar this list is to this voice, better than a calibration on another population can. The more candidates, the more weight they
 * get (training/LOG.md 28).
 */
import { probit } from "./probit.js";

export interface Impostors {
  /** Center and spread of atanh of the cosine, which is normal in its upper tail. */
  readonly center: number;
  readonly spread: number;
}

export interface ComparedCandidate {
  /** Cosine. */
  readonly raw: number;
  readonly impostors: Impostors;
}

/** How many ranks after the best are used: the upper half of the list, but at most this many. */
export const mostRanks = 16;
/** With this many candidates, the list has the same weight as the calibration. */
const evenCandidates = 10;
/** The center rises at most this far above the calibration's: prints of one person under several names must not hide that person. */
const mostRise = 0.05;
/** Fewer ranks say nothing about the spread. It may be narrower than the calibration's, down to half; the square root is applied. */
const fewestForSpread = 4;
const leastNarrowing = 0.5;

/** The distribution of this candidate's impostors on a list of `candidates` prints. `scored` are the best of them, best first. */
export function impostorsOnList(
  candidate: ComparedCandidate,
  scored: readonly ComparedCandidate[],
  candidates: number,
): Impostors {
  const { center, spread } = candidate.impostors;
  const ranks = Math.min(mostRanks, Math.floor(candidates / 2));
  const others = scored
    .slice(0, ranks + 1)
    .filter((one) => one !== candidate)
    .slice(0, ranks);
  if (others.length === 0) return { center, spread };
  // Expected normal scores of rank 2 and below (Blom).
  const expected = others.map((_, i) => -probit((i + 2 - 0.375) / (candidates + 0.25)));
  const factor = others.length < fewestForSpread ? 1 : Math.sqrt(narrowing(others, expected));
  const above = others.map(
    ({ raw, impostors }, i) => fisher(raw) - impostors.center - factor * impostors.spread * expected[i]!,
  );
  const weight = candidates / (candidates + evenCandidates);
  return { center: center + Math.min(mostRise, weight * mean(above)), spread: factor * spread };
}

/** Slope of the candidates' scores over the expected scores, in units of the calibration's spread. */
function narrowing(others: readonly ComparedCandidate[], expected: readonly number[]): number {
  const inSpreads = others.map(({ raw, impostors }) => (fisher(raw) - impostors.center) / impostors.spread);
  const middle = mean(expected);
  const squares = expected.reduce((sum, z) => sum + (z - middle) ** 2, 0);
  const slope = inSpreads.reduce((sum, value, i) => sum + value * (expected[i]! - middle), 0) / squares;
  return Math.min(1, Math.max(leastNarrowing, slope));
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Fisher's transform, under which cosines of impostors are nearly normal. */
export const fisher = (cosine: number) => Math.atanh(Math.min(0.9999, Math.max(-0.9999, cosine)));
