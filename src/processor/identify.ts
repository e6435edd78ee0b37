import type { MessageInitShape } from "@bufbuild/protobuf";
import type { IdentifyResultSchema } from "../contract/index.js";
import type { AnalyzedAudio, PartResult } from "./analyzed-audio.js";
import { candidatesByTarget, leftOutStatus } from "./candidates.js";
import { analyzeAndCompare, authenticationPart } from "./check.js";
import { concludeCheck, numberOfMatches, scoreOf, voiceprintResult } from "./check-result.js";
import { type OpenContext, openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { findAudio } from "./recorded-audio.js";

/** Checks audio against any number of persons' profiles, or a group. */
export const identify: Implementation<"identify"> = async (deps, request, options) => {
  const context = await openContext(deps, request.context, options);
  const source = await findAudio(context, request.audio);
  const candidates = await candidatesByTarget(context, "person", request.target);
  const part = authenticationPart(candidates, context.set);
  const { analyzed, results } = await analyzeAndCompare(context, source, request, [part]);
  const result = await concludeIdentification(context, "Identify", analyzed, results[0]!);
  return { result, ...leftOutStatus(candidates.leftOut) };
};

/** Returns the result and stores it for the session's decision. */
export async function concludeIdentification(
  context: OpenContext,
  operation: string,
  analyzed: AnalyzedAudio,
  result: PartResult,
): Promise<MessageInitShape<typeof IdentifyResultSchema>> {
  return {
    ...(await concludeCheck(context, operation, analyzed, result, "person")),
    authenticationScore: scoreOf(result.scored[0]),
    voiceprintResults: result.scored.map(voiceprintResult),
    numberOfMatches: numberOfMatches(result.scored),
  };
}
