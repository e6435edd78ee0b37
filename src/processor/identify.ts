import type { MessageInitShape } from "@bufbuild/protobuf";
import type { IdentifyResultSchema } from "../contract/index.js";
import type { AnalyzedAudio, PartResult } from "./analyzed-audio.js";
import { candidatesByTarget, leftOutStatus } from "./candidates.js";
import { analyzeAndCompare, authenticationPart } from "./check.js";
import { concludeCheck, scoreOf, voiceprintResult } from "./check-result.js";
import { type OpenContext, openContext } from "./context.js";
import type { Dependencies, Implementation } from "./dependencies.js";
import { findAudio } from "./recorded-audio.js";

/** Checks audio against any number of persons' profiles, or a group. */
export const identify: Implementation<"identify"> = async (deps, request, options) => {
  const context = await openContext(deps, request.context);
  const { scopeId, set } = context;
  const source = await findAudio(deps, scopeId, request.audio);
  const candidates = await candidatesByTarget(deps, scopeId, "person", request.target, options);
  const part = authenticationPart(candidates, set);
  const { analyzed, results } = await analyzeAndCompare(deps, context, source, request, [part], options);
  const result = await concludeIdentification(deps, context, "Identify", analyzed, results[0]!);
  return { result, ...leftOutStatus(candidates.leftOut) };
};

/** Returns the result and stores it for the session's decision. */
export async function concludeIdentification(
  deps: Dependencies,
  context: OpenContext,
  operation: string,
  analyzed: AnalyzedAudio,
  result: PartResult,
): Promise<MessageInitShape<typeof IdentifyResultSchema>> {
  return {
    ...(await concludeCheck(deps, context, operation, analyzed, result, "person")),
    authenticationScore: scoreOf(result.scored[0]),
    voiceprintResults: result.scored.map(voiceprintResult),
  };
}
