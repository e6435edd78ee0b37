/** The results of an evaluation in words, and trial by trial. */
import type { PromisedPoint, ScoredTrial } from "./summary.js";

export function promiseInWords({ promisedRate, falseMatchRate, verdict }: PromisedPoint): string {
  const promise = `A target of ${Number((100 * promisedRate).toPrecision(3))} %`;
  const met = `${Number((100 * falseMatchRate).toPrecision(2))} %`;
  switch (verdict) {
    case "kept":
      return `${promise} is kept: ${met} of impostors pass.`;
    case "exceeded":
      return `${promise} is exceeded: ${met} of impostors pass. Run "vivavoce calibrate" on recordings like these.`;
    case "undercut":
      return `${promise} is undercut: ${met} of impostors pass, so more genuine callers are rejected than necessary. Run "vivavoce calibrate" on recordings like these.`;
    case "too few trials":
      return `${promise} cannot be judged: ${met} of impostors pass, but there are too few speakers or trials to tell.`;
  }
}

export interface Pair {
  readonly enrolled: string;
  readonly tested: string;
  readonly raw: number;
  readonly llr: number;
}

/** The different people who score highest and the same people who score lowest, once per pair of speakers: check these labels first. */
export function worstPairs(trials: readonly ScoredTrial[], most = 10): { different: Pair[]; same: Pair[] } {
  const of = (same: boolean, isWorse: (one: ScoredTrial, other: ScoredTrial) => boolean) => {
    const worst: ScoredTrial[] = [];
    // In one pass: sorting a million trials takes longer than all figures.
    for (const trial of trials) {
      if (trial.same !== same || !trial.names) continue;
      if (worst.length === most && !isWorse(trial, worst.at(-1)!)) continue;
      const known = worst.findIndex((one) => isOfSameSpeakers(one, trial));
      if (known >= 0 && !isWorse(trial, worst[known]!)) continue;
      worst.splice(known >= 0 ? known : most - 1, 1);
      const at = worst.findIndex((one) => isWorse(trial, one));
      worst.splice(at < 0 ? worst.length : at, 0, trial);
    }
    return worst.map(({ names, raw, llr }) => ({ ...names!, raw, llr }));
  };
  return {
    different: of(false, (one, other) => one.llr > other.llr),
    same: of(true, (one, other) => one.llr < other.llr),
  };
}

const isOfSameSpeakers = (one: ScoredTrial, other: ScoredTrial): boolean =>
  (one.enrolledSpeaker === other.enrolledSpeaker && one.testedSpeaker === other.testedSpeaker) ||
  (one.enrolledSpeaker === other.testedSpeaker && one.testedSpeaker === other.enrolledSpeaker);

const LINES_AT_ONCE = 1000;

/** One line per trial, some lines at a time: a million trials with long names do not fit in one string. Speakers are numbered so that intervals can group their trials. */
export function* scoresCsv(trials: readonly ScoredTrial[]): Generator<string> {
  yield "same,enrolled,tested,score,llr,net_speech_s,snr_db,enrolled_speaker,tested_speaker\n";
  for (let i = 0; i < trials.length; i += LINES_AT_ONCE)
    yield trials
      .slice(i, i + LINES_AT_ONCE)
      .map((trial) => `${lineOf(trial)}\n`)
      .join("");
}

const lineOf = ({ same, raw, llr, netSpeechSeconds, snrDb, names, enrolledSpeaker, testedSpeaker }: ScoredTrial) =>
  [
    same ? 1 : 0,
    field(names?.enrolled ?? ""),
    field(names?.tested ?? ""),
    raw.toFixed(6),
    llr.toFixed(4),
    netSpeechSeconds.toFixed(2),
    snrDb === null ? "" : snrDb.toFixed(1),
    enrolledSpeaker,
    testedSpeaker,
  ].join();

const field = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
