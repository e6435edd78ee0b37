import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VerifyResultSchema } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { assertKind, candidatesOf, detailsOf, type FoundProfile, findOneProfile, isPrint } from "./candidates.js";
import { authenticationPart, hearAndCompare } from "./check.js";
import { concludeCheck, scoreOf } from "./check-result.js";
import { type OpenContext, openContext } from "./context.js";
import type { Dependencies, Implementation } from "./dependencies.js";
import type { HeardAudio, PartResult } from "./heard-audio.js";
import { findAudio } from "./recorded-audio.js";

/** Checks audio against one person's profile. */
export const verify: Implementation<"verify"> = async (deps, request, options) => {
  const context = await openContext(deps, request.context);
  const { scopeId, set } = context;
  const id = request.gkVoiceprintProfileId!.value;
  const [profile, source] = await Promise.all([
    findOneProfile(deps, scopeId, id, "gk_voiceprint_profile_id"),
    findAudio(deps, scopeId, request.audio),
  ]);
  assertKind(profile, "person", "gk_voiceprint_profile_id");
  const part = authenticationPart(candidatesOf(deps, scopeId, "person", [profile]), set);
  const { heard, results } = await hearAndCompare(deps, context, source, request, [part], options);
  return { result: await concludeVerification(deps, context, "Verify", profile, heard, results[0]!) };
};

/** Returns the result and stores it for the session's decision. */
export async function concludeVerification(
  deps: Dependencies,
  context: OpenContext,
  operation: string,
  profile: FoundProfile,
  heard: HeardAudio,
  result: PartResult,
): Promise<MessageInitShape<typeof VerifyResultSchema>> {
  const profileId = isPrint(profile) ? profile.profileId : profile.id;
  const best = result.scored[0];
  return {
    ...(await concludeCheck(deps, context, operation, heard, result, "person", profileId)),
    voiceprintDetails: detailsOf(best?.print ?? profile),
    authenticationScore: scoreOf(best),
  };
}
