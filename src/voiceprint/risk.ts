/** Risk as a calibrated probability, and the fusion of several. */
import { type JudgedEvidence, judgeAttack, type PrintKind } from "./decision.js";

export interface Risk {
  /** 0..1 */
  readonly probability: number;
  /** 0..1 */
  readonly reliability: number;
}

/** The contract's numbers. */
export interface RiskFigures {
  /** 0..1000 */
  readonly risk: number;
  /** 0..100 */
  readonly reliability: number;
}

const logistic = (x: number) => 1 / (1 + Math.exp(-x));

/**
 * The probability that the caller is a risk: is not the claimed person, or is the fraudster. The prior odds follow from the operating
 * point (a threshold is the log odds at which both answers cost the same), so a risk of 500 of 1000 is exactly at the
 * threshold.
 */
export function riskOf(kind: PrintKind | "attack", evidence: JudgedEvidence): Risk {
  const excess = evidence.llr - evidence.threshold;
  return {
    probability: logistic(kind === "person" ? -excess : excess),
    reliability: kind === "attack" ? attackReliability(evidence) : evidence.reliability,
  };
}

/**
 * Even a lot of speech may not show whether it is an attack. Audio that sounds neither clearly synthetic nor clearly live
 * gets at most half the reliability, however long it is.
 */
const attackReliability = (evidence: JudgedEvidence): number =>
  judgeAttack(evidence) === "near" ? evidence.reliability / 2 : evidence.reliability;

/**
 * Any one of several independent risks makes the call risky. A high risk is as reliable as the part that shows it; a low
 * risk requires every part to be right.
 */
export function fuseRisks(risks: readonly Risk[]): Risk | null {
  if (risks.length === 0) return null;
  const probability = 1 - risks.reduce((safe, risk) => safe * (1 - risk.probability), 1);
  const riskiest = risks.reduce((worst, risk) => (risk.probability > worst.probability ? risk : worst));
  const reliability =
    riskiest.probability >= 0.5 ? riskiest.reliability : Math.min(...risks.map((risk) => risk.reliability));
  return { probability, reliability };
}

export const riskFigures = (risk: Risk): RiskFigures => ({
  risk: Math.round(1000 * Math.min(1, Math.max(0, risk.probability))),
  reliability: Math.round(100 * Math.min(1, Math.max(0, risk.reliability))),
});
