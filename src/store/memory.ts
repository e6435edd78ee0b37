/** A store that keeps nothing, for tests, short programs and pages without storage. Nothing is written to disk, so nothing is sealed. */
import { copy } from "./copy.js";
import { createMemoryTables } from "./memory-tables.js";
import type { Store } from "./port.js";
import type { Sealing } from "./records/context.js";
import { createRecordStore } from "./records/store.js";

/** Options of `createMemoryStore`. */
export interface MemoryStoreOptions {
  /** Milliseconds since 1970; decides which documents have expired. */
  readonly now?: () => number;
}

/** Everything is "sealed" with it. */
const noKey = { id: "none", key: { type: "none" } };

const unsealed: Sealing = {
  key: async () => noKey,
  // Copies, as encryption makes them. Decoders copy what they read.
  seal: async (_key, _place, plain) => new Uint8Array(plain),
  reseal: async (_key, _place, bytes) => bytes,
  open: async (_place, bytes) => new Uint8Array(bytes),
  openAll: async (_scopeId, sealed) => sealed.map(({ bytes }) => bytes),
  async assertDestroyed() {},
  ring: {
    create: async () => noKey,
    async destroy() {},
    shelf: { destroyedOf: async () => new Set() },
  },
};

/** A store that is lost when the process ends. */
export function createMemoryStore({ now = Date.now }: MemoryStoreOptions = {}): Store {
  // No caller shares memory with a store.
  return createRecordStore({ db: createMemoryTables(), vault: unsealed, now }, { across: copy });
}
