/** Groups and watchlists. */
import { type Group, type GroupKind, groupName, groupSize, type Id, type Members, type Store } from "../port.js";
import type { IdbContext } from "./context.js";
import { afterId, inStoreWords, type StoredGroup, within } from "./schema.js";

export function createGroups({ db }: IdbContext): Store["groups"] {
  async function find(scopeId: Id, kind: GroupKind, id: Id): Promise<StoredGroup | null> {
    const group = await db.get("groups", [scopeId, id]);
    return group?.kind === kind ? group : null;
  }

  /** `null` deletes. */
  async function change(
    scopeId: Id,
    kind: GroupKind,
    id: Id,
    next: (group: Group) => Members | null,
  ): Promise<boolean> {
    const tx = db.transaction("groups", "readwrite");
    const group = await tx.store.get([scopeId, id]);
    const found = group?.kind === kind;
    if (found) {
      const changed = next(group);
      if (changed) await tx.store.put({ ...group, ...changed, version: (group.version ?? 0) + 1 });
      else await tx.store.delete([scopeId, id]);
    }
    await tx.done;
    return found;
  }

  return {
    async create(group) {
      const profileIds = [...new Set(group.profileIds)];
      const ownerIds = [...new Set(group.ownerIds)];
      await inStoreWords(group.id, db.add("groups", { ...group, profileIds, ownerIds }));
    },
    async get(scopeId, kind, id) {
      const group = await find(scopeId, kind, id);
      return group && plainGroup(group);
    },
    async version(scopeId, kind, id) {
      const group = await find(scopeId, kind, id);
      return group && (group.version ?? 0);
    },
    async withTag(scopeId, kind, tag, limit) {
      const groups = await db.getAll("groups", within(scopeId));
      return groups
        .filter((group) => group.kind === kind && group.tag === tag)
        .slice(0, limit)
        .map(({ id }) => id);
    },
    async sizes(scopeId, kind, after, limit) {
      const groups = await db.getAll("groups", afterId(scopeId, after));
      return groups
        .filter((group) => group.kind === kind)
        .slice(0, limit)
        .map(groupSize);
    },
    async holding(scopeId, profileId, ownerId) {
      return (await db.getAll("groups", within(scopeId)))
        .filter(({ profileIds, ownerIds }) => profileIds.includes(profileId) || ownerIds.includes(ownerId))
        .map(groupName);
    },
    delete: (scopeId, kind, id) => change(scopeId, kind, id, () => null),
    addMembers: (scopeId, kind, id, { profileIds, ownerIds }) =>
      change(scopeId, kind, id, (group) => ({
        profileIds: [...new Set([...group.profileIds, ...profileIds])],
        ownerIds: [...new Set([...group.ownerIds, ...ownerIds])],
      })),
    removeMembers: (scopeId, kind, id, { profileIds, ownerIds }) =>
      change(scopeId, kind, id, (group) => ({
        profileIds: group.profileIds.filter((member) => !profileIds.includes(member)),
        ownerIds: group.ownerIds.filter((member) => !ownerIds.includes(member)),
      })),
  };
}

function plainGroup({ version: _, ...group }: StoredGroup): Group {
  return group;
}
