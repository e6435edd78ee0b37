/**
 * Open-set identification by list size (ISO/IEC 19795-1): calls of people who are not on a list (FPIR: a candidate is returned) and of people who are
 * (FNIR: they are not returned, or somebody else is). Lists are drawn from the other speakers, with one enrollment of each.
 */
import type { Engine, Score } from "../engine/port.js";
import { rateOfOneComparison } from "../voiceprint/decision.js";
import { impostorsOnList, mostRanks } from "../voiceprint/list-impostors.js";
import { type Interval, percentileInterval, ruleOfThree, seededRandom } from "./bootstrap.js";
import type { ScoredTrial } from "./summary.js";

export type ScoredCandidate = Omit<Score, "reliability">;

/** A tested recording, with its scores against the enrollments of its speaker and of others, by speaker. */
export interface Caller {
  readonly own: readonly ScoredCandidate[];
  readonly others: readonly (readonly ScoredCandidate[])[];
  /** Number of the calling speaker, for intervals. */
  readonly speaker?: number;
  /** This many of `others`, from the start, are on a list before any others. */
  readonly neighbours?: number;
}

export interface OpenSetRow {
  readonly size: number;
  readonly targetRate: number;
  /** Calls of people on the list, and of people who are not on it. */
  readonly listedCalls: number;
  readonly unlistedCalls: number;
  /** At the engine's thresholds. */
  readonly fpir: number;
  readonly fnir: number;
  /** 95 %, over the callers' speakers; absent if there are too few. */
  readonly fpirInterval: Interval | null;
  readonly fnirInterval: Interval | null;
  /** With one threshold, chosen on these very calls: at the target rate, and at the rate actually met. */
  readonly oracleFnir: number;
  readonly oracleFnirAtMet: number;
}

const LIST_SIZES = [1, 10, 100, 1000] as const;
const CALL_RATES = [0.01, 0.05] as const;

export function callersOf(trials: readonly ScoredTrial[]): Caller[] {
  const byTest = new Map<number, { own: ScoredTrial[]; others: Map<number, ScoredTrial[]>; speaker: number }>();
  for (const trial of trials) {
    const caller = byTest.get(trial.test) ?? {
      own: [],
      others: new Map<number, ScoredTrial[]>(),
      speaker: trial.testedSpeaker,
    };
    byTest.set(trial.test, caller);
    if (trial.same) caller.own.push(trial);
    else {
      const list = caller.others.get(trial.enrolledSpeaker) ?? [];
      list.push(trial);
      caller.others.set(trial.enrolledSpeaker, list);
    }
  }
  return [...byTest.values()].map(({ others, ...caller }) => ({ ...caller, others: [...others.values()] }));
}

/** One row for each size and rate that there are enough speakers for. */
export function openSet(
  callers: readonly Caller[],
  threshold: Engine["threshold"],
  {
    sizes = LIST_SIZES as readonly number[],
    rates = CALL_RATES as readonly number[],
    calls = 4000,
    seed = 1,
    resamples = 1000,
  } = {},
): OpenSetRow[] {
  const rows: OpenSetRow[] = [];
  for (const size of sizes) {
    const able = callers.filter(({ others }) => others.length >= size);
    if (able.length < callers.length / 2) continue;
    const random = seededRandom(seed);
    const listed: { own: ScoredCandidate; found: boolean; speaker: number }[] = [];
    const unlisted: (ScoredCandidate & { speaker: number })[] = [];
    /** The best candidate, with the impostor distribution of the whole list. */
    const onList = (best: ScoredCandidate, others: readonly ScoredCandidate[]): ScoredCandidate => ({
      ...best,
      impostors: impostorsOnList(best, others, size),
    });
    const draws = Math.max(1, Math.ceil(calls / able.length));
    for (const { own, others, neighbours, speaker = 0 } of able)
      for (let i = 0; i < draws; i++) {
        const [best, ...next] = bestOf(drawn(others, size, random, neighbours));
        unlisted.push({ ...onList(best!, next), speaker });
        if (own.length === 0) continue;
        const candidate = own[Math.floor(random() * own.length)]!;
        const rest = bestOf(drawn(others, size - 1, random, neighbours));
        const found = rest.length === 0 || candidate.llr > rest[0]!.llr;
        listed.push({ own: onList(candidate, rest), found, speaker });
      }
    if (listed.length === 0) continue;
    for (const targetRate of rates) {
      const rate = rateOfOneComparison(targetRate, size, 1);
      const passes = (one: ScoredCandidate) => one.llr >= threshold(rate, one);
      const fpir = unlisted.filter(passes).length / unlisted.length;
      const isMissed = ({ own, found }: (typeof listed)[number], above: (one: ScoredCandidate) => boolean) =>
        !found || !above(own);
      const missed = (above: (one: ScoredCandidate) => boolean) =>
        listed.filter((call) => isMissed(call, above)).length / listed.length;
      const oracle = (share: number) => {
        const scores = unlisted.map(({ llr }) => llr).sort((a, b) => b - a);
        const at = scores[Math.min(scores.length - 1, Math.floor(share * scores.length))]!;
        return missed(({ llr }) => llr > at);
      };
      rows.push({
        size,
        targetRate,
        listedCalls: listed.length,
        unlistedCalls: unlisted.length,
        fpir,
        fnir: missed(passes),
        fpirInterval: intervalOf(unlisted, passes, resamples, seed),
        fnirInterval: intervalOf(listed, (call) => isMissed(call, passes), resamples, seed),
        oracleFnir: oracle(targetRate),
        oracleFnirAtMet: oracle(fpir),
      });
    }
  }
  return rows;
}

/** Resamples the calling speakers: calls of one speaker are alike. */
function intervalOf<Call extends { readonly speaker: number }>(
  calls: readonly Call[],
  isError: (call: Call) => boolean,
  resamples: number,
  seed: number,
): Interval | null {
  const bySpeaker = new Map<number, { calls: number; errors: number }>();
  for (const call of calls) {
    const { calls, errors } = bySpeaker.get(call.speaker) ?? { calls: 0, errors: 0 };
    bySpeaker.set(call.speaker, { calls: calls + 1, errors: errors + (isError(call) ? 1 : 0) });
  }
  const speakers = [...bySpeaker.values()];
  if (speakers.length < 3) return null;
  const random = seededRandom(seed);
  const rates = Array.from({ length: resamples }, () => {
    const drawn = speakers.map(() => speakers[Math.floor(random() * speakers.length)]!);
    return drawn.reduce((sum, { errors }) => sum + errors, 0) / drawn.reduce((sum, { calls }) => sum + calls, 0);
  });
  const interval = percentileInterval(rates);
  if (interval === null || speakers.some(({ errors }) => errors > 0)) return interval;
  return { low: 0, high: ruleOfThree(speakers.length) };
}

/** One enrollment of each of `size` speakers. */
function drawn(
  speakers: readonly (readonly ScoredCandidate[])[],
  size: number,
  random: () => number,
  neighbours = 0,
): ScoredCandidate[] {
  const order = speakers.map((_, i) => i);
  const found: ScoredCandidate[] = [];
  for (let i = 0; i < size; i++) {
    const j = i + Math.floor(random() * ((i < neighbours ? neighbours : order.length) - i));
    [order[i], order[j]] = [order[j]!, order[i]!];
    const enrollments = speakers[order[i]!]!;
    found.push(enrollments[Math.floor(random() * enrollments.length)]!);
  }
  return found;
}

/** The candidates that a decision considers, best first. */
const bestOf = (candidates: readonly ScoredCandidate[]): ScoredCandidate[] =>
  [...candidates].sort((one, other) => other.llr - one.llr).slice(0, 1 + mostRanks);
