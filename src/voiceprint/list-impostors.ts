/**
 * What a list says of the impostors of this caller. All but the best candidate are impostors, save for a fraudster who is listed twice: where they lie
 * shows how near this list comes to this voice, better than the calibration can know it for a population it never saw. The more candidates, the more
 * they count (training/LOG.md 28).
 */
import { probit } from "./probit.js";

export interface Impostors {
  /** Of atanh of the cosine, normal in its upper tail. */
  readonly center: number;
  readonly spread: number;
}

export interface ComparedCandidate {
  /** Cosine. */
  readonly raw: number;
  readonly impostors: Impostors;
}

/** Ranks behind the best that are looked at: the upper half of the list, and of long lists no more than these. */
export const mostRanks = 16;
/** Candidates of a list at which it counts as much as the calibration. */
const evenCandidates = 10;
/** Above what the calibration says the center goes no further: prints of one person under several names must not hide that person. */
const mostRise = 0.05;
/** Fewer ranks say nothing of the spread; it may be narrower than the calibration says, down to half of it, and is taken half-way. */
const fewestForSpread = 4;
const leastNarrowing = 0.5;

/** Where the impostors of this candidate lie on a list of so many `candidates`. `scored`: the best of them, best first. */
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
  // Where a normal distribution has the ranks from 2 on (Blom).
  const expected = others.map((_, i) => -probit((i + 2 - 0.375) / (candidates + 0.25)));
  const factor = others.length < fewestForSpread ? 1 : Math.sqrt(narrowing(others, expected));
  const above = others.map(
    ({ raw, impostors }, i) => fisher(raw) - impostors.center - factor * impostors.spread * expected[i]!,
  );
  const weight = candidates / (candidates + evenCandidates);
  return { center: center + Math.min(mostRise, weight * mean(above)), spread: factor * spread };
}

/** Slope of the candidates over the ranks, in spreads of the calibration. */
function narrowing(others: readonly ComparedCandidate[], expected: readonly number[]): number {
  const inSpreads = others.map(({ raw, impostors }) => (fisher(raw) - impostors.center) / impostors.spread);
  const middle = mean(expected);
  const squares = expected.reduce((sum, z) => sum + (z - middle) ** 2, 0);
  const slope = inSpreads.reduce((sum, value, i) => sum + value * (expected[i]! - middle), 0) / squares;
  return Math.min(1, Math.max(leastNarrowing, slope));
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

const fisher = (cosine: number) => Math.atanh(Math.min(0.9999, Math.max(-0.9999, cosine)));
