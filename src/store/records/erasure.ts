/**
 * Erasing a profile takes two transactions, because the remaining recordings of its calls must be sealed again in between: the first removes the rows
 * and marks the profile's key as doomed; the second gives the calls new keys, unless they were changed meanwhile, and dooms the old ones.
 */
import { untilUncontended } from "../contention.js";
import type { Id, OnUnopened } from "../port.js";
import type { DoomedKey } from "../seal/key-ring.js";
import { resealIfOpened } from "../seal/vault.js";
import { destroyDoomed, markPrintChanged, type RecordContext } from "./context.js";
import { withoutMembers } from "./groups.js";
import { KEY, placeOf, type RecordingKind } from "./recordings.js";
import { keysBetween, TABLE_NAMES, tableOf, within } from "./tables.js";

export async function eraseProfile(
  context: RecordContext,
  scopeId: Id,
  id: Id,
  onUnopened?: OnUnopened,
): Promise<boolean> {
  const removed = await removeRows(context, scopeId, id);
  if (!removed) return false;
  await destroyDoomed(context, [removed.key]);
  await finishRekeying(context, onUnopened);
  return true;
}

/** Sessions that lost recordings are recorded, so that the work resumes next time if the page is closed here. */
const REKEY_PREFIX = "rekey ";

const removeRows = ({ db }: RecordContext, scopeId: Id, id: Id): Promise<{ key: DoomedKey } | null> =>
  db.transact(TABLE_NAMES, async (tables) => {
    const { profiles, media, processed, segments, owners, groups, checks, settings, doomedKeys } = tables;
    const profile = await profiles.get([scopeId, id]);
    if (!profile) return null;
    const sessionIds = new Set<Id>();

    // All recordings that it was enrolled from or matched, in full, and every audio model made of them, except those that another
    // profile was enrolled from.
    const enrolledElsewhere = async (modelId: Id) =>
      (await segments.index("audioModel").getAll([scopeId, modelId])).some(({ profileId }) => profileId !== id);
    const own = (await segments.getAll(within(scopeId, id))).map((segment) => segment.processed);
    for (const check of await checks.getAll()) {
      if (check.scopeId !== scopeId || !check.audioModelId || !check.matchedProfileIds?.includes(id)) continue;
      const model = await processed.get([scopeId, check.audioModelId]);
      if (model && !(await enrolledElsewhere(model.id))) own.push(model);
    }
    const roots = new Set<Id>();
    for (const { partOf, mediaSegmentId } of own)
      roots.add(partOf ?? (await media.get([scopeId, mediaSegmentId]))?.root ?? mediaSegmentId);
    const family = new Set<Id>(own.map(({ mediaSegmentId }) => mediaSegmentId));
    for (const root of roots) {
      family.add(root);
      for (const part of await media.index("root").getAll([scopeId, root])) family.add(part.id);
    }
    const modelIds = new Set<Id>(own.map((model) => model.id));
    for (const { id: modelId, partOf, mediaSegmentId } of await processed.getAll(within(scopeId))) {
      if (family.has(mediaSegmentId) || (partOf !== undefined && roots.has(partOf))) modelIds.add(modelId);
    }
    for (const modelId of modelIds) {
      if (await enrolledElsewhere(modelId)) continue;
      const model = await processed.get([scopeId, modelId]);
      if (!model) continue;
      sessionIds.add(model.sessionId);
      await processed.delete([scopeId, modelId]);
    }
    for (const mediaId of family) {
      const segment = await media.get([scopeId, mediaId]);
      if (!segment) continue;
      sessionIds.add(segment.sessionId);
      await media.delete([scopeId, mediaId]);
    }

    await segments.delete(within(scopeId, id));
    await profiles.delete([scopeId, id]);
    const ownerId = profile.owner.id;
    const ownerIsGone = (await profiles.index("owner").count([scopeId, ownerId])) === 0;
    if (ownerIsGone) await owners.delete([scopeId, ownerId]);
    const gone = { profileIds: [id], ownerIds: ownerIsGone ? [ownerId] : [] };
    for (const group of await groups.getAll(within(scopeId)))
      await groups.put({ ...group, ...withoutMembers(group, gone) });
    if (profile.sealed) await markPrintChanged(tables, scopeId, id);
    for (const sessionId of sessionIds) {
      const session = JSON.stringify([scopeId, sessionId]);
      await settings.put(session, REKEY_PREFIX + session);
    }
    const key = { scopeId, keyId: profile.keyId };
    await doomedKeys.put(key);
    return { key };
  });

async function finishRekeying(context: RecordContext, onUnopened: OnUnopened = () => {}): Promise<void> {
  const names = await context.db.getAllKeys("settings", keysBetween(REKEY_PREFIX, `${REKEY_PREFIX}\uffff`));
  for (const name of names) {
    const [scopeId, sessionId]: [Id, Id] = JSON.parse(name.slice(REKEY_PREFIX.length));
    for (const kind of ["media", "processed"] as const) {
      const replaced = async () =>
        (await replaceSessionKey(context, kind, scopeId, sessionId, onUnopened)) || undefined;
      await untilUncontended(`session ${sessionId}`, replaced);
    }
    await context.db.delete("settings", name);
  }
}

/** `false` when recordings were added or removed meanwhile: look again. */
async function replaceSessionKey(
  context: RecordContext,
  kind: RecordingKind,
  scopeId: Id,
  sessionId: Id,
  onUnopened: OnUnopened,
): Promise<boolean> {
  const { db, vault } = context;
  const session = await db.get("sessions", [scopeId, sessionId]);
  const keyId = session?.[KEY[kind]];
  if (!keyId) return true;
  const left = await db.getAllFromIndex(kind, "session", [scopeId, sessionId]);
  const key = left.length > 0 ? await vault.ring.create(scopeId, "session") : null;
  const resealed: { id: Id; sealed: Uint8Array }[] = [];
  let areKeysLost = false;
  for (const record of key ? left : []) {
    const place = placeOf(kind, record);
    const { resealed: sealed, isKeyLost } = await resealIfOpened(vault, key!, place, record.sealed, onUnopened);
    if (sealed) resealed.push({ id: record.id, sealed });
    areKeysLost ||= isKeyLost;
  }
  // Nobody can open the rest now. Restored keys can, if its key is not destroyed.
  if (areKeysLost) {
    await vault.ring.destroy(scopeId, [key!.id]);
    return true;
  }

  const isReplaced = await db.transact(["sessions", kind, "doomedKeys"], async (tables) => {
    const { sessions, doomedKeys } = tables;
    const table = tableOf<RecordingKind>(tables, kind);
    const current = await sessions.get([scopeId, sessionId]);
    const ids = await table.index("session").getAllKeys([scopeId, sessionId]);
    const sameRecords = ids.length === left.length && left.every(({ id }) => ids.some((known) => known[1] === id));
    if (current?.[KEY[kind]] !== keyId || !sameRecords) return false;
    for (const { id, sealed } of resealed) {
      const record = (await table.get([scopeId, id]))!;
      await table.put({ ...record, sealed } as Parameters<typeof table.put>[0]);
    }
    await sessions.put({ ...current, [KEY[kind]]: key?.id ?? null });
    await doomedKeys.put({ scopeId, keyId });
    return true;
  });
  if (isReplaced) await destroyDoomed(context, [{ scopeId, keyId }]);
  else if (key) await vault.ring.destroy(scopeId, [key.id]);
  return isReplaced;
}

/** Finishes what a closed page left incomplete, and erases profiles that a restored database brought back. */
export async function finishErasures(context: RecordContext): Promise<void> {
  const { db, vault } = context;
  await destroyDoomed(context, await db.getAll("doomedKeys"));
  for (const { scopeId } of await db.getAll("scopes")) {
    const profiles = await db.getAll("profiles", within(scopeId));
    const keyIds = profiles.map(({ keyId }) => keyId);
    const destroyed = await vault.ring.shelf.destroyedOf(scopeId, keyIds);
    for (const { id, keyId } of profiles) if (destroyed.has(keyId)) await eraseProfile(context, scopeId, id);
  }
  await finishRekeying(context);
}
