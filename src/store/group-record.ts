/** For stores that keep a group and its members in one record. */
import type { Group, GroupName, GroupSize, Id, Members } from "./port.js";

export const groupName = ({ id, scopeId, kind, tag }: Group): GroupName => ({ id, scopeId, kind, tag });

export const groupSize = (group: Group): GroupSize => ({
  ...groupName(group),
  profiles: group.profileIds.length,
  owners: group.ownerIds.length,
});

export const hasMember = ({ profileIds, ownerIds }: Members, profileId: Id, ownerId: Id): boolean =>
  profileIds.includes(profileId) || ownerIds.includes(ownerId);

/** Each member once. */
export const membersOnce = ({ profileIds, ownerIds }: Members): Members => ({
  profileIds: [...new Set(profileIds)],
  ownerIds: [...new Set(ownerIds)],
});

export const withMembers = (group: Members, { profileIds, ownerIds }: Members): Members =>
  membersOnce({ profileIds: [...group.profileIds, ...profileIds], ownerIds: [...group.ownerIds, ...ownerIds] });

export const withoutMembers = (group: Members, { profileIds, ownerIds }: Members): Members => ({
  profileIds: group.profileIds.filter((member) => !profileIds.includes(member)),
  ownerIds: group.ownerIds.filter((member) => !ownerIds.includes(member)),
});
