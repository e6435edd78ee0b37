/** Documents of the token and engagement services. They contain signing keys and hashes of secrets, so they are sealed too. */
import { untilUncontended } from "../contention.js";
import { decodeJson, encodeJson } from "../encoding.js";
import type { Store } from "../port.js";
import { purgingNowAndThen } from "../purging.js";
import { type DataKey, keyLost } from "../seal/key-ring.js";
import { DOCUMENT_SCOPE, documentPlace } from "../seal/vault.js";
import type { SqlContext } from "./context.js";
import type { Queries } from "./database.js";
import { escapeText, keyOf, unescapeText } from "./text.js";

const KEY_SETTING = "document-key";

interface DocumentRow extends Record<string, unknown> {
  readonly document_id: string;
  readonly document: Uint8Array;
}

/** The documents of collection $1 that have not expired at the time $2. */
const LIVE = `SELECT document_id, document FROM vivavoce.documents
  WHERE collection = $1 AND (expires_at IS NULL OR expires_at > $2)`;

const WRITE = `INSERT INTO vivavoce.documents AS d (collection, id, document_id, document, expires_at) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (collection, id) DO UPDATE SET document = excluded.document, expires_at = excluded.expires_at`;

export function createDocuments(context: SqlContext): Store["documents"] {
  const { database, vault, now } = context;
  let key: Promise<DataKey> | null = null;
  const purgeNowAndThen = purgingNowAndThen(now, (expiredAt) =>
    database.query("DELETE FROM vivavoce.documents WHERE expires_at <= $1", [expiredAt]),
  );

  function documentKey(): Promise<DataKey> {
    key ??= readKey(context).catch((error) => {
      key = null;
      throw error;
    });
    return key;
  }

  async function seal(collection: string, id: string, document: unknown): Promise<Uint8Array> {
    return vault.seal(await documentKey(), documentPlace(collection, id), encodeJson(document));
  }

  async function openAll(
    collection: string,
    rows: readonly DocumentRow[],
  ): Promise<{ id: string; document: unknown }[]> {
    const sealed = rows.map(({ document_id, document }) => ({
      place: documentPlace(collection, unescapeText(document_id)),
      bytes: document,
    }));
    const opened = await vault.openAll(DOCUMENT_SCOPE, sealed);
    return opened.flatMap((bytes, i) =>
      bytes ? [{ id: sealed[i]!.place.recordId, document: decodeJson(bytes) }] : [],
    );
  }

  /** Replaces an expired document, but never a valid one. */
  async function insert(
    queries: Queries,
    collection: string,
    id: string,
    sealed: Uint8Array,
    expiresAt: number | null,
  ) {
    const values = [keyOf(collection), keyOf(id), escapeText(id), sealed, expiresAt, now()];
    const rows = await queries.query(`${WRITE} WHERE d.expires_at <= $6 RETURNING 1`, values);
    return rows.length > 0;
  }

  return {
    async get(collection, id) {
      const rows = await database.query<DocumentRow>(`${LIVE} AND id = $3`, [keyOf(collection), now(), keyOf(id)]);
      return (await openAll(collection, rows))[0]?.document ?? null;
    },
    async put(collection, id, document, expiresAt = null) {
      const sealed = await seal(collection, id, document);
      await database.query(WRITE, [keyOf(collection), keyOf(id), escapeText(id), sealed, expiresAt]);
      await purgeNowAndThen();
    },
    async insert(collection, id, document, expiresAt = null) {
      const sealed = await seal(collection, id, document);
      await purgeNowAndThen();
      return insert(database, collection, id, sealed, expiresAt);
    },
    async update(collection, id, change) {
      // Before the transaction: an embedded database has one session, which the transaction occupies.
      await documentKey();
      const changed = (tx: Queries) => changeLocked(tx, collection, id, change);
      await untilUncontended(`document ${id}`, async () => (await database.transaction(changed)) || undefined);
    },
    async delete(collection, id) {
      const rows = await database.query<{ live: boolean }>(
        `DELETE FROM vivavoce.documents WHERE collection = $1 AND id = $2
         RETURNING (expires_at IS NULL OR expires_at > $3) AS live`,
        [keyOf(collection), keyOf(id), now()],
      );
      return rows[0]?.live ?? false;
    },
    async list(collection) {
      const rows = await database.query<DocumentRow>(LIVE, [keyOf(collection), now()]);
      return (await openAll(collection, rows)).sort((a, b) => (a.id < b.id ? -1 : 1));
    },
  };

  /** `false` if another process created the document in between: read and change it again. */
  async function changeLocked(
    tx: Queries,
    collection: string,
    id: string,
    change: (document: unknown | null) => unknown | null | undefined,
  ): Promise<boolean> {
    const at = [keyOf(collection), keyOf(id)] as const;
    const rows = await tx.query<DocumentRow>(`${LIVE} AND id = $3 FOR UPDATE`, [at[0], now(), at[1]]);
    const current = (await openAll(collection, rows))[0]?.document ?? null;
    const next = change(current);
    if (next === undefined) return true;
    if (next === null) {
      if (rows.length > 0) await tx.query("DELETE FROM vivavoce.documents WHERE collection = $1 AND id = $2", at);
      return true;
    }
    const sealed = await seal(collection, id, next);
    if (rows.length === 0) return insert(tx, collection, id, sealed, null);
    await tx.query("UPDATE vivavoce.documents SET document = $3 WHERE collection = $1 AND id = $2", [...at, sealed]);
    return true;
  }
}

/** One key for all documents, created with the first document. */
async function readKey({ database, vault }: SqlContext): Promise<DataKey> {
  return untilUncontended("the key of the documents", async () => {
    const [row] = await database.query<{ value: string }>("SELECT value FROM vivavoce.settings WHERE name = $1", [
      KEY_SETTING,
    ]);
    const known = row && (await vault.key(DOCUMENT_SCOPE, row.value));
    if (known) return known;
    if (row) throw keyLost("the key of the token services' documents is missing");
    const made = await vault.ring.create(DOCUMENT_SCOPE, "session");
    const rows = await database.query(
      "INSERT INTO vivavoce.settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING 1",
      [KEY_SETTING, made.id],
    );
    if (rows.length > 0) return made;
    await vault.ring.destroy(DOCUMENT_SCOPE, [made.id]);
  });
}

/** Throws "key-lost" if documents were written and their key is missing. */
export async function assertDocumentKey(context: SqlContext): Promise<void> {
  const rows = await context.database.query("SELECT 1 FROM vivavoce.settings WHERE name = $1", [KEY_SETTING]);
  if (rows.length > 0) await readKey(context);
}
