import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VerifyRequest, VerifyResponseSchema } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { riskFigures } from "../voiceprint/risk.js";
import { asFound, candidatesOf } from "./candidates.js";
import { authenticationPart, hearAndCompare, recordCheck } from "./check.js";
import { checkResult, partRisk, scoreOf } from "./check-result.js";
import { openContext } from "./context.js";
import type { Dependencies, OperationOptions } from "./dependencies.js";
import { invalid } from "./failures.js";
import { profileDetails } from "./messages.js";
import { findProfile } from "./profiles.js";
import { findAudio } from "./recorded-audio.js";

/** Checks audio against one person's profile. */
export async function verify(
  deps: Dependencies,
  request: VerifyRequest,
  options: OperationOptions,
): Promise<MessageInitShape<typeof VerifyResponseSchema>> {
  const context = await openContext(deps, request.context);
  const { scopeId, set } = context;
  const [profile, source] = await Promise.all([
    findProfile(deps, scopeId, request.gkVoiceprintProfileId),
    findAudio(deps, scopeId, request.audio),
  ]);
  if (profile.owner.kind !== "person")
    throw invalid("gk_voiceprint_profile_id", "wrong_kind", "the profile is not one of a person");
  const part = authenticationPart(candidatesOf(deps, scopeId, "person", [asFound(profile)]), set);
  const { heard, results } = await hearAndCompare(deps, context, source, request, [part], options);
  const result = results[0]!;
  const risk = partRisk("person", result);
  await recordCheck(
    deps,
    context,
    "Verify",
    result.outcome,
    risk && riskFigures(risk),
    { authentication: result.evidence ?? undefined },
    profile.id,
  );
  return {
    result: {
      ...checkResult(deps, heard, result, "person"),
      voiceprintDetails: profileDetails(profile),
      authenticationScore: scoreOf(result.scored[0]),
    },
  };
}
