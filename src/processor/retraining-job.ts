import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { AudioValidity, RetrainingOutcome, TrainReason, VoiceprintProfileRetrainingSchema } from "../contract/index.js";
import { untilUncontended } from "../store/contention.js";
import { opened } from "../store/damaged-profiles.js";
import { type EnrollmentSegment, type Id, mayBeUsed, type Profile } from "../store/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { enoughForTraining, totalNet, trainedStatus } from "../voiceprint/template.js";
import { measuredAudio } from "./audio-model.js";
import type { Dependencies } from "./dependencies.js";
import { type JobRequest, profilesOf, unlessDamaged } from "./job-profiles.js";
import { uniqueId } from "./messages.js";
import { isOfScopesModel, isTrained } from "./profiles.js";
import { analyzeRecording, openRecording } from "./recorded-audio.js";
import { trainTemplate } from "./training.js";

interface Retraining {
  readonly outcome: RetrainingOutcome;
  readonly printVersion: number;
}

/** After a model update: makes new templates from stored audio, and reports which profiles move with calls or must be enrolled again. */
export async function retrainProfiles(
  deps: Dependencies,
  scopeId: Id,
  request: JobRequest,
  onProgress: (done: number) => Promise<void>,
): Promise<JsonValue[]> {
  const set = deps.configurationSets.get(request.configsetId);
  if (!set) throw new Error("the configuration set of this job no longer exists");
  const outcomes: JsonValue[] = [];
  for await (const { profile, done } of profilesOf(deps, scopeId, request)) {
    const { outcome, printVersion } = await unlessDamaged(
      () => (request.dryRun ? foresee : retrain)(deps, opened(profile), set),
      { outcome: RetrainingOutcome.FAILED, printVersion: profile.printVersion },
    );
    const entry = create(VoiceprintProfileRetrainingSchema, {
      gkVoiceprintProfileId: uniqueId(profile.id),
      outcome,
      printVersion: printVersion === 0 ? undefined : printVersion,
    });
    outcomes.push(toJson(VoiceprintProfileRetrainingSchema, entry));
    await onProgress(done);
  }
  return outcomes;
}

/** Predicts the result of `retrain`, assuming that all stored audio is still fit and consistent. Changes nothing. */
async function foresee(deps: Dependencies, profile: Profile, set: ConfigurationSet): Promise<Retraining> {
  const { scopeId, id, printVersion } = profile;
  if (!profile.template || !mayBeUsed(profile) || isOfScopesModel(deps, profile))
    return { outcome: RetrainingOutcome.NOT_NEEDED, printVersion };
  const { revision } = deps.models.of(scopeId).model;
  const kept: EnrollmentSegment[] = [];
  for (const segment of await deps.store.profiles.segments(scopeId, id)) {
    const { processed } = segment;
    if (processed.revision === revision || (await deps.store.media.get(scopeId, processed.mediaSegmentId)))
      kept.push(segment);
  }
  const measures = kept.map(({ processed }) => processed.measures);
  const enough = enoughForTraining(measures, set);
  return { outcome: enough ? RetrainingOutcome.RETRAINED : withoutAudio(deps, profile), printVersion };
}

async function retrain(deps: Dependencies, given: Profile, set: ConfigurationSet): Promise<Retraining> {
  const { profiles } = deps.store;
  return untilUncontended("the profile", async () => {
    const profile = await profiles.get(given.scopeId, given.id);
    if (!profile) return { outcome: RetrainingOutcome.NOT_NEEDED, printVersion: given.printVersion };
    const { scopeId, id, generation, printVersion } = profile;
    if (!profile.template || !mayBeUsed(profile) || isOfScopesModel(deps, profile))
      return { outcome: RetrainingOutcome.NOT_NEEDED, printVersion };
    const stored = await profiles.segments(scopeId, id);
    const renewed: EnrollmentSegment[] = [];
    for (const segment of stored) {
      const fresh = await renew(deps, segment, set);
      if (fresh === "failed") return { outcome: RetrainingOutcome.FAILED, printVersion };
      if (fresh) renewed.push(fresh);
    }
    const models = renewed.map(({ processed }) => processed);
    const { template, reason, valid } = await trainTemplate(deps.models.of(scopeId), models, set, {});
    if (reason === TrainReason.INTERNAL_ERROR) return { outcome: RetrainingOutcome.FAILED, printVersion };
    if (!template) return { outcome: withoutAudio(deps, profile), printVersion };
    const used = models.filter(({ id }) => valid.has(id));
    const status = trainedStatus(totalNet(used.map(({ measures }) => measures)), set);
    const next = { template, status, printVersion: printVersion + 1, segments: renewed };
    if (await profiles.train(scopeId, id, generation, next))
      return { outcome: RetrainingOutcome.RETRAINED, printVersion: printVersion + 1 };
    return undefined;
  });
}

/** A person's print whose model is installed moves with matching calls; a fraudster's print, or one that cannot be scored, does not. */
const withoutAudio = (deps: Dependencies, profile: Profile): RetrainingOutcome =>
  isTrained(deps, profile) && profile.owner.kind === "person"
    ? RetrainingOutcome.WAITING_FOR_CALLS
    : RetrainingOutcome.ENROLLMENT_NEEDED;

/** Processes the segment with the scope's model. `null` if its audio was not kept or is no longer fit, "failed" if the engine failed. */
async function renew(
  deps: Dependencies,
  segment: EnrollmentSegment,
  set: ConfigurationSet,
): Promise<EnrollmentSegment | "failed" | null> {
  const { processed } = segment;
  if (processed.revision === deps.models.of(processed.scopeId).model.revision) return segment;
  const media = await deps.store.media.get(processed.scopeId, processed.mediaSegmentId);
  if (!media) return null;
  const { channel, scopeId } = processed;
  const listening = { channel, maxNetSpeechSeconds: set.maxNetAudioForEnroll };
  const analyzed = await analyzeRecording({ deps, options: {}, scopeId }, openRecording(deps, media), listening);
  const { analysis } = analyzed;
  if (!analysis) return analyzed.failure === AudioValidity.INTERNAL_ERROR ? "failed" : null;
  const validity = audioValidity(measuredAudio(analysis), "enroll", set);
  if (validity !== AudioValidity.AUDIO_OK) return null;
  const { measures, speakers, voiceClass, revision, windows, embedding } = analysis;
  const voice = { windows, embedding };
  const createdAt = deps.clock.now();
  return {
    ...segment,
    processed: {
      ...processed,
      id: deps.ids.next(),
      validity,
      measures,
      speakers,
      voiceClass,
      revision,
      createdAt,
      voice,
    },
  };
}
