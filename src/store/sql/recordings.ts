/** Media and audio models, sealed with keys of their session. The keys are destroyed with the session's recordings. */
import { untilUncontended } from "../contention.js";
import { joinProcessed, splitProcessed } from "../encoding.js";
import { StoreError } from "../errors.js";
import type { Id, MediaSegment, OnUnopened, PlainProcessed, ProcessedAudio, Store } from "../port.js";
import type { DataKey, DoomedKey, KeyId } from "../seal/key-ring.js";
import { recordingPlace, resealIfOpened } from "../seal/vault.js";
import { destroyDoomed, doom, inStoreWords, readDoomed, records, type SqlContext } from "./context.js";
import type { Queries } from "./database.js";
import { escapeText, keyOf, rowKey, textOrNull } from "./text.js";

/** The two kinds of recordings differ only in their table, their key and their place. */
export interface RecordingKind {
  readonly table: "media" | "audio_models";
  readonly sealedColumn: "audio" | "voice";
  readonly keyColumn: "media_key" | "model_key";
  readonly place: "media" | "audio-model";
}

export const MEDIA: RecordingKind = { table: "media", sealedColumn: "audio", keyColumn: "media_key", place: "media" };
export const AUDIO_MODELS: RecordingKind = {
  table: "audio_models",
  sealedColumn: "voice",
  keyColumn: "model_key",
  place: "audio-model",
};

const EXPIRED_AT_ONCE = 200;
const SESSIONS_KNOWN = 1024;

export function createMedia(context: SqlContext): Store["media"] {
  return {
    async add(segment, enrolledIn) {
      const { audio, ...plain } = segment;
      const partOf = textOrNull(segment.partOf);
      await underSessionKey(context, MEDIA, segment, audio, (sealed, keyId) =>
        context.database.query(
          `WITH ${openSession(context, 8, "FROM vivavoce.sessions WHERE scope = $1 AND id = $3 AND media_key = $7 FOR SHARE")},
             added AS (
               INSERT INTO vivavoce.media (scope, id, session, part_of, data, audio)
               SELECT scope, $2, session, $4, $5, $6 FROM open WHERE complete
             )
           SELECT 1 FROM open`,
          [...recordKey(segment), partOf, JSON.stringify(plain), sealed, keyId, listed(enrolledIn)],
        ),
      );
    },
    async get(scopeId, id) {
      const found = await get<Omit<MediaSegment, "audio">>(context, MEDIA, scopeId, id);
      return found && { ...found.plain, audio: found.opened };
    },
    ofSession: (scopeId, sessionId) => ofSession(context, MEDIA, scopeId, sessionId),
    expire: (...when) => expire(context, MEDIA, ...when),
  };
}

export function createProcessed(context: SqlContext): Store["processed"] {
  return {
    async add(processed, enrolledIn) {
      await addAudioModel(context, processed, (session, values) =>
        context.database.query(
          `WITH ${openSession(context, 9, session)}, model AS (${insertAudioModel}) SELECT 1 FROM open`,
          [...values, listed(enrolledIn)],
        ),
      );
    },
    async get(scopeId, id) {
      const found = await get<PlainProcessed>(context, AUDIO_MODELS, scopeId, id);
      return found && joinProcessed(found.plain, found.opened);
    },
    ofSession: (scopeId, sessionId) => ofSession(context, AUDIO_MODELS, scopeId, sessionId),
    expire: (...when) => expire(context, AUDIO_MODELS, ...when),
  };
}

/**
 * `write` runs `insertAudioModel`, alone or with other statements of the same write, from the session's row. `session` finds that row, or none if
 * the session's key has changed. Both together use $1 to $8.
 */
export async function addAudioModel(
  context: SqlContext,
  processed: ProcessedAudio,
  write: (session: string, values: readonly unknown[]) => Promise<readonly unknown[]>,
): Promise<void> {
  const { plain, content } = splitProcessed(processed);
  const media = escapeText(processed.mediaSegmentId);
  const partOf = textOrNull(processed.partOf);
  // The session's key must not change before the insert is visible. No lock is needed if no other process has the database open.
  const held = context.database.exclusive ? "" : "FOR SHARE";
  await underSessionKey(context, AUDIO_MODELS, processed, content, (sealed, keyId) =>
    write(`FROM vivavoce.sessions WHERE scope = $1 AND id = $3 AND model_key = $7 ${held}`, [
      ...recordKey(processed),
      media,
      JSON.stringify(plain),
      sealed,
      keyId,
      partOf,
    ]),
  );
}

/** Reads `openSession`. */
export const insertAudioModel = `
  INSERT INTO vivavoce.audio_models (scope, id, session, media, data, voice, part_of)
  SELECT scope, $2, session, $4, $5, $6, $8 FROM open WHERE complete`;

/**
 * `prints`: those of the listed profiles that are not erased, and cannot be until this is written. `open`: the session's row, `complete` if that
 * is all of them. Prints first, then the session: the order in which an erasure locks them. No lock is needed if no other process has the database
 * open. One lookup for each: for a list, the planner may read all profiles of the scope.
 */
export const openSession = (context: SqlContext, profiles: number, session: string): string =>
  `prints AS (${listedPrints(context, profiles)}),
   open AS (SELECT scope, id AS session, (SELECT count(*) = cardinality($${profiles}::text[]) FROM prints) AS complete ${session})`;

export const listedPrints = ({ database }: SqlContext, parameter: number): string =>
  `SELECT p.id FROM unnest($${parameter}::text[]) AS m (id), LATERAL (
     SELECT id FROM vivavoce.profiles WHERE scope = $1 AND id = m.id LIMIT 1 ${database.exclusive ? "" : "FOR KEY SHARE"}
   ) p`;

const listed = (profileId: Id | undefined): string[] => (profileId === undefined ? [] : [escapeText(profileId)]);

const recordKey = ({ scopeId, id, sessionId }: { scopeId: Id; id: Id; sessionId: Id }): string[] => [
  ...rowKey(scopeId, id),
  escapeText(sessionId),
];

/**
 * Seals a recording under its session's key. `insert` returns the rows it wrote, and writes none if the session's key has changed:
 * an erasure or an expiry may have replaced it. Then it is tried again.
 */
async function underSessionKey(
  context: SqlContext,
  kind: RecordingKind,
  record: { scopeId: Id; sessionId: Id; id: Id },
  content: Uint8Array,
  insert: (sealed: Uint8Array, keyId: KeyId) => Promise<readonly unknown[]>,
): Promise<void> {
  const { vault, sessionKeyIds } = context;
  const { scopeId, sessionId, id } = record;
  const session = `${kind.table} ${keyOf(scopeId)} ${sessionId}`;
  const noted = await untilUncontended(`session ${sessionId}`, async () => {
    const guess = sessionKeyIds.get(session);
    const guessed = guess === undefined ? null : await vault.key(scopeId, guess);
    const key = guessed ?? (await sessionKey(context, kind, scopeId, sessionId));
    const sealed = await vault.seal(key, recordingPlace(kind.place, record), content);
    const rows = await inStoreWords(id, insert(sealed, key.id));
    if (rows.length > 0) return key.id;
    sessionKeyIds.delete(session);
  });
  sessionKeyIds.delete(session);
  sessionKeyIds.set(session, noted);
  if (sessionKeyIds.size > SESSIONS_KNOWN) sessionKeyIds.delete(sessionKeyIds.keys().next().value!);
}

/** The session's key for this kind, created on first use. */
async function sessionKey(context: SqlContext, kind: RecordingKind, scopeId: Id, sessionId: Id): Promise<DataKey> {
  const { database, vault } = context;
  const session = rowKey(scopeId, sessionId);
  return untilUncontended(`session ${sessionId}`, async () => {
    const [row] = await database.query<{ key_id: KeyId | null }>(
      `SELECT ${kind.keyColumn} AS key_id FROM vivavoce.sessions WHERE scope = $1 AND id = $2`,
      session,
    );
    if (!row) throw new StoreError("unknown-parent", `session ${sessionId} does not exist`);
    const known = row.key_id && (await vault.key(scopeId, row.key_id));
    if (known) return known;
    // None yet, or a destroyed key, which only a database restored from a backup still names.
    const made = await vault.ring.create(scopeId, "session");
    const rows = await database.query(
      `UPDATE vivavoce.sessions SET ${kind.keyColumn} = $3
       WHERE scope = $1 AND id = $2 AND ${kind.keyColumn} IS NOT DISTINCT FROM $4 RETURNING 1`,
      [...session, made.id, row.key_id],
    );
    if (rows.length > 0) return made;
    await vault.ring.destroy(scopeId, [made.id]);
  });
}

async function get<Plain extends { readonly sessionId: Id }>(
  { database, vault }: SqlContext,
  kind: RecordingKind,
  scopeId: Id,
  id: Id,
): Promise<{ plain: Plain; opened: Uint8Array } | null> {
  const [row] = await database.query<{ data: string; sealed: Uint8Array }>(
    `SELECT data, ${kind.sealedColumn} AS sealed FROM vivavoce.${kind.table} WHERE scope = $1 AND id = $2`,
    rowKey(scopeId, id),
  );
  if (!row) return null;
  const plain: Plain = JSON.parse(row.data);
  const opened = await vault.open(recordingPlace(kind.place, { scopeId, sessionId: plain.sessionId, id }), row.sealed);
  // A recording without its key has expired, even if its row still exists.
  return opened && { plain, opened };
}

const ofSession = <Plain>({ database }: SqlContext, { table }: RecordingKind, scopeId: Id, sessionId: Id) =>
  records<Plain>(
    database,
    `SELECT data FROM vivavoce.${table} WHERE scope = $1 AND session = $2 ORDER BY id`,
    rowKey(scopeId, sessionId),
  );

async function expire(
  context: SqlContext,
  kind: RecordingKind,
  scopeId: Id | null,
  stoppedBefore: number,
  abandonedBefore = Number.NEGATIVE_INFINITY,
): Promise<number> {
  let removed = 0;
  const errors: unknown[] = [];
  const destroy = (keys: readonly DoomedKey[]) => destroyDoomed(context, keys).catch((error) => errors.push(error));
  // Called regularly while a server runs, so this is where failed key destructions are repeated.
  await destroy(await readDoomed(context));
  for (;;) {
    const batch = await context.database.transaction(
      (tx) => expireSome(tx, kind, scopeId, stoppedBefore, abandonedBefore),
      { slow: true },
    );
    await destroy(batch.keys);
    removed += batch.removed;
    if (batch.keys.length < EXPIRED_AT_ONCE) break;
  }
  if (errors.length > 0) throw errors[0];
  return removed;
}

async function expireSome(
  tx: Queries,
  kind: RecordingKind,
  scopeId: Id | null,
  stoppedBefore: number,
  abandonedBefore: number,
): Promise<{ removed: number; keys: DoomedKey[] }> {
  const sessions = await tx.query<{ scope: string; id: string; key_id: KeyId; data: string }>(
    `SELECT scope, id, ${kind.keyColumn} AS key_id, data FROM vivavoce.sessions
     WHERE ${kind.keyColumn} IS NOT NULL AND ($1::text IS NULL OR scope = $1)
       AND (stopped_at < $2 OR (stopped_at IS NULL AND started_at < $3))
     ORDER BY scope, id LIMIT ${EXPIRED_AT_ONCE} FOR UPDATE`,
    [scopeId === null ? null : keyOf(scopeId), stoppedBefore, abandonedBefore],
  );
  if (sessions.length === 0) return { removed: 0, keys: [] };
  const which = [sessions.map(({ scope }) => scope), sessions.map(({ id }) => id)];
  const [counted] = await tx.query<{ removed: number | string }>(
    `WITH gone AS (
       DELETE FROM vivavoce.${kind.table}
       WHERE (scope, session) IN (SELECT * FROM unnest($1::text[], $2::text[])) RETURNING 1
     ) SELECT count(*) AS removed FROM gone`,
    which,
  );
  await tx.query(
    `UPDATE vivavoce.sessions SET ${kind.keyColumn} = NULL
     WHERE (scope, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))`,
    which,
  );
  const keys = sessions.map(({ key_id, data }) => ({ keyId: key_id, scopeId: JSON.parse(data).scopeId as Id }));
  await doom(tx, keys);
  return { removed: Number(counted!.removed), keys };
}

/**
 * Gives the sessions new keys: their remaining recordings are sealed again, and the old keys can be destroyed with everything they
 * sealed. For sessions of which some recordings are erased and others stay.
 */
export async function replaceSessionKeys(
  tx: Queries,
  { vault }: SqlContext,
  kind: RecordingKind,
  scopeId: Id,
  sessionIds: readonly Id[],
  onUnopened: OnUnopened = () => {},
): Promise<DoomedKey[]> {
  const doomed: DoomedKey[] = [];
  for (const sessionId of [...new Set(sessionIds)].sort()) {
    const session = rowKey(scopeId, sessionId);
    const [row] = await tx.query<{ key_id: KeyId | null }>(
      `SELECT ${kind.keyColumn} AS key_id FROM vivavoce.sessions WHERE scope = $1 AND id = $2 FOR UPDATE`,
      session,
    );
    if (!row?.key_id) continue;
    const left = await tx.query<{ id: string; data: string; sealed: Uint8Array }>(
      `SELECT id, data, ${kind.sealedColumn} AS sealed FROM vivavoce.${kind.table} WHERE scope = $1 AND session = $2`,
      session,
    );
    const key = left.length > 0 ? await vault.ring.create(scopeId, "session") : null;
    let areKeysLost = false;
    for (const { id, data, sealed } of key ? left : []) {
      const place = recordingPlace(kind.place, { scopeId, sessionId, id: JSON.parse(data).id });
      const { resealed, isKeyLost } = await resealIfOpened(vault, key!, place, sealed, onUnopened);
      areKeysLost ||= isKeyLost;
      if (!resealed) continue;
      await tx.query(`UPDATE vivavoce.${kind.table} SET ${kind.sealedColumn} = $3 WHERE scope = $1 AND id = $2`, [
        session[0],
        id,
        resealed,
      ]);
    }
    // Nobody can open the rest now. Restored keys can, if its key is not destroyed.
    if (areKeysLost) {
      doomed.push({ scopeId, keyId: key!.id });
      continue;
    }
    await tx.query(`UPDATE vivavoce.sessions SET ${kind.keyColumn} = $3 WHERE scope = $1 AND id = $2`, [
      ...session,
      key?.id ?? null,
    ]);
    doomed.push({ scopeId, keyId: row.key_id });
  }
  return doomed;
}
