/** Turns a calibrated score into a decision. Thresholds follow from the target false-accept rate; none is fixed here. */

import { audio as attackTypes, Decision, DecisionReason } from "../contract/index.js";

/** Evidence for the same person (or for an attack), as a calibrated natural-log likelihood ratio. */
export interface Evidence {
  readonly llr: number;
  /** 0..1 */
  readonly reliability: number;
}

/** Evidence with the threshold that it was compared with. */
export interface JudgedEvidence extends Evidence {
  /** The middle of the band in which no decision is made. */
  readonly threshold: number;
  /** Half-width of that band; by default it follows from the reliability. */
  readonly halfWidth?: number;
}

export interface Outcome {
  readonly decision: Decision;
  readonly reason: DecisionReason;
}

export type PrintKind = "person" | "fraudster";

/** Looks at the same voice are not independent: two let as many impostors pass as 1.2 to 1.6 independent ones (training/LOG.md 22). */
const weightOfFurtherLook = 0.5;

/**
 * The false-accept rate for one comparison at which the whole call keeps its target: a call compares with every candidate
 * at every look, and each comparison may falsely accept.
 */
export function rateOfOneComparison(targetRate: number, candidates: number, looks: number): number {
  const comparisons = Math.max(1, candidates) * (1 + weightOfFurtherLook * Math.max(0, looks - 1));
  return -Math.expm1(Math.log1p(-targetRate) / comparisons);
}

/**
 * Half-width of the band around the threshold in which no decision is made. At reliability 0 the ratio may be wrong by a
 * factor of ten either way; at reliability 1 it is taken as exact.
 */
export const uncertainHalfWidth = (reliability: number): number =>
  (1 - Math.min(1, Math.max(0, reliability))) * Math.LN10;

export const halfWidthOf = ({ reliability, halfWidth }: JudgedEvidence): number =>
  halfWidth ?? uncertainHalfWidth(reliability);

/** A candidate on a list that would match at this multiple of the target rate is UNCERTAIN, not a clear non-match. */
const suspicion = 10;

export interface Comparisons {
  /** Target false-accept rate of the whole call. */
  readonly targetRate: number;
  readonly candidates: number;
  readonly looks: number;
}

/**
 * Compares the best candidate of a call with what impostors reach in such calls. A ratio of at least `thresholdAt(rate)` is a match, so the target
 * rate holds at any reliability. The band without a decision lies below it: its width follows from the reliability, and on a list it
 * includes every suspect candidate (see `suspicion`).
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
 * Sorts evidence, strongest first. Evidence clearly above its threshold comes before a higher ratio that is not, because
 * thresholds depend on the quality of the audio.
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
 * For attacks the width of the band has no limit: a network without any speech (ratio 1, reliability 0) is far below every
 * threshold, but that must not count as genuine speech. At reliability 0.5 the half-width is a factor of ten.
 */
export function attackHalfWidth(reliability: number): number {
  const known = Math.min(1, Math.max(0, reliability));
  return known === 0 ? Number.POSITIVE_INFINITY : ((1 - known) / known) * Math.LN10;
}

/** Up to this half-width, every ratio below 1 counts as genuine speech. */
const mostLeftOpen = Math.log(100);

/**
 * Evidence above the threshold is an attack. "No risk detected" needs evidence for genuine speech as well: speech of a synthesizer that the
 * network was not trained on often lies between the two, and is then UNCERTAIN.
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
  /** Its contribution to the overall decision. */
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
  /** As for fraudsters: FRAUD, NO_RISK_DETECTED, or the reason for neither. */
  readonly attacks: readonly Outcome[];
}

/**
 * The overall decision; `risk` is the combined risk of all parts, 0..1000. `null` when nothing was checked.
 * If a requested part failed, only FRAUD can still be certain.
 */
export function generalDecision(
  { authentication, fraud, attacks }: PartDecisions,
  risk: number | null,
): Outcome | null {
  const risks = fraud ? [fraud, ...attacks] : attacks;
  const indicated = risks.find(({ decision }) => decision === Decision.FRAUD);
  if (indicated) return indicated;
  // If only risk checks ran, NO_RISK_DETECTED requires that each of them gave that answer.
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

/** Of 1000: above it, a caller is more likely a risk than not. */
const turningRisk = 500;

const isReassuring = ({ decision }: Outcome): boolean =>
  decision === Decision.AUTHENTIC || decision === Decision.NO_RISK_DETECTED;

const unclear = (reason: DecisionReason): Outcome => ({ decision: Decision.UNCERTAIN, reason });
