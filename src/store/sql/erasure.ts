/** Removes everything that belongs to a profile in one transaction; the keys are destroyed after the commit. */
import type { Id, OnUnopened } from "../port.js";
import type { DoomedKey, KeyId } from "../seal/key-ring.js";
import { destroyDoomed, doom, markPrintChanged, type SqlContext } from "./context.js";
import type { Queries } from "./database.js";
import { AUDIO_MODELS, MEDIA, replaceSessionKeys } from "./recordings.js";
import { escapeText, keyOf, unescapeText } from "./text.js";

/** `false` if there is no such profile. */
export async function eraseProfile(
  context: SqlContext,
  scopeId: Id,
  id: Id,
  onUnopened?: OnUnopened,
): Promise<boolean> {
  const doomed = await context.database.transaction((tx) => eraseRows(tx, context, scopeId, id, onUnopened));
  await destroyDoomed(context, doomed ?? []);
  return doomed !== null;
}

/** The keys to destroy; `null` if there is no such profile. Locks owner, profile, sessions, scope in this order, like all other code. */
async function eraseRows(
  tx: Queries,
  context: SqlContext,
  scopeId: Id,
  id: Id,
  onUnopened?: OnUnopened,
): Promise<readonly DoomedKey[] | null> {
  const scope = keyOf(scopeId);
  const profile = [scope, escapeText(id)];
  const [owner] = await tx.query<{ id: string }>(
    `SELECT o.id FROM vivavoce.owners o
     WHERE o.scope = $1 AND o.id = (SELECT p.owner FROM vivavoce.profiles p WHERE p.scope = $1 AND p.id = $2) FOR UPDATE`,
    profile,
  );
  const [found] = await tx.query<{ key_id: KeyId; trained: boolean }>(
    "SELECT key_id, template IS NOT NULL AS trained FROM vivavoce.profiles WHERE scope = $1 AND id = $2 FOR UPDATE",
    profile,
  );
  if (!owner || !found) return null;

  const sessions = await eraseRecordings(tx, profile);
  await tx.query("DELETE FROM vivavoce.matches WHERE scope = $1 AND profile = $2", profile);
  await tx.query("DELETE FROM vivavoce.segments WHERE scope = $1 AND profile = $2", profile);
  await tx.query("DELETE FROM vivavoce.group_members WHERE scope = $1 AND kind = 'profile' AND member = $2", profile);
  await tx.query("DELETE FROM vivavoce.profiles WHERE scope = $1 AND id = $2", profile);
  const lastOfOwner = await tx.query(
    `DELETE FROM vivavoce.owners o WHERE o.scope = $1 AND o.id = $2
       AND NOT EXISTS (SELECT 1 FROM vivavoce.profiles p WHERE p.scope = $1 AND p.owner = $2) RETURNING 1`,
    [scope, owner.id],
  );
  if (lastOfOwner.length > 0)
    await tx.query("DELETE FROM vivavoce.group_members WHERE scope = $1 AND kind = 'owner' AND member = $2", [
      scope,
      owner.id,
    ]);
  const doomed = [
    { scopeId, keyId: found.key_id },
    ...(await replaceSessionKeys(tx, context, MEDIA, scopeId, sessions, onUnopened)),
    ...(await replaceSessionKeys(tx, context, AUDIO_MODELS, scopeId, sessions, onUnopened)),
  ];
  if (found.trained) await markPrintChanged(tx, scopeId, id);
  await doom(tx, doomed);
  return doomed;
}

/**
 * For profile $2 in scope $1: what it was enrolled from, and what it matched, except if another profile was enrolled from it. A segment does not
 * know its recording if its audio model is from an earlier version; the audio model was told by the migration.
 */
const RECORDINGS = `
  enrolled AS (
    SELECT s.audio_model, s.media, coalesce(s.part_of, a.part_of) AS part_of FROM vivavoce.segments s
    LEFT JOIN vivavoce.audio_models a ON a.scope = s.scope AND a.id = s.audio_model
    WHERE s.scope = $1 AND s.profile = $2 UNION
    SELECT a.id, a.media, a.part_of FROM vivavoce.matches c
    JOIN vivavoce.audio_models a ON a.scope = c.scope AND a.id = c.audio_model
    WHERE c.scope = $1 AND c.profile = $2 AND NOT EXISTS (
      SELECT 1 FROM vivavoce.segments s WHERE s.scope = $1 AND s.audio_model = a.id AND s.profile <> $2
    )
  ), roots AS (
    SELECT DISTINCT coalesce(e.part_of, m.part_of, e.media) AS id FROM enrolled e
    LEFT JOIN vivavoce.media m ON m.scope = $1 AND m.id = e.media
  ), family AS (
    SELECT id FROM roots UNION
    SELECT media FROM enrolled UNION
    SELECT m.id FROM vivavoce.media m JOIN roots r ON m.part_of = r.id WHERE m.scope = $1
  ), made AS (
    SELECT a.id, a.session FROM vivavoce.audio_models a WHERE a.scope = $1 AND a.id IN (SELECT audio_model FROM enrolled) UNION
    SELECT a.id, a.session FROM vivavoce.audio_models a WHERE a.scope = $1 AND a.media IN (SELECT id FROM family) UNION
    SELECT a.id, a.session FROM vivavoce.audio_models a WHERE a.scope = $1 AND a.part_of IN (SELECT id FROM roots)
  )`;

/**
 * All recordings that a profile was enrolled from or matched, in full (an enrolled part, its source and the other parts), and every audio model
 * made of them, except those that another profile was enrolled from: they hold another voice. Returns the sessions they belonged to.
 */
async function eraseRecordings(tx: Queries, profile: readonly string[]): Promise<Id[]> {
  // Locks the sessions first, as expiry does, to avoid a deadlock.
  await tx.query(
    `WITH ${RECORDINGS}
     SELECT 1 FROM vivavoce.sessions WHERE scope = $1 AND id IN (
       SELECT session FROM made UNION
       SELECT m.session FROM vivavoce.media m WHERE m.scope = $1 AND m.id IN (SELECT id FROM family)
     ) ORDER BY id FOR UPDATE`,
    profile,
  );
  const rows = await tx.query<{ session: string }>(
    `WITH ${RECORDINGS}, models AS (
       DELETE FROM vivavoce.audio_models a
       WHERE a.scope = $1 AND a.id IN (SELECT id FROM made)
         AND NOT EXISTS (
           SELECT 1 FROM vivavoce.segments s WHERE s.scope = $1 AND s.audio_model = a.id AND s.profile <> $2
         )
       RETURNING a.session
     ), media AS (
       DELETE FROM vivavoce.media m WHERE m.scope = $1 AND m.id IN (SELECT id FROM family) RETURNING m.session
     )
     SELECT session FROM models UNION SELECT session FROM media`,
    profile,
  );
  return rows.map(({ session }) => unescapeText(session));
}
