/** A print takes in the voice of a session that clearly matched, where the configuration set asks for it (`adaptation`). */
import { AudioValidity, Decision } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import type { Template, Voice } from "../engine/port.js";
import { type GrownPrint, grownVoice, withSession } from "../voiceprint/growing-print.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { measuredAudio, voiceOf } from "./audio-model.js";
import type { OpenContext } from "./context.js";
import type { Dependencies } from "./dependencies.js";
import type { CheckedParts, HeardAudio } from "./heard-audio.js";

/** Changes the print, or leaves it as it is: a check is answered either way. */
export async function growPrint(
  deps: Dependencies,
  { session, set }: OpenContext,
  { analysis }: HeardAudio,
  decision: Decision,
  parts: CheckedParts,
): Promise<void> {
  const print = parts.authentication?.scored?.[0]?.print;
  if (set.adaptation.maxSessions === 0 || decision !== Decision.AUTHENTIC || !print || !analysis?.embedding) return;
  const risks = [parts.fraud, parts.synthetic, parts.playback];
  if (risks.some((part) => part && part.outcome.decision !== Decision.NO_RISK_DETECTED)) return;
  if (audioValidity(measuredAudio(analysis), "enroll", set) !== AudioValidity.AUDIO_OK) return;
  const profile = await deps.store.profiles.get(session.scopeId, print.profileId);
  if (!profile?.template || profile.printVersion !== print.printVersion) return;
  const grown = grownOf(profile.template);
  const voice = voiceOf(analysis, analysis.embedding);
  if (
    !(await matchesEnrolled(
      deps,
      { ...profile.template, ...grown.enrolled },
      voice,
      set.targetFalseAcceptRate.authentication,
    ))
  )
    return;
  const joining = { ...voice, sessionId: session.id, at: deps.clock.now() };
  const sessions = withSession(grown.sessions, joining, set.adaptation.maxSessions);
  if (sessions === grown.sessions) return;
  const { scopeId, id, generation, status, printVersion } = profile;
  const template = grownTemplate(profile.template, { enrolled: grown.enrolled, sessions }, set.adaptation.maxSessions);
  // Whoever wrote first wins: a session is not worth a second try.
  await deps.store.profiles.train(scopeId, id, generation, { template, status, printVersion: printVersion + 1 });
}

/**
 * Against what was enrolled, not what has grown since: sessions have no say in who joins. At the rate of a call and not a
 * lower one: measured, a tenth of it keeps out nearly all that a print could learn from (bench:accuracy -- --adaptation).
 */
async function matchesEnrolled(deps: Dependencies, enrolled: Template, voice: Voice, rate: number): Promise<boolean> {
  const [score] = await deps.engine.score([enrolled], voice);
  return score!.llr >= deps.engine.threshold(rate, score!);
}

function grownOf(template: Template): GrownPrint {
  if (template.grown) return template.grown;
  const { embedding, netSpeechSeconds, snrDb, bandwidthHz } = template;
  return { enrolled: { embedding, netSpeechSeconds, snrDb, bandwidthHz }, sessions: [] };
}

const grownTemplate = (template: Template, grown: GrownPrint, most: number): Template => ({
  ...template,
  ...grownVoice(grown, most),
  grown,
});
