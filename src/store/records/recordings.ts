/** Media and audio models, sealed with keys of their session. The keys are destroyed with the session's recordings. */
import { untilUncontended } from "../contention.js";
import { joinProcessed, splitProcessed } from "../encoding.js";
import { StoreError } from "../errors.js";
import { type Check, type Id, type ProcessedAudio, type Session, type Store, withoutModel } from "../port.js";
import type { DataKey, DoomedKey } from "../seal/key-ring.js";
import { type Place, recordingPlace } from "../seal/vault.js";
import { destroyDoomed, type RecordContext } from "./context.js";
import { inStoreWords, type StoredMedia, type StoredProcessed, tableOf, within } from "./tables.js";

/** The two kinds of recordings differ in where they are stored and which key seals them. */
export type RecordingKind = "media" | "processed";

export const KEY = { media: "mediaKey", processed: "modelKey" } as const;

export function createMedia(context: RecordContext): Store["media"] {
  const { db, vault } = context;
  return {
    async add({ audio, ...plain }, enrolledIn) {
      const root = plain.partOf ?? plain.id;
      await add(context, "media", plain, audio, (sealed) => ({ ...plain, root, sealed }), listed(enrolledIn));
    },
    async get(scopeId, id) {
      const stored = await db.get("media", [scopeId, id]);
      if (!stored) return null;
      const { sealed, root: _, ...plain } = stored;
      const audio = await vault.open(placeOf("media", stored), sealed);
      return audio && { ...plain, audio };
    },
    async ofSession(scopeId, sessionId) {
      const stored = await db.getAllFromIndex("media", "session", [scopeId, sessionId]);
      return stored.map(({ sealed: _, root: __, ...plain }) => plain);
    },
    expire: (...when) => expire(context, "media", ...when),
  };
}

export function createProcessed(context: RecordContext): Store["processed"] {
  const { db, vault } = context;
  return {
    add: (processed, enrolledIn) => addProcessed(context, processed, listed(enrolledIn)),
    async get(scopeId, id) {
      const stored = await db.get("processed", [scopeId, id]);
      if (!stored) return null;
      const { sealed, ...plain } = stored;
      const opened = await vault.open(placeOf("processed", stored), sealed);
      return opened && joinProcessed(plain, opened);
    },
    async ofSession(scopeId, sessionId) {
      const stored = await db.getAllFromIndex("processed", "session", [scopeId, sessionId]);
      return stored.map(({ sealed: _, ...plain }) => plain);
    },
    expire: (...when) => expire(context, "processed", ...when),
  };
}

const listed = (id: Id | undefined): readonly Id[] => (id === undefined ? [] : [id]);

/** In one write with the check that produced it, if there is one; only the check if one of these profiles was erased meanwhile. */
export function addProcessed(
  context: RecordContext,
  processed: ProcessedAudio,
  profileIds: readonly Id[],
  check?: Check,
): Promise<void> {
  const { plain, content } = splitProcessed(processed);
  return add(context, "processed", plain, content, (sealed) => ({ ...plain, sealed }), profileIds, check);
}

export const placeOf = (kind: RecordingKind, record: Parameters<typeof recordingPlace>[1]): Place =>
  recordingPlace(kind === "media" ? "media" : "audio-model", record);

async function add(
  context: RecordContext,
  kind: RecordingKind,
  record: { scopeId: Id; sessionId: Id; id: Id },
  content: Uint8Array,
  stored: (sealed: Uint8Array) => StoredMedia | StoredProcessed,
  profileIds: readonly Id[],
  check?: Check,
): Promise<void> {
  const { db, vault } = context;
  await untilUncontended(`session ${record.sessionId}`, async () => {
    const key = await sessionKey(context, kind, record.scopeId, record.sessionId);
    const sealed = await vault.seal(key, placeOf(kind, record), content);
    const write = db.transact(["sessions", kind, "checks", "profiles"], async (tables) => {
      const session = await tables.sessions.get([record.scopeId, record.sessionId]);
      // Only with the session's current key: an erasure or an expiry may have replaced it.
      if (session?.[KEY[kind]] !== key.id) return undefined;
      let isAnyErased = false;
      for (const id of profileIds) isAnyErased ||= !(await tables.profiles.getKey([record.scopeId, id]));
      if (!isAnyErased) await tableOf<RecordingKind>(tables, kind).add(stored(sealed));
      if (check) await tables.checks.add(isAnyErased ? withoutModel(check) : check);
      return true;
    });
    return inStoreWords(record.id, write);
  });
}

/** The session's key for this kind, created on first use. */
async function sessionKey(
  { db, vault }: RecordContext,
  kind: RecordingKind,
  scopeId: Id,
  sessionId: Id,
): Promise<DataKey> {
  return untilUncontended(`session ${sessionId}`, async () => {
    const session = await db.get("sessions", [scopeId, sessionId]);
    if (!session) throw new StoreError("unknown-parent", `session ${sessionId} does not exist`);
    const keyId = session[KEY[kind]];
    const known = keyId && (await vault.key(scopeId, keyId));
    if (known) return known;
    const made = await vault.ring.create(scopeId, "session");
    const isFree = await db.transact(["sessions"], async ({ sessions }) => {
      const current = await sessions.get([scopeId, sessionId]);
      if (!current || current[KEY[kind]] !== keyId) return false;
      await sessions.put({ ...current, [KEY[kind]]: made.id });
      return true;
    });
    if (isFree) return made;
    await vault.ring.destroy(scopeId, [made.id]);
  });
}

async function expire(
  context: RecordContext,
  kind: RecordingKind,
  scopeId: Id | null,
  stoppedBefore: number,
  abandonedBefore?: number,
): Promise<number> {
  const doomed: DoomedKey[] = [];
  let removed = 0;
  await context.db.transact(["sessions", kind, "doomedKeys"], async (tables) => {
    const { sessions, doomedKeys } = tables;
    const table = tableOf<RecordingKind>(tables, kind);
    for (const session of await sessions.getAll(scopeId === null ? null : within(scopeId))) {
      const keyId = session[KEY[kind]];
      if (keyId === null || !hasExpired(session, stoppedBefore, abandonedBefore)) continue;
      for (const key of await table.index("session").getAllKeys([session.scopeId, session.id])) {
        await table.delete(key);
        removed++;
      }
      await sessions.put({ ...session, [KEY[kind]]: null });
      const key = { scopeId: session.scopeId, keyId };
      await doomedKeys.put(key);
      doomed.push(key);
    }
  });
  await destroyDoomed(context, doomed);
  return removed;
}

/** Whether what was recorded in the session is removed by `expire`. */
const hasExpired = (
  { startedAt, stoppedAt }: Session,
  stoppedBefore: number,
  abandonedBefore = Number.NEGATIVE_INFINITY,
): boolean => (stoppedAt === null ? startedAt < abandonedBefore : stoppedAt < stoppedBefore);
