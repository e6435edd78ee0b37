import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { VoiceprintProfileStatusDetailsSchema } from "../contract/index.js";
import type { Id } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";
import { type JobRequest, profilesOf } from "./job-profiles.js";
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
    const segments = await deps.store.profiles.segments(scopeId, profile.id);
    const net = segments.reduce((sum, { processed }) => sum + processed.measures.netSpeechSeconds, 0);
    const details = create(VoiceprintProfileStatusDetailsSchema, {
      gkVoiceprintProfileId: uniqueId(profile.id),
      status: statusOf(deps, profile),
      printVersion: profile.printVersion === 0 ? undefined : profile.printVersion,
      gkCalibrationModelRevisionId: profile.template ? uniqueId(profile.template.revision) : undefined,
      totalSegments: segments.length,
      totalNetAudio: duration(net),
      isObsolete: profile.template !== null && !isTrained(deps, profile),
      consent: consentMessage(profile.consent),
    });
    statuses.push(toJson(VoiceprintProfileStatusDetailsSchema, details));
    await onProgress(done);
  }
  return statuses;
}
