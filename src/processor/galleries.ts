/**
 * The prints of a scope and kind, loaded for search and kept current: before every answer the store's version is
 * compared, and only what changed is read again. Prints of another model are never in a gallery.
 */
import type { Engine, Gallery } from "../engine/port.js";
import type { Id, OwnerKind, Print, Store } from "../store/port.js";

export interface GalleryMember {
  readonly ownerId: Id;
  readonly tag: string;
}

export interface LoadedGallery {
  readonly gallery: Gallery;
  /** Every valid print in the gallery. */
  readonly members: ReadonlyMap<Id, GalleryMember>;
}

interface Slot {
  readonly gallery: Gallery;
  readonly members: Map<Id, GalleryMember>;
  version: number;
  /** Searches of one gallery run one after the other. */
  ready: Promise<void>;
}

export class Galleries {
  readonly #slots = new Map<string, Slot>();

  constructor(
    private readonly engine: Engine,
    private readonly store: Store,
    /** Galleries kept loaded; the one used longest ago goes first. */
    private readonly capacity = 64,
  ) {}

  /** Does `work` on the gallery as it is in the store now. `work` does not wait, so nothing changes under it. */
  async search<T>(scopeId: Id, kind: OwnerKind, work: (loaded: LoadedGallery) => T): Promise<T> {
    const key = `${kind}:${scopeId}`;
    const slot = this.#slots.get(key) ?? this.#open(key);
    this.#slots.delete(key);
    this.#slots.set(key, slot);
    const found = slot.ready.then(() => this.#refresh(slot, scopeId, kind)).then(() => work(slot));
    // The next caller tries again after a failure, instead of inheriting it.
    slot.ready = found.then(
      () => {},
      () => {},
    );
    return found;
  }

  /** For an erased print: it is gone from memory when the erasure is answered, not at the next search. */
  drop(scopeId: Id, id: Id): void {
    for (const kind of ["person", "fraudster"] as const) {
      const slot = this.#slots.get(`${kind}:${scopeId}`);
      if (slot) remove(slot, id);
    }
  }

  close(): void {
    for (const slot of this.#slots.values()) slot.gallery.close();
    this.#slots.clear();
  }

  #open(key: string): Slot {
    const oldest = this.#slots.size >= this.capacity ? this.#slots.entries().next().value : undefined;
    if (oldest) {
      this.#slots.delete(oldest[0]);
      void oldest[1].ready.then(() => oldest[1].gallery.close());
    }
    const slot = { gallery: this.engine.gallery(), members: new Map(), version: -1, ready: Promise.resolve() };
    this.#slots.set(key, slot);
    return slot;
  }

  async #refresh(slot: Slot, scopeId: Id, kind: OwnerKind): Promise<void> {
    const { profiles } = this.store;
    if (slot.version < 0) {
      // The version is read first: what changes while the prints are read is read once more at the next refresh.
      const version = await profiles.printsVersion(scopeId);
      for await (const print of profiles.prints(scopeId, kind)) this.#put(slot, print);
      slot.version = version;
      return;
    }
    if ((await profiles.printsVersion(scopeId)) === slot.version) return;
    const changed = await profiles.printsChangedSince(scopeId, slot.version);
    const prints = new Map((await profiles.printsOf(scopeId, changed.ids)).map((print) => [print.profileId, print]));
    for (const id of changed.ids) {
      const print = prints.get(id);
      if (print?.kind === kind) this.#put(slot, print);
      else remove(slot, id);
    }
    slot.version = changed.version;
  }

  #put(slot: Slot, print: Print): void {
    if (print.template.revision === this.engine.model.revision) {
      slot.gallery.set(print.profileId, print.template.embedding);
      slot.members.set(print.profileId, { ownerId: print.ownerId, tag: print.tag });
    } else {
      remove(slot, print.profileId);
    }
  }
}

function remove(slot: Slot, id: Id): void {
  slot.gallery.delete(id);
  slot.members.delete(id);
}
