import type { MessageInitShape } from "@bufbuild/protobuf";
import type { IdentifyRequest, IdentifyResponseSchema } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { riskFigures } from "../voiceprint/risk.js";
import { candidatesByGroup, candidatesByIds } from "./candidates.js";
import { authenticationPart, hearAndCompare, recordCheck } from "./check.js";
import { checkResult, partRisk, scoreOf, voiceprintResult } from "./check-result.js";
import { openContext } from "./context.js";
import type { Dependencies, OperationOptions } from "./dependencies.js";
import { findAudio } from "./recorded-audio.js";

/** Checks audio against any number of persons' profiles, or a group. */
export async function identify(
  deps: Dependencies,
  request: IdentifyRequest,
  options: OperationOptions,
): Promise<MessageInitShape<typeof IdentifyResponseSchema>> {
  const context = await openContext(deps, request.context);
  const { scopeId, set } = context;
  const { target } = request;
  const source = await findAudio(deps, scopeId, request.audio);
  const candidates =
    target.case === "group"
      ? await candidatesByGroup(deps, scopeId, "person", target.value, "group")
      : await candidatesByIds(deps, scopeId, target.value!, "person", "gk_voiceprint_profile_ids");
  const part = authenticationPart(candidates, set);
  const { heard, results } = await hearAndCompare(deps, context, source, request, [part], options);
  const result = results[0]!;
  const risk = partRisk("person", result);
  const best = result.scored[0];
  await recordCheck(
    deps,
    context,
    "Identify",
    heard,
    result.outcome,
    risk && riskFigures(risk),
    { authentication: result },
    best?.print.profileId ?? null,
  );
  return {
    result: {
      ...checkResult(deps, heard, result, "person"),
      authenticationScore: scoreOf(best),
      voiceprintResults: result.scored.map(voiceprintResult),
    },
  };
}
