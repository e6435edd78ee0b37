import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Id, Session } from "../store/port.js";
import { decideSession } from "../voiceprint/session-decision.js";
import { partsOfCheck } from "./check.js";
import { sessionOf } from "./context.js";
import type { Dependencies, Implementation } from "./dependencies.js";
import { idIfAny, riskResult } from "./messages.js";

/** Fuses the checks that ran in a session. It also works for a stopped session. */
export const getSessionDecision: Implementation<"getSessionDecision"> = async (deps, request) => {
  const session = await sessionOf(deps, request.context);
  const { scopeId, id, claimedPersonId } = session;
  const checks = await deps.store.sessions.checks(scopeId, id);
  const claimed = await claimedPrints(deps, session);
  for (const { evidence, profileId } of checks) if (evidence.claimed && profileId) claimed?.add(profileId);
  const { decision, reason, risk, profileId, matchedProfileId } = decideSession(
    checks.map((check) => ({
      outcome: { decision: check.decision, reason: check.reason },
      profileId: check.profileId,
      ...partsOfCheck(check.evidence),
    })),
    claimed,
  );
  // A search in the operator view decides thousands of sessions: nobody is read twice.
  const personOf = async (print: Id | null) =>
    print === null ? "" : ((await deps.store.profiles.getMany(scopeId, [print]))[0]?.owner.externalId ?? "");
  const isClaimed = matchedProfileId !== null && claimed?.has(matchedProfileId);
  const matchedPersonId = isClaimed ? claimedPersonId : await personOf(matchedProfileId);
  const personId = claimedPersonId || (profileId === matchedProfileId ? matchedPersonId : await personOf(profileId));
  return {
    result: {
      decision,
      reason,
      riskEngineResult: riskResult(risk),
      personId,
      gkVoiceprintProfileId: idIfAny(profileId),
      matchedPersonId,
      checks: checks.map((check) => ({
        operation: check.operation,
        time: timestampFromMs(check.at),
        decision: check.decision,
        reason: check.reason,
        riskEngineResult:
          check.risk === null || check.reliability === null
            ? undefined
            : { risk: check.risk, reliability: check.reliability },
        gkVoiceprintProfileId: idIfAny(check.profileId),
      })),
    },
  };
};

/** `null` if the session has no claimed person. A person who is not enrolled has no prints, so nothing can match. */
async function claimedPrints(deps: Dependencies, { scopeId, claimedPersonId }: Session): Promise<Set<Id> | null> {
  if (claimedPersonId === "") return null;
  const owner = await deps.store.owners.find(scopeId, "person", claimedPersonId);
  const profiles = owner ? await deps.store.profiles.ofOwners(scopeId, [owner.id]) : [];
  // The name in a profile is sealed, the way from a name to an owner is not.
  return new Set(profiles.filter((profile) => profile.owner.externalId === claimedPersonId).map(({ id }) => id));
}
