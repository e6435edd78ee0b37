/** Groups and watchlists. */
import { groupName, groupSize, hasMember, membersOnce, withMembers, withoutMembers } from "../group-record.js";
import type { Group, GroupKind, Id, Members, Store } from "../port.js";
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
      await inStoreWords(group.id, db.add("groups", { ...group, ...membersOnce(group) }));
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
        .filter((group) => hasMember(group, profileId, ownerId))
        .map(groupName);
    },
    delete: (scopeId, kind, id) => change(scopeId, kind, id, () => null),
    addMembers: (scopeId, kind, id, members) => change(scopeId, kind, id, (group) => withMembers(group, members)),
    removeMembers: (scopeId, kind, id, members) => change(scopeId, kind, id, (group) => withoutMembers(group, members)),
  };
}

function plainGroup({ version: _, ...group }: StoredGroup): Group {
  return group;
}
