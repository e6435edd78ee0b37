/**
 * The prints of a scope and kind, loaded for search and kept current: before every answer the store's version is
 * compared, and only what changed is read again. Each model's prints are in a gallery of their own; those of a model that
 * is not here are in none.
 */
import type { Gallery } from "../engine/port.js";
import type { Id, OwnerKind, Print, Store } from "../store/port.js";
import type { Models } from "./models.js";

export interface GalleryMember {
  readonly ownerId: Id;
  readonly tag: string;
  /** Of the model that made the print. */
  readonly revision: string;
}

export interface LoadedGallery {
  /** By the revision of the model; none is empty. */
  readonly galleries: ReadonlyMap<string, Gallery>;
  /** Every print that can be scored. */
  readonly members: ReadonlyMap<Id, GalleryMember>;
  /** All prints by the revision of their model, those that cannot be scored too. */
  counts(): Map<string, { prints: number; calibrationModelId: string }>;
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
  readonly galleries = new Map<string, Gallery>();
  readonly members = new Map<Id, GalleryMember>();
  /** Prints of models that are not here, and the revision of theirs. */
  readonly #unscored = new Map<Id, string>();
  /** One string for each revision, and the model's name: a million prints must not each keep their own. */
  readonly #models = new Map<string, { readonly revision: string; readonly calibrationModelId: string }>();
  readonly #memories = new Map<string, Memory>();
  version = -1;
  /** Searches of one gallery run one after the other. */
  ready: Promise<void> = Promise.resolve();

  counts(): Map<string, { prints: number; calibrationModelId: string }> {
    const counts = new Map<string, { prints: number; calibrationModelId: string }>();
    const count = (revision: string) => {
      const { calibrationModelId } = this.#models.get(revision)!;
      counts.set(revision, { prints: (counts.get(revision)?.prints ?? 0) + 1, calibrationModelId });
    };
    for (const { revision } of this.members.values()) count(revision);
    for (const revision of this.#unscored.values()) count(revision);
    return counts;
  }

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

  /** Into the gallery of its model; `null` where that is not here. */
  put({ profileId, ownerId, tag, template }: Print, gallery: Gallery | null): void {
    const { revision } = this.#modelOf(template);
    if (this.members.get(profileId)?.revision !== revision) this.remove(profileId);
    if (!gallery) {
      this.#unscored.set(profileId, revision);
      return;
    }
    gallery.set(profileId, template.embedding);
    this.galleries.set(revision, gallery);
    this.members.set(profileId, { ownerId, tag, revision });
  }

  remove(id: Id): void {
    this.#unscored.delete(id);
    const revision = this.members.get(id)?.revision;
    const gallery = revision === undefined ? undefined : this.galleries.get(revision);
    gallery?.delete(id);
    if (gallery?.size === 0) {
      gallery.close();
      this.galleries.delete(revision!);
    }
    this.members.delete(id);
    // What was found before may name it.
    this.#memories.clear();
  }

  clear(): void {
    for (const gallery of this.galleries.values()) gallery.close();
    this.galleries.clear();
    this.members.clear();
    this.#unscored.clear();
    this.#memories.clear();
  }

  #modelOf({ revision, calibrationModelId = "" }: Print["template"]) {
    const known = this.#models.get(revision);
    if (known) return known;
    const model = { revision, calibrationModelId };
    this.#models.set(revision, model);
    return model;
  }
}

export class Galleries {
  readonly #slots = new Map<string, Slot>();

  constructor(
    private readonly models: Models,
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
    for (const slot of this.#slots.values()) slot.clear();
    this.#slots.clear();
  }

  #open(key: string): Slot {
    const oldest = this.#slots.size >= this.capacity ? this.#slots.entries().next().value : undefined;
    if (oldest) {
      this.#slots.delete(oldest[0]);
      void oldest[1].ready.then(() => oldest[1].clear());
    }
    const slot = new Slot();
    this.#slots.set(key, slot);
    return slot;
  }

  async #refresh(slot: Slot, scopeId: Id, kind: OwnerKind): Promise<void> {
    const { profiles } = this.store;
    if (slot.version < 0) {
      // The version is read first: what changes while the prints are read is read once more at the next refresh.
      const version = await profiles.printsVersion(scopeId);
      // A load that broke off may have left some that were erased since.
      slot.clear();
      for await (const print of profiles.prints(scopeId, kind)) await this.#put(slot, print);
      slot.version = version;
      return;
    }
    if ((await profiles.printsVersion(scopeId)) === slot.version) return;
    const changed = await profiles.printsChangedSince(scopeId, slot.version);
    const prints = new Map((await profiles.printsOf(scopeId, changed.ids)).map((print) => [print.profileId, print]));
    for (const id of changed.ids) {
      const print = prints.get(id);
      if (print?.kind === kind) await this.#put(slot, print);
      else slot.remove(id);
    }
    slot.version = changed.version;
  }

  async #put(slot: Slot, print: Print): Promise<void> {
    const { revision } = print.template;
    const gallery = this.models.has(revision)
      ? (slot.galleries.get(revision) ?? (await this.models.open(revision)).gallery())
      : null;
    slot.put(print, gallery);
  }
}
