/**
 * Prints that were compared lately, opened. Reading and unsealing a hundred of them costs more than scoring them. Before
 * every use the store's version is compared, as for galleries, so a print that was retrained or erased is never used.
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
    /** Prints kept for each scope; those used longest ago go first. */
    private readonly capacity = 4096,
    private readonly scopes = 64,
  ) {}

  /** Those of these ids that are trained, in any order. */
  async get(scopeId: Id, ids: readonly Id[]): Promise<Print[]> {
    const { profiles } = this.store;
    const wanted = [...new Set(ids)];
    if (wanted.length > this.capacity) return profiles.printsOf(scopeId, wanted);
    const slot = await this.#current(scopeId);
    const { version } = slot;
    const missing = wanted.filter((id) => !slot.prints.has(id));
    const found = wanted.flatMap((id) => slot.prints.get(id) ?? []);
    const read = missing.length > 0 ? await profiles.printsOf(scopeId, missing) : [];
    // Another call may have noted a newer version meanwhile: what was read before it must not stay.
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
   * The scope's slot, without what changed since it was last used. A print that is read while somebody changes it is
   * dropped at the next use: its change has a higher version than the one noted here.
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
