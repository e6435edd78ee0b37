import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  GetSessionDecisionRequest,
  GetSessionDecisionResponseSchema,
} from "../contract/gen/vendor/biosec/v1/sessions_pb.js";
import { decideSession } from "../voiceprint/session-decision.js";
import { evidenceOf } from "./check.js";
import { sessionOf } from "./context.js";
import type { Dependencies } from "./dependencies.js";
import { riskResult, uniqueId } from "./messages.js";

/** Fuses the checks that ran in a session. A stopped session can still be asked. */
export async function getSessionDecision(
  deps: Dependencies,
  request: GetSessionDecisionRequest,
): Promise<MessageInitShape<typeof GetSessionDecisionResponseSchema>> {
  const { scopeId, id } = await sessionOf(deps, request.context);
  const checks = await deps.store.sessions.checks(scopeId, id);
  const { decision, reason, risk } = decideSession(
    checks.map((check) => ({
      outcome: { decision: check.decision, reason: check.reason },
      profileId: check.profileId,
      evidence: evidenceOf(check.evidence),
    })),
  );
  return {
    result: {
      decision,
      reason,
      riskEngineResult: riskResult(risk),
      checks: checks.map((check) => ({
        operation: check.operation,
        time: timestampFromMs(check.at),
        decision: check.decision,
        reason: check.reason,
        riskEngineResult:
          check.risk === null || check.reliability === null
            ? undefined
            : { risk: check.risk, reliability: check.reliability },
        gkVoiceprintProfileId: check.profileId === null ? undefined : uniqueId(check.profileId),
      })),
    },
  };
}
