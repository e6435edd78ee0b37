/** Groups and watchlists. */
import type { Group, GroupKind, GroupName, GroupSize, Id, Members, Store } from "../port.js";
import type { RecordContext } from "./context.js";
import { afterId, inStoreWords, type StoredGroup, within } from "./tables.js";

export function createGroups({ db }: RecordContext): Store["groups"] {
  async function find(scopeId: Id, kind: GroupKind, id: Id): Promise<StoredGroup | null> {
    const group = await db.get("groups", [scopeId, id]);
    return group?.kind === kind ? group : null;
  }

  /** `null` deletes. */
  const change = (scopeId: Id, kind: GroupKind, id: Id, next: (group: Group) => Members | null): Promise<boolean> =>
    db.transact(["groups"], async ({ groups }) => {
      const group = await groups.get([scopeId, id]);
      if (group?.kind !== kind) return false;
      const changed = next(group);
      if (changed) await groups.put({ ...group, ...changed, version: (group.version ?? 0) + 1 });
      else await groups.delete([scopeId, id]);
      return true;
    });

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

const groupName = ({ id, scopeId, kind, tag }: Group): GroupName => ({ id, scopeId, kind, tag });

const groupSize = (group: Group): GroupSize => ({
  ...groupName(group),
  profiles: group.profileIds.length,
  owners: group.ownerIds.length,
});

const hasMember = ({ profileIds, ownerIds }: Members, profileId: Id, ownerId: Id): boolean =>
  profileIds.includes(profileId) || ownerIds.includes(ownerId);

/** Each member once. */
const membersOnce = ({ profileIds, ownerIds }: Members): Members => ({
  profileIds: [...new Set(profileIds)],
  ownerIds: [...new Set(ownerIds)],
});

const withMembers = (group: Members, { profileIds, ownerIds }: Members): Members =>
  membersOnce({ profileIds: [...group.profileIds, ...profileIds], ownerIds: [...group.ownerIds, ...ownerIds] });

export const withoutMembers = (group: Members, { profileIds, ownerIds }: Members): Members => ({
  profileIds: group.profileIds.filter((member) => !profileIds.includes(member)),
  ownerIds: group.ownerIds.filter((member) => !ownerIds.includes(member)),
});
