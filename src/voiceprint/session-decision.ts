/** One decision for a session, fused from the checks that ran in it. */
import { Decision } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { DecisionReason } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import {
  decide,
  decideAttack,
  generalDecision,
  type JudgedEvidence,
  judge,
  judgeAttack,
  type Outcome,
  strongestFirst,
  type Verdict,
} from "./decision.js";
import { fuseRisks, type Risk, riskOf } from "./risk.js";

export interface CheckEvidence {
  readonly authentication?: JudgedEvidence | undefined;
  readonly fraud?: JudgedEvidence | undefined;
  readonly synthetic?: JudgedEvidence | undefined;
  readonly playback?: JudgedEvidence | undefined;
}

export interface SessionCheck {
  readonly outcome: Outcome;
  /** The person print with the best score. */
  readonly profileId: string | null;
  readonly evidence: CheckEvidence;
}

export interface SessionDecision extends Outcome {
  readonly risk: Risk | null;
}

/** `checks` oldest first. */
export function decideSession(checks: readonly SessionCheck[]): SessionDecision {
  const evidence: CheckEvidence = {
    authentication: agreed(checks),
    fraud: strongest(checks, "fraud", judge),
    synthetic: strongest(checks, "synthetic", judgeAttack),
    playback: strongest(checks, "playback", judgeAttack),
  };
  const { authentication, fraud, synthetic, playback } = evidence;
  const outcome = generalDecision({
    authentication: authentication && decide("person", authentication),
    fraud: fraud && decide("fraudster", fraud),
    attacks: [
      ...(synthetic ? [decideAttack("synthetic", synthetic).general] : []),
      ...(playback ? [decideAttack("playback", playback).general] : []),
    ],
  });
  if (outcome === null) {
    // Nothing was scored: the latest check says why.
    const last = checks.at(-1)?.outcome ?? { decision: Decision.FAILED, reason: DecisionReason.NO_SCORES };
    return { ...last, risk: null };
  }
  return { ...outcome, risk: fuseRisks(risksOf(evidence)) };
}

export const risksOf = ({ authentication, fraud, synthetic, playback }: CheckEvidence): Risk[] => [
  ...(authentication ? [riskOf("person", authentication)] : []),
  ...(fraud ? [riskOf("fraudster", fraud)] : []),
  ...(synthetic ? [riskOf("attack", synthetic)] : []),
  ...(playback ? [riskOf("attack", playback)] : []),
];

/**
 * A session is about one person: the one compared last. Looks at the same voice in the same call are not independent,
 * so their excess over the threshold is averaged by reliability, not summed.
 */
function agreed(checks: readonly SessionCheck[]): JudgedEvidence | undefined {
  const scored = checks.filter((check) => check.evidence.authentication);
  const person = scored.at(-1)?.profileId;
  const same = scored.filter((check) => check.profileId === person).map((check) => check.evidence.authentication!);
  if (same.length === 0) return undefined;
  const weight = (evidence: JudgedEvidence) => Math.max(evidence.reliability, 1e-3);
  const weights = same.reduce((sum, evidence) => sum + weight(evidence), 0);
  return {
    llr: same.reduce((sum, evidence) => sum + weight(evidence) * (evidence.llr - evidence.threshold), 0) / weights,
    threshold: 0,
    reliability: Math.max(...same.map((evidence) => evidence.reliability)),
  };
}

/** One sign of fraud is not undone by checks that saw none, nor by one with a higher ratio that heard too little to tell. */
function strongest(
  checks: readonly SessionCheck[],
  part: "fraud" | "synthetic" | "playback",
  verdictOf: (evidence: JudgedEvidence) => Verdict,
): JudgedEvidence | undefined {
  return checks.flatMap((check) => check.evidence[part] ?? []).sort(strongestFirst(verdictOf))[0];
}
