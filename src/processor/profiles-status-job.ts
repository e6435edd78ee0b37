import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { VoiceprintProfileStatusDetailsSchema } from "../contract/index.js";
import { opened } from "../store/damaged-profiles.js";
import type { Id, Profile } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";
import { type JobRequest, profilesOf, unlessDamaged } from "./job-profiles.js";
import { consentMessage, duration, uniqueId } from "./messages.js";
import { isTrained, statusOf } from "./profiles.js";

/** Status, version, model, segments and speech of every profile asked for. */
export async function profileStatuses(
  deps: Dependencies,
  scopeId: Id,
  request: JobRequest,
  onProgress: (done: number) => Promise<void>,
): Promise<JsonValue[]> {
  const statuses: JsonValue[] = [];
  for await (const { profile, done } of profilesOf(deps, scopeId, request)) {
    const details = create(VoiceprintProfileStatusDetailsSchema, {
      gkVoiceprintProfileId: uniqueId(profile.id),
      printVersion: profile.printVersion === 0 ? undefined : profile.printVersion,
      consent: consentMessage(profile.consent),
      ...(await unlessDamaged(() => trainingOf(deps, opened(profile)), {})),
    });
    statuses.push(toJson(VoiceprintProfileStatusDetailsSchema, details));
    await onProgress(done);
  }
  return statuses;
}

async function trainingOf(deps: Dependencies, profile: Profile) {
  const segments = await deps.store.profiles.segments(profile.scopeId, profile.id);
  const net = segments.reduce((sum, { processed }) => sum + processed.measures.netSpeechSeconds, 0);
  return {
    status: statusOf(deps, profile),
    ...(profile.template && { gkCalibrationModelRevisionId: uniqueId(profile.template.revision) }),
    totalSegments: segments.length,
    totalNetAudio: duration(net),
    isObsolete: profile.template !== null && !isTrained(deps, profile),
  };
}
