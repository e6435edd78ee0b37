import { ConsentState, StatusCode } from "../contract/index.js";
import type { RecordedConsent } from "../store/port.js";
import { checkOptionalContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { invalid, notInScope, refusal } from "./failures.js";
import { consentMessage, uniqueId } from "./messages.js";
import { assertName, createProfile, findProfile, ownerOf } from "./profiles.js";

export const createVoiceprintProfile: Implementation<"createVoiceprintProfile"> = async (deps, request) => {
  const { kind, externalId, tag } = ownerOf(request.owner, request.profileTag);
  const scopeId = await checkOptionalContext(deps, request.context);
  const profile = await createProfile(deps, scopeId, { kind, externalId }, tag);
  if (profile) return { gkVoiceprintProfileId: uniqueId(profile.id), gkOwnerId: uniqueId(profile.owner.id) };
  throw refusal(StatusCode.ALREADY_EXISTS, "profile_tag", "exists", `this ${kind} already has a profile with this tag`);
};

/** Answers without an id when the owner has no such profile. */
export const getGkVoiceprintProfileId: Implementation<"getGkVoiceprintProfileId"> = async (deps, request) => {
  const { kind, externalId, tag } = ownerOf(request.owner, request.profileTag);
  const scopeId = await checkOptionalContext(deps, request.context);
  const profile = await deps.store.profiles.find(scopeId, kind, externalId, tag);
  return profile ? { gkVoiceprintProfileId: uniqueId(profile.id), gkOwnerId: uniqueId(profile.owner.id) } : {};
};

/** Records the person's consent or withdrawal. A withdrawn print leaves galleries and caches before the call returns. */
export const setVoiceprintProfileConsent: Implementation<"setVoiceprintProfileConsent"> = async (deps, request) => {
  const reference = assertName(request.reference, "reference");
  if (request.state !== ConsentState.GIVEN && request.state !== ConsentState.WITHDRAWN)
    throw invalid("state", "out_of_range", `state must be GIVEN (1) or WITHDRAWN (2), got ${request.state}`);
  const scopeId = await checkOptionalContext(deps, request.context);
  const { id, owner } = await findProfile(deps, scopeId, request.gkVoiceprintProfileId);
  if (owner.kind !== "person")
    throw invalid(
      "gk_voiceprint_profile_id",
      "wrong_kind",
      `expected the profile of a person, got the profile of a ${owner.kind}`,
    );
  const state = request.state === ConsentState.GIVEN ? "given" : "withdrawn";
  const consent: RecordedConsent = { state, at: deps.clock.now(), reference };
  if (!(await deps.store.profiles.setConsent(scopeId, id, consent)))
    throw notInScope("gk_voiceprint_profile_id", "profile", id);
  deps.galleries.drop(scopeId, id);
  deps.prints.drop(scopeId, id);
  return { consent: consentMessage(consent)! };
};

const mostNamed = 10;

/** Erases segments, audio models and template, in the store and in loaded galleries. */
export const deleteVoiceprintProfile: Implementation<"deleteVoiceprintProfile"> = async (deps, request) => {
  const scopeId = await checkOptionalContext(deps, request.context);
  const id = request.gkVoiceprintProfileId!.value;
  const unopened = new Set<string>();
  if (!(await deps.store.profiles.erase(scopeId, id, (recording) => unopened.add(recording))))
    throw notInScope("gk_voiceprint_profile_id", "profile", id);
  deps.galleries.drop(scopeId, id);
  deps.prints.drop(scopeId, id);
  if (unopened.size === 0) return {};
  const named = [...unopened].slice(0, mostNamed).join(", ");
  const message = `the profile is erased; ${unopened.size} damaged recordings or audio models of the same calls could not be opened: ${named}`;
  return { status: { message } };
};
