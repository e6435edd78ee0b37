/** Keyed documents, sealed as in the SQL store. */
import { untilUncontended } from "../contention.js";
import { decodeJson, encodeJson } from "../encoding.js";
import type { Store } from "../port.js";
import { purgingNowAndThen } from "../purging.js";
import type { DataKey } from "../seal/key-ring.js";
import { DOCUMENT_SCOPE, documentPlace } from "../seal/vault.js";
import type { IdbContext } from "./context.js";
import { type StoredDocument, within } from "./schema.js";

const KEY_SETTING = "document-key";

export function createDocuments({ db, vault, now }: IdbContext): Store["documents"] {
  async function documentKey(): Promise<DataKey> {
    return untilUncontended("the key of the documents", async () => {
      const id = await db.get("settings", KEY_SETTING);
      const known = id && (await vault.key(DOCUMENT_SCOPE, id));
      if (known) return known;
      const made = await vault.ring.create(DOCUMENT_SCOPE, "session");
      const tx = db.transaction("settings", "readwrite");
      const free = (await tx.store.get(KEY_SETTING)) === id;
      if (free) await tx.store.put(made.id, KEY_SETTING);
      await tx.done;
      if (free) return made;
      await vault.ring.destroy(DOCUMENT_SCOPE, [made.id]);
    });
  }

  async function seal(collection: string, id: string, document: unknown): Promise<Uint8Array> {
    return vault.seal(await documentKey(), documentPlace(collection, id), encodeJson(document));
  }

  const isLive = (stored: StoredDocument | undefined): stored is StoredDocument =>
    stored !== undefined && (stored.expiresAt === null || stored.expiresAt > now());

  const purgeNowAndThen = purgingNowAndThen(now, async () => {
    const tx = db.transaction("documents", "readwrite");
    for await (const cursor of tx.store) if (!isLive(cursor.value)) await cursor.delete();
    await tx.done;
  });

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
      const tx = db.transaction("documents", "readwrite");
      const free = !isLive(await tx.store.get([collection, id]));
      if (free) await tx.store.put({ collection, id, expiresAt, sealed });
      await tx.done;
      return free;
    },
    async update(collection, id, change) {
      await untilUncontended(`document ${id}`, async () => {
        const read = await db.get("documents", [collection, id]);
        const before = isLive(read) ? read : null;
        const next = change(before && (await open(before)));
        if (next === undefined) return true;
        const sealed = next === null ? null : await seal(collection, id, next);
        const tx = db.transaction("documents", "readwrite");
        const unchanged = sameBytes((await tx.store.get([collection, id]))?.sealed, read?.sealed);
        if (unchanged && sealed) {
          await tx.store.put({ collection, id, expiresAt: before?.expiresAt ?? null, sealed });
        } else if (unchanged) {
          await tx.store.delete([collection, id]);
        }
        await tx.done;
        return unchanged || undefined;
      });
    },
    async delete(collection, id) {
      const tx = db.transaction("documents", "readwrite");
      const live = isLive(await tx.store.get([collection, id]));
      await tx.store.delete([collection, id]);
      await tx.done;
      return live;
    },
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
