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
  /**
   * What was found for `key` before, while neither the gallery nor what it was `of` has changed: a large group is sorted
   * out once, not with every call.
   */
  remembered(key: string, of: readonly (readonly Id[])[], find: () => ReadonlySet<Id>): ReadonlySet<Id>;
}

interface Memory {
  readonly of: readonly (readonly Id[])[];
  readonly version: number;
  readonly found: ReadonlySet<Id>;
}

const same = (one: readonly Id[], other: readonly Id[]): boolean =>
  one === other || (one.length === other.length && one.every((id, i) => id === other[i]));

/** Groups remembered for each gallery. */
const mostRemembered = 16;

class Slot implements LoadedGallery {
  readonly members = new Map<Id, GalleryMember>();
  readonly #memories = new Map<string, Memory>();
  version = -1;
  /** Searches of one gallery run one after the other. */
  ready: Promise<void> = Promise.resolve();

  constructor(readonly gallery: Gallery) {}

  remembered(key: string, of: readonly (readonly Id[])[], find: () => ReadonlySet<Id>): ReadonlySet<Id> {
    const known = this.#memories.get(key);
    if (
      known?.version === this.version &&
      known.of.length === of.length &&
      known.of.every((one, i) => same(one, of[i]!))
    )
      return known.found;
    const found = find();
    this.#memories.delete(key);
    this.#memories.set(key, { of, version: this.version, found });
    if (this.#memories.size > mostRemembered) this.#memories.delete(this.#memories.keys().next().value!);
    return found;
  }

  put(print: Print): void {
    this.gallery.set(print.profileId, print.template.embedding);
    this.members.set(print.profileId, { ownerId: print.ownerId, tag: print.tag });
  }

  remove(id: Id): void {
    this.gallery.delete(id);
    this.members.delete(id);
    // What was found before may name it.
    this.#memories.clear();
  }
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
      slot?.remove(id);
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
    const slot = new Slot(this.engine.gallery());
    this.#slots.set(key, slot);
    return slot;
  }

  async #refresh(slot: Slot, scopeId: Id, kind: OwnerKind): Promise<void> {
    const { profiles } = this.store;
    if (slot.version < 0) {
      // The version is read first: what changes while the prints are read is read once more at the next refresh.
      const version = await profiles.printsVersion(scopeId);
      // A load that broke off may have left some that were erased since.
      for (const id of [...slot.members.keys()]) slot.remove(id);
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
      else slot.remove(id);
    }
    slot.version = changed.version;
  }

  #put(slot: Slot, print: Print): void {
    if (print.template.revision === this.engine.model.revision) slot.put(print);
    else slot.remove(print.profileId);
  }
}
