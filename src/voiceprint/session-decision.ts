/** One decision for a session, fused from the checks that ran in it. */
import { Decision, DecisionReason } from "../contract/index.js";
import {
  decide,
  decideAttack,
  generalDecision,
  halfWidthOf,
  type JudgedEvidence,
  judge,
  judgeAttack,
  type Outcome,
  strongestFirst,
  type Verdict,
} from "./decision.js";
import { fuseRisks, type Risk, riskFigures, riskOf } from "./risk.js";

export const checkParts = ["authentication", "fraud", "synthetic", "playback"] as const;
export type CheckPart = (typeof checkParts)[number];

/** Evidence of the parts that gave a score. */
export type CheckEvidence = { readonly [part in CheckPart]?: JudgedEvidence | undefined };
/** Why requested parts failed. */
export type CheckFailures = { readonly [part in CheckPart]?: DecisionReason | undefined };

export interface SessionCheck {
  readonly outcome: Outcome;
  /** The person print with the best score. */
  readonly profileId: string | null;
  /** The one channel of several whose speaker was checked; `null` if everybody in the audio was. */
  readonly channel?: number | null;
  /** The second party of a live call, in a channel of its own. */
  readonly isSecondParty?: boolean;
  readonly evidence: CheckEvidence;
  readonly failures?: CheckFailures;
}

export interface SessionDecision extends Outcome {
  readonly risk: Risk | null;
  /** The print that the decision about the person is based on. */
  readonly profileId: string | null;
  /** The person print that the latest comparison matched. */
  readonly matchedProfileId: string | null;
}

/** `all` checks oldest first; `claimed` are the prints of the claimed person, `null` without a claim. */
export function decideSession(
  all: readonly SessionCheck[],
  claimed: ReadonlySet<string> | null = null,
): SessionDecision {
  const isOther = isSomebodyElse(all, claimed);
  const checks = all.map((check) => (isOther(check) ? withoutPerson(check) : check));
  const latest = checks.findLast((check) => check.evidence.authentication);
  const matchedProfileId = latest && judge(latest.evidence.authentication!) === "above" ? latest.profileId : null;
  const { authentication, profileId } = speakingNow(checks, claimed);
  const evidence: CheckEvidence = {
    authentication,
    fraud: strongest(checks, "fraud", judge),
    synthetic: strongest(checks, "synthetic", judgeAttack),
    playback: strongest(checks, "playback", judgeAttack),
  };
  const risk = fuseRisks(risksOf(evidence));
  const failures = standingFailures(checks);
  const outcomeOf = (part: CheckPart, of: (judged: JudgedEvidence) => Outcome): Outcome | undefined => {
    const judged = evidence[part];
    const outcome = judged && of(judged);
    const failure = failures[part];
    // A later check that failed does not undo signs of fraud found earlier.
    if (failure === undefined || outcome?.decision === Decision.FRAUD) return outcome;
    return { decision: Decision.FAILED, reason: failure };
  };
  const attack = (kind: "synthetic" | "playback") => outcomeOf(kind, (judged) => decideAttack(kind, judged).general);
  const outcome = generalDecision(
    {
      authentication: outcomeOf("authentication", (judged) => decide("person", judged)),
      fraud: outcomeOf("fraud", (judged) => decide("fraudster", judged)),
      attacks: [attack("synthetic"), attack("playback")].filter((part) => part !== undefined),
    },
    risk ? riskFigures(risk).risk : null,
  );
  // If nothing was scored, the latest check says why.
  const last = all.findLast((check) => !isOther(check))?.outcome ?? {
    decision: Decision.FAILED,
    reason: DecisionReason.NO_SCORES,
  };
  return { ...(outcome ?? last), risk, profileId, matchedProfileId };
}

export const risksOf = ({ authentication, fraud, synthetic, playback }: CheckEvidence): Risk[] => [
  ...(authentication ? [riskOf("person", authentication)] : []),
  ...(fraud ? [riskOf("fraudster", fraud)] : []),
  ...(synthetic ? [riskOf("attack", synthetic)] : []),
  ...(playback ? [riskOf("attack", playback)] : []),
];

/**
 * Each channel of a call has its own speaker. If the claimed person was compared in one of them, comparisons in another
 * are about somebody else, such as the agent, and say nothing about the claimed person. If the claimed person was not
 * compared, or if there is none, a live call is about its first party.
 */
function isSomebodyElse(
  checks: readonly SessionCheck[],
  claimed: ReadonlySet<string> | null,
): (check: SessionCheck) => boolean {
  const own = new Set(
    checks.flatMap(({ profileId, channel }) =>
      profileId !== null && claimed?.has(profileId) && channel ? channel : [],
    ),
  );
  return ({ channel, isSecondParty = false }) => (own.size > 0 ? !!channel && !own.has(channel) : isSecondParty);
}

function withoutPerson(check: SessionCheck): SessionCheck {
  const { authentication: _, ...evidence } = check.evidence;
  const { authentication: __, ...failures } = check.failures ?? {};
  return { ...check, evidence, failures };
}

interface Speaker {
  readonly authentication: JudgedEvidence | undefined;
  readonly profileId: string | null;
}

/**
 * Is the person speaking now? Checks of the same voice in the same call are not independent, so their excess over the
 * threshold, and the band without a decision, are averaged by reliability: a session is never clearer than its clearest
 * check. A clear no-match after matches means another voice, so everything before it is ignored. Matches after it are
 * averaged with it, so that an impostor gains nothing by trying again.
 */
function speakingNow(checks: readonly SessionCheck[], claimed: ReadonlySet<string> | null): Speaker {
  const compared = claimed ? ofClaimed(checks, claimed) : ofLast(checks);
  const since = compared.findLastIndex(({ evidence }) => judge(evidence) === "below");
  const judged = compared.slice(Math.max(0, since)).map(({ evidence }) => evidence);
  if (judged.length === 0) return { authentication: undefined, profileId: null };
  const weight = (evidence: JudgedEvidence) => Math.max(evidence.reliability, 1e-3);
  const weights = judged.reduce((sum, evidence) => sum + weight(evidence), 0);
  const mean = (of: (evidence: JudgedEvidence) => number) =>
    judged.reduce((sum, evidence) => sum + weight(evidence) * of(evidence), 0) / weights;
  const authentication = {
    llr: mean(({ llr, threshold }) => llr - threshold),
    threshold: 0,
    reliability: Math.max(...judged.map((evidence) => evidence.reliability)),
    // With the narrowest band, two checks that are UNCERTAIN could make a match.
    halfWidth: mean(halfWidthOf),
  };
  return { authentication, profileId: compared.at(-1)!.profileId };
}

interface Compared {
  readonly evidence: JudgedEvidence;
  readonly profileId: string | null;
}

const comparedIn = (checks: readonly SessionCheck[]): Compared[] =>
  checks.flatMap(({ evidence: { authentication }, profileId }) =>
    authentication ? [{ evidence: authentication, profileId }] : [],
  );

/** Without a claimed person, the decision is about the person compared last. */
function ofLast(checks: readonly SessionCheck[]): Compared[] {
  const compared = comparedIn(checks);
  const person = compared.at(-1)?.profileId;
  return compared.filter(({ profileId }) => profileId === person);
}

/**
 * A match with another person counts as equally strong evidence against the claimed person. A non-match with another
 * person says nothing about the claimed one; it is used only if there is no other comparison, and then counts as no match.
 */
function ofClaimed(checks: readonly SessionCheck[], claimed: ReadonlySet<string>): Compared[] {
  const compared = comparedIn(checks);
  const telling = compared.flatMap((one) => {
    if (one.profileId !== null && claimed.has(one.profileId)) return [one];
    if (judge(one.evidence) !== "above") return [];
    const { llr, threshold } = one.evidence;
    return [{ ...one, evidence: { ...one.evidence, llr: threshold - (llr - threshold) - justBelow } }];
  });
  return telling.length > 0 ? telling : compared.slice(-1);
}

/** Keeps a match with another person right at the threshold from counting as a match with the claimed person. */
const justBelow = 1e-6;

/** Parts whose latest check failed. */
function standingFailures(checks: readonly SessionCheck[]): CheckFailures {
  const failures: { [part in CheckPart]?: DecisionReason | undefined } = {};
  for (const { evidence, failures: failed } of checks)
    for (const part of checkParts) {
      if (failed?.[part] !== undefined) failures[part] = failed[part];
      else if (evidence[part]) failures[part] = undefined;
    }
  return failures;
}

/** One sign of fraud is not undone by checks without one, nor by a higher ratio that is too unreliable to decide. */
function strongest(
  checks: readonly SessionCheck[],
  part: "fraud" | "synthetic" | "playback",
  verdictOf: (evidence: JudgedEvidence) => Verdict,
): JudgedEvidence | undefined {
  return checks.flatMap((check) => check.evidence[part] ?? []).sort(strongestFirst(verdictOf))[0];
}
