/** Groups of persons and watchlists of fraudsters: the same operations on either kind. */
import type { ListOfUniqueId } from "../contract/index.js";
import type { GroupKind, Id } from "../store/port.js";
import { assertKind, findProfiles } from "./candidates.js";
import { type CallScope, checkOptionalContext } from "./context.js";
import type { GroupImplementation } from "./dependencies.js";
import { invalid, notInScope } from "./failures.js";
import { uniqueId } from "./messages.js";
import { assertName } from "./profiles.js";

interface GivenMembers {
  readonly gkVoiceprintProfileIds?: ListOfUniqueId | undefined;
  readonly gkOwnerIds?: ListOfUniqueId | undefined;
}

export const createGroup: GroupImplementation<"createGroup"> = async (deps, kind, request, options) => {
  const tag = assertName(request.tag, "tag");
  const scopeId = await checkOptionalContext(deps, request.context);
  const members = await existingMembers({ deps, options, scopeId }, kind, request);
  const id = deps.ids.next();
  await deps.store.groups.create({ id, scopeId, kind, tag, ...members });
  return { gkGroupId: uniqueId(id) };
};

export const getGroup: GroupImplementation<"getGroup"> = async (deps, kind, request) => {
  const scopeId = await checkOptionalContext(deps, request.context);
  const group = await deps.store.groups.get(scopeId, kind, request.gkGroupId!.value);
  if (!group) throw notInScope("gk_group_id", kind, request.gkGroupId!.value);
  return {
    gkGroupId: uniqueId(group.id),
    tag: group.tag,
    gkVoiceprintProfileIds: { uniqueIds: group.profileIds.map(uniqueId) },
    gkOwnerIds: { uniqueIds: group.ownerIds.map(uniqueId) },
  };
};

/** The prints themselves stay. */
export const deleteGroup: GroupImplementation<"deleteGroup"> = async (deps, kind, request) => {
  const scopeId = await checkOptionalContext(deps, request.context);
  if (!(await deps.store.groups.delete(scopeId, kind, request.gkGroupId!.value)))
    throw notInScope("gk_group_id", kind, request.gkGroupId!.value);
  return {};
};

export const addGroupMembers: GroupImplementation<"addGroupMembers"> = async (deps, kind, request, options) => {
  const scopeId = await checkOptionalContext(deps, request.context);
  assertSomeMembers(request);
  const members = await existingMembers({ deps, options, scopeId }, kind, request);
  if (!(await deps.store.groups.addMembers(scopeId, kind, request.gkGroupId!.value, members)))
    throw notInScope("gk_group_id", kind, request.gkGroupId!.value);
  return {};
};

/** Ids that are not members are ignored. */
export const removeGroupMembers: GroupImplementation<"removeGroupMembers"> = async (deps, kind, request) => {
  const scopeId = await checkOptionalContext(deps, request.context);
  assertSomeMembers(request);
  if (!(await deps.store.groups.removeMembers(scopeId, kind, request.gkGroupId!.value, memberIds(request))))
    throw notInScope("gk_group_id", kind, request.gkGroupId!.value);
  return {};
};

const memberIds = (given: GivenMembers) => ({
  profileIds: ids(given.gkVoiceprintProfileIds),
  ownerIds: ids(given.gkOwnerIds),
});

const ids = (list: ListOfUniqueId | undefined): Id[] => [...new Set(list?.uniqueIds.map((id) => id.value) ?? [])];

function assertSomeMembers(given: GivenMembers): void {
  const { profileIds, ownerIds } = memberIds(given);
  if (profileIds.length + ownerIds.length === 0)
    throw invalid("gk_voiceprint_profile_ids", "empty", "at least one profile or owner is required");
}

/** A group holds persons, a watchlist holds fraudsters. Every member must exist. */
async function existingMembers(scope: CallScope, kind: GroupKind, given: GivenMembers) {
  const { deps, options, scopeId } = scope;
  const wanted = kind === "group" ? "person" : "fraudster";
  if (given.gkVoiceprintProfileIds) {
    const field = "gk_voiceprint_profile_ids";
    const found = await findProfiles(scope, given.gkVoiceprintProfileIds, field);
    for (const [i, profile] of found.entries()) assertKind(profile, wanted, `${field}.unique_ids[${i}]`);
  }
  const ownerIds = ids(given.gkOwnerIds);
  const owners = ownerIds.length > 0 ? await deps.store.owners.getMany(scopeId, ownerIds) : [];
  options.signal?.throwIfAborted();
  const known = new Map(owners.map((owner) => [owner.id, owner]));
  for (const [i, id] of (given.gkOwnerIds?.uniqueIds ?? []).entries()) {
    const field = `gk_owner_ids.unique_ids[${i}]`;
    const owner = known.get(id.value);
    if (!owner) throw notInScope(field, "owner", id.value);
    if (owner.kind !== wanted) throw invalid(field, "wrong_kind", `expected a ${wanted}, got a ${owner.kind}`);
  }
  return memberIds(given);
}
