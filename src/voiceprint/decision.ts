/** From a calibrated score to a decision. Thresholds follow from the target false-accept rate, never from a number here. */

import * as attackTypes from "../contract/gen/vendor/biosec/v1/audio/attacks_pb.js";
import { Decision } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { DecisionReason } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";

/** What speaks for the same person (or for an attack), as a calibrated natural-log likelihood ratio. */
export interface Evidence {
  readonly llr: number;
  /** 0..1 */
  readonly reliability: number;
}

/** Evidence beside the threshold it was held against. */
export interface JudgedEvidence extends Evidence {
  /** Where the decision turns: the middle of a band in which none is made. */
  readonly threshold: number;
  /** Of that band; what the reliability gives by default. */
  readonly halfWidth?: number;
}

export interface Outcome {
  readonly decision: Decision;
  readonly reason: DecisionReason;
}

export type PrintKind = "person" | "fraudster";

/** A further look hears the same voice again: two looks let as many impostors pass as 1.2 to 1.6 independent ones (training/LOG.md 22). */
const weightOfFurtherLook = 0.5;

/**
 * The rate for one comparison, so that the call as a whole keeps the target: a call compares with every candidate at
 * every look, and any of them may falsely accept.
 */
export function rateOfOneComparison(targetRate: number, candidates: number, looks: number): number {
  const comparisons = Math.max(1, candidates) * (1 + weightOfFurtherLook * Math.max(0, looks - 1));
  return -Math.expm1(Math.log1p(-targetRate) / comparisons);
}

/**
 * Half-width of the band around the threshold in which no decision is made. Without any reliability the ratio may be
 * wrong by a factor of ten either way; with full reliability it is what it says.
 */
export const uncertainHalfWidth = (reliability: number): number =>
  (1 - Math.min(1, Math.max(0, reliability))) * Math.LN10;

export const halfWidthOf = ({ reliability, halfWidth }: JudgedEvidence): number =>
  halfWidth ?? uncertainHalfWidth(reliability);

/** A candidate on a list that would pass at this multiple of the target rate is UNCERTAIN, not cleared. */
const suspicion = 10;

export interface Comparisons {
  /** Of false accepts, for the call as a whole. */
  readonly targetRate: number;
  readonly candidates: number;
  readonly looks: number;
}

/**
 * The best candidate of a call against what impostors reach in such calls. Its ratio is a match from `thresholdAt(rate)` on, so the rate is kept
 * whatever the reliability; below it lies the band in which nothing is decided: as wide as the reliability says, and for a list as
 * far down as a candidate is suspect.
 */
export function judgedEvidence(
  { llr, reliability }: Evidence,
  { targetRate, candidates, looks }: Comparisons,
  thresholdAt: (rate: number) => number,
): JudgedEvidence {
  const accepted = thresholdAt(rateOfOneComparison(targetRate, candidates, looks));
  const suspect =
    candidates > 1
      ? thresholdAt(rateOfOneComparison(Math.min(0.5, suspicion * targetRate), candidates, looks))
      : accepted;
  const halfWidth = Math.max(uncertainHalfWidth(reliability), (accepted - suspect) / 2);
  return { llr, reliability, threshold: accepted - halfWidth, halfWidth };
}

export type Verdict = "above" | "below" | "near";

export function judge(evidence: JudgedEvidence): Verdict {
  const { llr, threshold } = evidence;
  const half = halfWidthOf(evidence);
  if (llr >= threshold + half) return "above";
  return llr < threshold - half ? "below" : "near";
}

const rank: Readonly<Record<Verdict, number>> = { below: 0, near: 1, above: 2 };

/**
 * Sorts evidence, the strongest first. One that is clearly above its threshold goes before a higher ratio that is not:
 * thresholds differ with how well each was heard.
 */
export const strongestFirst =
  (verdictOf: (evidence: JudgedEvidence) => Verdict) =>
  (one: JudgedEvidence, other: JudgedEvidence): number =>
    rank[verdictOf(other)] - rank[verdictOf(one)] || other.llr - other.threshold - (one.llr - one.threshold);

const outcomes: Readonly<Record<PrintKind, Readonly<Record<Verdict, Outcome>>>> = {
  person: {
    above: { decision: Decision.AUTHENTIC, reason: DecisionReason.VOICEPRINT_MATCH },
    below: { decision: Decision.NO_MATCH, reason: DecisionReason.VOICEPRINT_NO_MATCH },
    near: { decision: Decision.UNCERTAIN, reason: DecisionReason.LOW_RELIABILITY },
  },
  fraudster: {
    above: { decision: Decision.FRAUD, reason: DecisionReason.FRAUDSTER_INDICATION },
    below: { decision: Decision.NO_RISK_DETECTED, reason: DecisionReason.NO_RISK_DETECTED },
    near: { decision: Decision.UNCERTAIN, reason: DecisionReason.LOW_RELIABILITY },
  },
};

export const decide = (kind: PrintKind, evidence: JudgedEvidence): Outcome => outcomes[kind][judge(evidence)];

/**
 * For attacks the band has no bound: a network that heard nothing (ratio 1, reliability 0) is far below any threshold,
 * and must not pass for one that heard a living voice. With half of what can be known it is a factor of ten either way.
 */
export function attackHalfWidth(reliability: number): number {
  const known = Math.min(1, Math.max(0, reliability));
  return known === 0 ? Number.POSITIVE_INFINITY : ((1 - known) / known) * Math.LN10;
}

/** With as much left open, a ratio of 1 still speaks for a living voice. */
const mostLeftOpen = Math.log(100);

/**
 * An attack is found above the threshold. But that no risk was detected is said only where the evidence speaks for a living voice: a synthesizer
 * that the network never heard often stays between the two, and there nothing is known.
 */
export function judgeAttack({ llr, reliability, threshold }: JudgedEvidence): Verdict {
  const half = attackHalfWidth(reliability);
  if (llr >= threshold + half) return "above";
  return llr < Math.min(0, mostLeftOpen - half) ? "below" : "near";
}

export type AttackKind = "synthetic" | "playback";

export interface AttackOutcome {
  readonly decision: Decision;
  readonly reason: attackTypes.DecisionReason;
  /** What it adds to the decision over all factors. */
  readonly general: Outcome;
}

export function decideAttack(kind: AttackKind, evidence: JudgedEvidence): AttackOutcome {
  const verdict = judgeAttack(evidence);
  const general = outcomes.fraudster[verdict];
  return { decision: general.decision, reason: attackReasons[kind][verdict], general };
}

const { DecisionReason: AttackReason } = attackTypes;
const attackReasons: Readonly<Record<AttackKind, Readonly<Record<Verdict, attackTypes.DecisionReason>>>> = {
  synthetic: {
    above: AttackReason.SYNTHETIC_SPEECH_DETECTED,
    below: AttackReason.AUDIO_OK,
    near: AttackReason.LOW_RELIABILITY,
  },
  playback: {
    above: AttackReason.PLAYBACK_INDICATION,
    below: AttackReason.AUDIO_OK,
    near: AttackReason.LOW_RELIABILITY,
  },
};

export interface PartDecisions {
  readonly authentication?: Outcome | undefined;
  readonly fraud?: Outcome | undefined;
  /** As for fraudsters: FRAUD, NO_RISK_DETECTED, or why neither. */
  readonly attacks: readonly Outcome[];
}

/**
 * The decision over all factors; `risk` is theirs together, 0..1000. `null` when nothing was checked.
 * A part that was asked for and failed leaves nothing but a sign of fraud certain.
 */
export function generalDecision(
  { authentication, fraud, attacks }: PartDecisions,
  risk: number | null,
): Outcome | null {
  const risks = fraud ? [fraud, ...attacks] : attacks;
  const indicated = risks.find(({ decision }) => decision === Decision.FRAUD);
  if (indicated) return indicated;
  // Where only risk checks ran, no risk is an answer only when each of them could give one.
  const outcome =
    authentication ?? risks.find(({ decision }) => decision !== Decision.NO_RISK_DETECTED) ?? risks[0] ?? null;
  const parts = authentication ? [authentication, ...risks] : risks;
  const failed = parts.find(({ decision }) => decision === Decision.FAILED);
  if (outcome === null || outcome.decision === Decision.UNCERTAIN) return outcome;
  if (failed) return parts.every(({ decision }) => decision === Decision.FAILED) ? failed : unclear(failed.reason);
  return isReassuring(outcome) && risk !== null && risk > turningRisk
    ? unclear(DecisionReason.LOW_RELIABILITY)
    : outcome;
}

/** Where the decision turns, of 1000: a caller above it is more likely a risk than not. */
const turningRisk = 500;

const isReassuring = ({ decision }: Outcome): boolean =>
  decision === Decision.AUTHENTIC || decision === Decision.NO_RISK_DETECTED;

const unclear = (reason: DecisionReason): Outcome => ({ decision: Decision.UNCERTAIN, reason });
