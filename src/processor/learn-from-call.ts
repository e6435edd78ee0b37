/** A print learns from a call that clearly matched it: it moves to the scope's model, or it grows (adaptation). */
import { AudioValidity, Decision } from "../contract/index.js";
import type { Template } from "../engine/port.js";
import { mayBeUsed } from "../store/port.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import type { AnalyzedAudio, CheckedParts } from "./analyzed-audio.js";
import { measuredAudio, newProcessedAudio, voiceOf } from "./audio-model.js";
import type { OpenContext } from "./context.js";
import { enrolledTemplate, growPrint } from "./grow-print.js";
import { analysisBy, type JointAnalysis } from "./joint-analysis.js";
import { movePrint } from "./move-print.js";
import type { TrainedProfile } from "./profiles.js";

/** Changes the print if the call allows it. The answer of the check does not depend on it. */
export async function learnFromCall(
  context: OpenContext,
  analyzed: AnalyzedAudio,
  decision: Decision,
  parts: CheckedParts,
): Promise<void> {
  const { deps, scopeId, set, engine } = context;
  const { analysis } = analyzed;
  const print = parts.authentication?.scored?.[0]?.print;
  if (decision !== Decision.AUTHENTIC || !print || !analysis?.embedding) return;
  // The voice may contain some of the other person's speech.
  if (analyzed.audio.separated) return;
  const moves = print.template.revision !== engine.model.revision;
  if (!moves && set.adaptation.maxSessions === 0) return;
  const risks = [parts.fraud, parts.synthetic, parts.playback];
  if (risks.some((part) => part && part.outcome.decision !== Decision.NO_RISK_DETECTED)) return;
  if (audioValidity(measuredAudio(analysis), "enroll", set) !== AudioValidity.AUDIO_OK) return;
  const profile = await deps.store.profiles.get(scopeId, print.profileId);
  if (!profile?.template || !mayBeUsed(profile) || profile.printVersion !== print.printVersion) return;
  if (!(await matchesEnrolled(context, profile.template, analysis))) return;
  if (!moves) return growPrint(context, profile as TrainedProfile, voiceOf(analysis, analysis.embedding));
  const { audio, validity, unstored } = analyzed;
  // The audio of a live call is not stored, so the audio model gets the id of a media segment that does not exist.
  const media = {
    id: deps.ids.next(),
    partOf: null,
    channels: audio.mediaChannels,
    rateHz: audio.mediaRateHz,
  };
  const processed = unstored ?? newProcessedAudio(context, media, audio.channel, "check", validity, analysis);
  await movePrint(context, profile, processed);
}

/**
 * Compares with the enrolled template, without what adaptation added, so that added calls cannot let in others. Uses the
 * call's own rate: at a tenth of it, a print would learn from almost no call (measured: bench:accuracy -- --adaptation).
 */
async function matchesEnrolled(
  { deps: { models }, set }: OpenContext,
  template: Template,
  analyzed: JointAnalysis,
): Promise<boolean> {
  const engine = await models.open(template.revision);
  // The check has scored this version of the print, so its model has processed the call.
  const analysis = analysisBy(analyzed, template.revision)!;
  const [score] = await engine.score([enrolledTemplate(template)], voiceOf(analysis, analysis.embedding!));
  return score!.llr >= engine.threshold(set.targetFalseAcceptRate.authentication, score!);
}
