/** What the tests in Chromium use on the page. */
import { openIndexedDbStore } from "../../../src/store/indexeddb/store.js";
import { describeStoreContract } from "../contract.js";
import { enrollPerson, newId } from "../fixtures.js";
import { run } from "./collecting-vitest.js";

describeStoreContract("IndexedDB in a browser", { open: (options) => openIndexedDbStore(newId("store"), options) });

const page = {
  run,

  /** Enrolls a person in a store of this name and returns the audio and embeddings that must not be found. */
  async enroll(name: string) {
    const store = await openIndexedDbStore(name);
    const { profile, media, processed } = await enrollPerson(store, "scope", "alice", 1);
    await store.close();
    const embeddings = [profile.template!.embedding, processed.voice.embedding!];
    return { id: profile.id, audio: [...media.audio], embeddings: embeddings.map((embedding) => [...embedding]) };
  },

  async template(name: string, id: string) {
    const store = await openIndexedDbStore(name);
    const profile = await store.profiles.get("scope", id);
    await store.close();
    return profile?.template ? [...profile.template.embedding] : null;
  },

  async erase(name: string, id: string) {
    const store = await openIndexedDbStore(name);
    const erased = await store.profiles.erase("scope", id);
    await store.close();
    return erased;
  },

  /** All bytes in a database, and whether a key in it could be exported. */
  async dump(name: string) {
    const request = indexedDB.open(name);
    const db = await new Promise<IDBDatabase>((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const bytes: number[][] = [];
    const exportable: boolean[] = [];
    const visit = (value: unknown): void => {
      if (value instanceof CryptoKey) exportable.push(value.extractable);
      else if (ArrayBuffer.isView(value))
        bytes.push([...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)]);
      else if (value !== null && typeof value === "object") Object.values(value).forEach(visit);
    };
    for (const storeName of db.objectStoreNames) {
      const all = db.transaction(storeName).objectStore(storeName).getAll();
      await new Promise((resolve) => {
        all.onsuccess = resolve;
      });
      all.result.forEach(visit);
    }
    db.close();
    return { bytes, exportable };
  },
};

export type StorePage = typeof page;

(globalThis as unknown as { storePage: StorePage }).storePage = page;
