/** Adds the voice of a session that clearly matched to the print, if the configuration set says so (`adaptation`). */
import type { Template, Voice } from "../engine/port.js";
import { type GrownPrint, grownVoice, withSession } from "../voiceprint/growing-print.js";
import type { OpenContext } from "./context.js";
import type { TrainedProfile } from "./profiles.js";

export async function growPrint(
  { deps, session, set }: OpenContext,
  profile: TrainedProfile,
  voice: Voice,
): Promise<void> {
  const { enrolled, sessions: before } = grownOf(profile.template);
  const most = set.adaptation.maxSessions;
  const sessions = withSession(before, { ...voice, sessionId: session.id, at: deps.clock.now() }, most);
  if (sessions === before) return;
  const { scopeId, id, generation, status, printVersion } = profile;
  const grown = { enrolled, sessions };
  const template = { ...profile.template, ...grownVoice(grown, most), grown };
  // If another writer was faster, this session is not added; one session is not worth a retry.
  await deps.store.profiles.train(scopeId, id, generation, { template, status, printVersion: printVersion + 1 });
}

/** The template without what adaptation has added. */
export const enrolledTemplate = (template: Template): Template => ({ ...template, ...grownOf(template).enrolled });

function grownOf(template: Template): GrownPrint {
  if (template.grown) return template.grown;
  const { embedding, netSpeechSeconds, snrDb, bandwidthHz } = template;
  return { enrolled: { embedding, netSpeechSeconds, snrDb, bandwidthHz }, sessions: [] };
}
