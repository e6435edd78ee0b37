/** Keyed documents, sealed as in the SQL store. */
import { untilUncontended } from "../contention.js";
import { decodeJson, encodeJson } from "../encoding.js";
import type { Store } from "../port.js";
import { purgingNowAndThen } from "../purging.js";
import type { DataKey } from "../seal/key-ring.js";
import { DOCUMENT_SCOPE, documentPlace } from "../seal/vault.js";
import type { RecordContext } from "./context.js";
import { type StoredDocument, within } from "./tables.js";

const KEY_SETTING = "document-key";

export function createDocuments({ db, vault, now }: RecordContext): Store["documents"] {
  async function documentKey(): Promise<DataKey> {
    return untilUncontended("the key of the documents", async () => {
      const id = await db.get("settings", KEY_SETTING);
      const known = id && (await vault.key(DOCUMENT_SCOPE, id));
      if (known) return known;
      const made = await vault.ring.create(DOCUMENT_SCOPE, "session");
      const isFree = await db.transact(["settings"], async ({ settings }) => {
        const free = (await settings.get(KEY_SETTING)) === id;
        if (free) await settings.put(made.id, KEY_SETTING);
        return free;
      });
      if (isFree) return made;
      await vault.ring.destroy(DOCUMENT_SCOPE, [made.id]);
    });
  }

  async function seal(collection: string, id: string, document: unknown): Promise<Uint8Array> {
    return vault.seal(await documentKey(), documentPlace(collection, id), encodeJson(document));
  }

  const isLive = (stored: StoredDocument | undefined): stored is StoredDocument =>
    stored !== undefined && (stored.expiresAt === null || stored.expiresAt > now());

  const purgeNowAndThen = purgingNowAndThen(now, () =>
    db.transact(["documents"], async ({ documents }) => {
      const expired = (await documents.getAll()).filter((stored) => !isLive(stored));
      for (const { collection, id } of expired) await documents.delete([collection, id]);
    }),
  );

  async function open({ collection, id, sealed }: StoredDocument): Promise<unknown | null> {
    const bytes = await vault.open(documentPlace(collection, id), sealed);
    return bytes && decodeJson(bytes);
  }

  return {
    async get(collection, id) {
      const stored = await db.get("documents", [collection, id]);
      return isLive(stored) ? open(stored) : null;
    },
    async put(collection, id, document, expiresAt = null) {
      await db.put("documents", { collection, id, expiresAt, sealed: await seal(collection, id, document) });
      await purgeNowAndThen();
    },
    async insert(collection, id, document, expiresAt = null) {
      const sealed = await seal(collection, id, document);
      await purgeNowAndThen();
      return db.transact(["documents"], async ({ documents }) => {
        const free = !isLive(await documents.get([collection, id]));
        if (free) await documents.put({ collection, id, expiresAt, sealed });
        return free;
      });
    },
    async update(collection, id, change) {
      await untilUncontended(`document ${id}`, async () => {
        const read = await db.get("documents", [collection, id]);
        const before = isLive(read) ? read : null;
        const next = change(before && (await open(before)));
        if (next === undefined) return true;
        const sealed = next === null ? null : await seal(collection, id, next);
        return db.transact(["documents"], async ({ documents }) => {
          if (!sameBytes((await documents.get([collection, id]))?.sealed, read?.sealed)) return undefined;
          if (sealed) await documents.put({ collection, id, expiresAt: before?.expiresAt ?? null, sealed });
          else await documents.delete([collection, id]);
          return true;
        });
      });
    },
    delete: (collection, id) =>
      db.transact(["documents"], async ({ documents }) => {
        const live = isLive(await documents.get([collection, id]));
        await documents.delete([collection, id]);
        return live;
      }),
    async list(collection) {
      const stored = (await db.getAll("documents", within(collection))).filter(isLive);
      const sealed = stored.map(({ id, sealed: bytes }) => ({ place: documentPlace(collection, id), bytes }));
      const opened = await vault.openAll(DOCUMENT_SCOPE, sealed);
      return opened.flatMap((bytes, i) => (bytes ? [{ id: stored[i]!.id, document: decodeJson(bytes) }] : []));
    },
  };
}

/** Every sealing uses a new nonce, so equal bytes come from the same write. */
function sameBytes(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  if (!one || !other) return one === other;
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}
