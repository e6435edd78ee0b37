/**
 * Caches recently compared prints, unsealed: reading and unsealing a hundred of them costs more than scoring them. Every
 * use first compares the store's version, as for galleries, so an outdated or erased print is never used.
 */
import type { Id, Print, Store } from "../store/port.js";

interface Slot {
  version: number;
  readonly prints: Map<Id, Print>;
}

export class PrintCache {
  readonly #slots = new Map<Id, Slot>();

  constructor(
    private readonly store: Store,
    /** Number of prints cached for each scope; the least recently used are evicted first. */
    private readonly capacity = 4096,
    private readonly scopes = 64,
  ) {}

  /** The trained prints among these ids, in any order. */
  async get(scopeId: Id, ids: readonly Id[]): Promise<Print[]> {
    const { profiles } = this.store;
    const wanted = [...new Set(ids)];
    if (wanted.length > this.capacity) return profiles.printsOf(scopeId, wanted);
    const slot = await this.#current(scopeId);
    const { version } = slot;
    const missing = wanted.filter((id) => !slot.prints.has(id));
    const found = wanted.flatMap((id) => slot.prints.get(id) ?? []);
    const read = missing.length > 0 ? await profiles.printsOf(scopeId, missing) : [];
    // If another call has recorded a newer version in the meantime, prints read before it must not be cached.
    if (slot.version === version)
      for (const print of [...found, ...read]) {
        slot.prints.delete(print.profileId);
        slot.prints.set(print.profileId, print);
      }
    for (const id of slot.prints.keys()) {
      if (slot.prints.size <= this.capacity) break;
      slot.prints.delete(id);
    }
    return [...found, ...read];
  }

  drop(scopeId: Id, id: Id): void {
    this.#slots.get(scopeId)?.prints.delete(id);
  }

  clear(): void {
    this.#slots.clear();
  }

  /**
   * The scope's slot, without prints that changed since its last use. A print that changes while it is read is dropped at
   * the next use, because its change has a higher version than the one recorded here.
   */
  async #current(scopeId: Id): Promise<Slot> {
    const { profiles } = this.store;
    const version = await profiles.printsVersion(scopeId);
    const known = this.#slots.get(scopeId);
    if (known?.version === version) return known;
    if (known) {
      const changed = await profiles.printsChangedSince(scopeId, known.version);
      for (const id of changed.ids) known.prints.delete(id);
      known.version = changed.version;
      return known;
    }
    const slot = { version, prints: new Map<Id, Print>() };
    this.#slots.set(scopeId, slot);
    if (this.#slots.size > this.scopes) this.#slots.delete(this.#slots.keys().next().value!);
    return slot;
  }
}
