/** What Verify, Identify and DetectKnownFraudsters do with the result of their one comparison. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VoiceprintResultSchema } from "../contract/index.js";
import type { Id, OwnerKind } from "../store/port.js";
import { type Risk, riskFigures, riskOf } from "../voiceprint/risk.js";
import type { AnalyzedAudio, JudgedPrint, PartResult } from "./analyzed-audio.js";
import { recordCheck } from "./check.js";
import type { OpenContext } from "./context.js";
import { audioDetails, calibrationModel, idIfAny, ifKnown, printDetails, riskResult, uniqueId } from "./messages.js";

/** Stores the result for the session's decision, and returns the response fields that the three share. */
export async function concludeCheck(
  context: OpenContext,
  operation: string,
  analyzed: AnalyzedAudio,
  result: PartResult,
  kind: OwnerKind,
  profileId: Id | null = result.scored[0]?.print.profileId ?? null,
) {
  const { engine } = context;
  const { audio } = analyzed;
  const best = result.scored[0];
  const risk = partRisk(kind, result);
  const part = kind === "person" ? { authentication: result } : { fraud: result };
  await recordCheck(context, operation, analyzed, result.outcome, risk && riskFigures(risk), part, profileId);
  const revision = best?.print.template.revision ?? engine.model.revision;
  return {
    voiceprintDetails: best && printDetails(best.print),
    gkMediaSegmentId: idIfAny(audio.mediaSegmentId),
    gkProcessedAudioId: idIfAny(audio.processedAudioId),
    decision: result.outcome.decision,
    reason: result.outcome.reason,
    voiceClassScore: ifKnown(analyzed.analysis?.voiceClass),
    riskEngineResult: riskResult(risk),
    gkCalibrationModelRevisionId: uniqueId(revision),
    // A print made by an older model is scored with that model's own calibration.
    calibrationModelDetails: revision === engine.model.revision ? calibrationModel(engine.model) : undefined,
    audioDetails: audioDetails(audio),
  };
}

export const partRisk = (kind: OwnerKind, { evidence }: PartResult): Risk | null => evidence && riskOf(kind, evidence);

export const scoreOf = (judged: JudgedPrint | undefined) => judged && scoreMessage(judged);

const scoreMessage = ({ score, threshold, falseAcceptRate }: JudgedPrint) => ({
  biometricScore: score.raw,
  ratio: score.llr,
  threshold,
  falseAcceptRate,
});

/** How many owners have prints that reach their threshold. */
export const numberOfMatches = (scored: readonly JudgedPrint[]): number =>
  new Set(scored.filter(({ score, threshold }) => score.llr >= threshold).map(({ print }) => print.ownerId)).size;

export const voiceprintResult = (judged: JudgedPrint): MessageInitShape<typeof VoiceprintResultSchema> => ({
  gkVoiceprintProfileId: uniqueId(judged.print.profileId),
  score: {
    case: judged.print.kind === "person" ? "authenticationScore" : "fraudDetectionScore",
    value: scoreMessage(judged),
  },
});
