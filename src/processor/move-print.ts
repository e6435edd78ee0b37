/**
 * Moves a print of an older model to the scope's model: calls that clearly match it are added as segments of that model.
 * Once there are enough, they become its template, and the person does not have to enroll again.
 */
import { EnrollReason } from "../contract/index.js";
import type { ProcessedAudio, Profile } from "../store/port.js";
import { enrollReason } from "../voiceprint/enrollment.js";
import { totalNet, trainedStatus } from "../voiceprint/template.js";
import { audioModel, limitedTo } from "./audio-model.js";
import type { OpenContext } from "./context.js";
import { trainTemplate } from "./training.js";

/** Calls from at least this many sessions: one that should not have matched disagrees with the others and is left out. */
const fewestCalls = 3;

export async function movePrint(
  { deps, scopeId, session, set, engine }: OpenContext,
  { id, generation, printType }: Profile,
  analyzed: ProcessedAudio,
): Promise<void> {
  const { profiles } = deps.store;
  const { revision } = engine.model;
  const ofModel = async () =>
    (await profiles.segments(scopeId, id)).filter(({ processed }) => processed.revision === revision);
  const before = await ofModel();
  if (before.some(({ processed }) => processed.sessionId === session.id)) return;
  const processed = limitedTo(analyzed, set.maxNetAudioForEnroll);
  const known = before.map((segment) => audioModel(segment.processed));
  if (enrollReason(audioModel(processed), known, printType, revision, set) !== EnrollReason.ENROLL_OK) return;
  const segment = { profileId: id, processed, addedAt: deps.clock.now() };
  // If another writer was faster, this call is not added; there will be other calls.
  if ((await profiles.addSegment(scopeId, id, generation, segment)) !== "added") return;

  const profile = await profiles.get(scopeId, id);
  if (!profile?.template || profile.template.revision === revision) return;
  const segments = await ofModel();
  if (new Set(segments.map((one) => one.processed.sessionId)).size < fewestCalls) return;
  const models = segments.map((one) => one.processed);
  const { template, valid } = await trainTemplate(engine, models, set, {});
  if (!template) return;
  const net = totalNet(models.filter((model) => valid.has(model.id)).map(({ measures }) => measures));
  await profiles.train(scopeId, id, profile.generation, {
    template,
    status: trainedStatus(net, set),
    printVersion: profile.printVersion + 1,
    segments,
  });
}
