import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VerifyResultSchema } from "../contract/index.js";
import type { AnalyzedAudio, PartResult } from "./analyzed-audio.js";
import { assertKind, candidatesOf, type FoundProfile, findOneProfile, leftOutStatus } from "./candidates.js";
import { analyzeAndCompare, authenticationPart } from "./check.js";
import { concludeCheck, scoreOf } from "./check-result.js";
import { type OpenContext, openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { printDetails } from "./messages.js";
import { findAudio } from "./recorded-audio.js";

/** Checks audio against one person's profile. */
export const verify: Implementation<"verify"> = async (deps, request, options) => {
  const context = await openContext(deps, request.context, options);
  const id = request.gkVoiceprintProfileId!.value;
  const [profile, source] = await Promise.all([
    findOneProfile(context, id, "gk_voiceprint_profile_id"),
    findAudio(context, request.audio),
  ]);
  assertKind(profile, "person", "gk_voiceprint_profile_id");
  const part = authenticationPart(candidatesOf(context, "person", [profile]), context.set);
  const { analyzed, results } = await analyzeAndCompare(context, source, request, [part]);
  const result = await concludeVerification(context, "Verify", profile, analyzed, results[0]!);
  return { result, ...leftOutStatus(part.candidates.leftOut) };
};

/** Returns the result and stores it for the session's decision. */
export async function concludeVerification(
  context: OpenContext,
  operation: string,
  profile: FoundProfile,
  analyzed: AnalyzedAudio,
  result: PartResult,
): Promise<MessageInitShape<typeof VerifyResultSchema>> {
  const best = result.scored[0];
  return {
    ...(await concludeCheck(context, operation, analyzed, result, "person", profile.profileId)),
    voiceprintDetails: printDetails(best?.print ?? profile),
    authenticationScore: scoreOf(best),
  };
}
