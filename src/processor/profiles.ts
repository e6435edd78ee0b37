/** Finding profiles and owners. */
import {
  type CreateVoiceprintProfileRequest,
  StatusCode,
  type UniqueId,
  VoiceprintProfileStatus,
} from "../contract/index.js";
import type { Template } from "../engine/port.js";
import { type Id, mayBeUsed, type Owner, type OwnerKind, type Profile } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";
import { invalid, notInScope, refusal } from "./failures.js";

export async function findProfile(deps: Dependencies, scopeId: Id, id: UniqueId | undefined): Promise<Profile> {
  const profile = await deps.store.profiles.get(scopeId, id!.value);
  if (!profile) throw notInScope("gk_voiceprint_profile_id", "profile", id!.value);
  return profile;
}

/** Creates a profile that is not trained yet. `null` when the owner already has one with this tag. */
export function createProfile(
  deps: Dependencies,
  scopeId: Id,
  owner: Pick<Owner, "kind" | "externalId">,
  tag: string,
  printType: string | null = null,
): Promise<Profile | null> {
  return deps.store.profiles.create({
    id: deps.ids.next(),
    scopeId,
    owner: { ...owner, id: deps.ids.next(), scopeId },
    tag,
    printType,
    printVersion: 0,
    template: null,
    status: VoiceprintProfileStatus.NOT_TRAINED,
    createdAt: deps.clock.now(),
  });
}

/** Finds a profile in order to change it, which is not allowed while consent is withdrawn. */
export async function findProfileToChange(deps: Dependencies, scopeId: Id, id: UniqueId | undefined): Promise<Profile> {
  const profile = await findProfile(deps, scopeId, id);
  assertConsent(profile, "gk_voiceprint_profile_id");
  return profile;
}

export function assertConsent(profile: Profile, field: string): void {
  if (mayBeUsed(profile)) return;
  const message = "the person has withdrawn consent; the print cannot be changed until consent is given again";
  throw refusal(StatusCode.PERMISSION_DENIED, field, "consent_withdrawn", message);
}

export type TrainedProfile = Profile & { readonly template: Template };

/** Whether it has a template that can be scored here. */
export const isTrained = ({ models }: Dependencies, { template }: Profile): boolean =>
  template !== null && models.has(template.revision);

/** A template that cannot be scored here does not count as trained. */
export const statusOf = (deps: Dependencies, profile: Profile): VoiceprintProfileStatus =>
  isTrained(deps, profile) ? profile.status : VoiceprintProfileStatus.NOT_TRAINED;

/** Whether its template was made by the model that the scope's new prints use. */
export const isOfScopesModel = ({ models }: Dependencies, { scopeId, template }: Profile): boolean =>
  template?.revision === models.of(scopeId).model.revision;

const longestName = 256;

export function ownerOf(
  choice: CreateVoiceprintProfileRequest["owner"],
  profileTag: string,
): { kind: OwnerKind; externalId: string; tag: string } {
  const kind = choice.case === "fraudsterId" ? "fraudster" : "person";
  const externalId = assertName(choice.value!, kind === "person" ? "person_id" : "fraudster_id");
  return { kind, externalId, tag: assertName(profileTag, "profile_tag") };
}

/** The caller chooses names freely; only names that a store cannot index are rejected. */
export function assertName(name: string, field: string): string {
  if (name.length > longestName)
    throw invalid(field, "too_long", `${field} must have at most ${longestName} characters, got ${name.length}`);
  if (name.includes("\0")) throw invalid(field, "malformed", `${field} must not contain a NUL character`);
  return name;
}
