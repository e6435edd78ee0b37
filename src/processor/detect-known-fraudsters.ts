import { candidatesByTarget, leftOutStatus, numberScored } from "./candidates.js";
import { analyzeAndCompare, fraudPart } from "./check.js";
import { concludeCheck, numberOfMatches, scoreOf, voiceprintResult } from "./check-result.js";
import { openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { findAudio } from "./recorded-audio.js";

/** Checks audio against fraudsters' profiles, or a watchlist. */
export const detectKnownFraudsters: Implementation<"detectKnownFraudsters"> = async (deps, request, options) => {
  const context = await openContext(deps, request.context, options);
  const source = await findAudio(context, request.audio);
  const candidates = await candidatesByTarget(context, "fraudster", request.target);
  const part = fraudPart(candidates, context.set);
  const { analyzed, results } = await analyzeAndCompare(context, source, request, [part]);
  const result = results[0]!;
  return {
    result: {
      ...(await concludeCheck(context, "DetectKnownFraudsters", analyzed, result, "fraudster")),
      fraudDetectionScore: scoreOf(result.scored[0]),
      voiceprintResults: result.scored.map(voiceprintResult),
      numberOfPrints: numberScored(candidates, result.scored),
      numberOfMatches: numberOfMatches(result.scored),
    },
    ...leftOutStatus(candidates.leftOut),
  };
};
