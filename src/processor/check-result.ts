/** The response fields that Verify, Identify and DetectKnownFraudsters share. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { VoiceprintResultSchema } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import type { OwnerKind } from "../store/port.js";
import { type Risk, riskOf } from "../voiceprint/risk.js";
import type { OpenContext } from "./context.js";
import type { HeardAudio, JudgedPrint, PartResult } from "./heard-audio.js";
import { audioDetails, calibrationModel, idIfAny, ifKnown, printDetails, riskResult, uniqueId } from "./messages.js";

export function checkResult({ engine }: OpenContext, heard: HeardAudio, result: PartResult, kind: OwnerKind) {
  const { audio } = heard;
  const best = result.scored[0];
  const revision = best?.print.template.revision ?? engine.model.revision;
  return {
    voiceprintDetails: best && printDetails(best.print),
    gkMediaSegmentId: idIfAny(audio.mediaSegmentId),
    gkProcessedAudioId: idIfAny(audio.processedAudioId),
    decision: result.outcome.decision,
    reason: result.outcome.reason,
    voiceClassScore: ifKnown(heard.analysis?.voiceClass),
    riskEngineResult: riskResult(partRisk(kind, result)),
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

export const voiceprintResult = (judged: JudgedPrint): MessageInitShape<typeof VoiceprintResultSchema> => ({
  gkVoiceprintProfileId: uniqueId(judged.print.profileId),
  score: {
    case: judged.print.kind === "person" ? "authenticationScore" : "fraudDetectionScore",
    value: scoreMessage(judged),
  },
});
