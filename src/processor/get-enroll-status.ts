import { mayBeUsed } from "../store/port.js";
import { enrollStatus } from "../voiceprint/enrollment.js";
import { audioModel } from "./audio-model.js";
import { openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { findProfile, isTrained } from "./profiles.js";

/** Whether a print is trained, ready to be trained, or not ready. Changes nothing. */
export const getEnrollStatus: Implementation<"getEnrollStatus"> = async (deps, request, options) => {
  const { scopeId, set, engine } = await openContext(deps, request.context, options);
  const profile = await findProfile(deps, scopeId, request.gkVoiceprintProfileId);
  const segments = await deps.store.profiles.segments(scopeId, profile.id);
  const models = segments.map(({ processed }) => audioModel(processed));
  return {
    result: enrollStatus(models, engine.model.revision, set),
    isTrained: isTrained(deps, profile) && mayBeUsed(profile),
  };
};
