import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  GetEnrollStatusRequest,
  GetEnrollStatusResponseSchema,
} from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { mayBeUsed } from "../store/port.js";
import { enrollStatus } from "../voiceprint/enrollment.js";
import { audioModel } from "./audio-model.js";
import { openContext } from "./context.js";
import type { Dependencies } from "./dependencies.js";
import { findProfile, isTrained } from "./profiles.js";

/** Whether a print is trained, ready to be trained, or not ready. Changes nothing. */
export async function getEnrollStatus(
  deps: Dependencies,
  request: GetEnrollStatusRequest,
): Promise<MessageInitShape<typeof GetEnrollStatusResponseSchema>> {
  const { scopeId, set, engine } = await openContext(deps, request.context);
  const profile = await findProfile(deps, scopeId, request.gkVoiceprintProfileId);
  const segments = await deps.store.profiles.segments(scopeId, profile.id);
  return {
    result: enrollStatus(
      segments.map(({ processed }) => audioModel(processed)),
      engine.model.revision,
      set,
    ),
    isTrained: isTrained(deps, profile) && mayBeUsed(profile),
  };
}
