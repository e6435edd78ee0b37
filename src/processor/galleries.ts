/**
 * The prints of a scope and kind, loaded for search and kept up to date: every search first compares the store's version
 * and reads only the changes. Each model has its own gallery; prints of a model that is not installed here are in none.
 */
import type { Gallery } from "../engine/port.js";
import type { DamagedProfile, Id, OwnerKind, Print, Store } from "../store/port.js";
import type { Models } from "./models.js";

export interface GalleryMember {
  readonly ownerId: Id;
  readonly tag: string;
  /** Revision of the model that made the print. */
  readonly revision: string;
}

/** A print that is not compared: it cannot be opened or, if `damage` is `null`, its model is not installed here. */
export interface LeftOut {
  readonly id: Id;
  readonly damage: DamagedProfile["damage"] | null;
}

interface LeftOutMember extends LeftOut, Omit<GalleryMember, "revision"> {
  /** `null` if the print cannot be opened. */
  readonly revision: string | null;
}

/** The prints of a group. */
export interface GroupPrints {
  readonly scored: ReadonlySet<Id>;
  readonly leftOut: readonly LeftOut[];
}

export interface LoadedGallery {
  /** Galleries by model revision; empty ones are left out. */
  readonly galleries: ReadonlyMap<string, Gallery>;
  /** Every print that can be scored. */
  readonly members: ReadonlyMap<Id, GalleryMember>;
  /** Every other print. */
  readonly leftOut: ReadonlyMap<Id, LeftOutMember>;
  /** Number of prints by model revision, including prints that cannot be scored. */
  counts(): Map<string, { prints: number; calibrationModelId: string }>;
  /**
   * Caches the result of `find` under `key` until the gallery or the lists in `of` change, so that a large group is not
   * filtered again for every call.
   */
  remembered(key: string, of: readonly (readonly Id[])[], find: () => GroupPrints): GroupPrints;
}

interface Memory {
  readonly of: readonly (readonly Id[])[];
  readonly version: number;
  readonly found: GroupPrints;
}

const same = (one: readonly Id[], other: readonly Id[]): boolean =>
  one === other || (one.length === other.length && one.every((id, i) => id === other[i]));

/** Number of groups cached for each gallery. */
const mostRemembered = 16;
/** How many damaged prints each search tries to open again. */
const mostTried = 16;

class Slot implements LoadedGallery {
  readonly galleries = new Map<string, Gallery>();
  readonly members = new Map<Id, GalleryMember>();
  readonly leftOut = new Map<Id, LeftOutMember>();
  /** Prints that cannot be opened. */
  readonly damaged = new Set<Id>();
  /** Shared strings for each model's revision and name, so that a million prints do not each hold a copy. */
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
    for (const { revision } of this.leftOut.values()) if (revision !== null) count(revision);
    return counts;
  }

  remembered(key: string, of: readonly (readonly Id[])[], find: () => GroupPrints): GroupPrints {
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

  /** Adds the print to the gallery of its model, which is `null` if the model is not installed here. */
  put({ profileId, ownerId, tag, template }: Print, gallery: Gallery | null): void {
    const { revision } = this.#modelOf(template);
    if (!gallery) {
      this.#leaveOut({ id: profileId, ownerId, tag, revision, damage: null });
      return;
    }
    if (this.members.get(profileId)?.revision !== revision) this.remove(profileId);
    // A print that was restored is new here, though the version is the same.
    if (!this.members.has(profileId)) this.#memories.clear();
    gallery.set(profileId, template.embedding);
    this.galleries.set(revision, gallery);
    this.members.set(profileId, { ownerId, tag, revision });
  }

  putDamaged({ id, owner, tag, damage }: DamagedProfile): void {
    this.#leaveOut({ id, ownerId: owner.id, tag, revision: null, damage });
    // Last in the order, so that others are tried next.
    this.damaged.delete(id);
    this.damaged.add(id);
  }

  remove(id: Id): void {
    this.damaged.delete(id);
    const member = this.members.get(id);
    if (!member && !this.leftOut.has(id)) return;
    this.leftOut.delete(id);
    this.members.delete(id);
    // Cached results may contain the removed print.
    this.#memories.clear();
    const gallery = member && this.galleries.get(member.revision);
    gallery?.delete(id);
    if (gallery?.size === 0) {
      gallery.close();
      this.galleries.delete(member!.revision);
    }
  }

  clear(): void {
    for (const gallery of this.galleries.values()) gallery.close();
    this.galleries.clear();
    this.members.clear();
    this.leftOut.clear();
    this.damaged.clear();
    this.#memories.clear();
  }

  #leaveOut(print: LeftOutMember): void {
    const known = this.leftOut.get(print.id);
    const isSame = known && known.revision === print.revision && !known.damage === !print.damage;
    if (!isSame) {
      this.remove(print.id);
      this.#memories.clear();
    }
    this.leftOut.set(print.id, print);
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
    /** Number of galleries kept in memory; the least recently used is evicted first. */
    private readonly capacity = 64,
  ) {}

  /** Runs `work` on the gallery as the store has it now. `work` is synchronous, so the gallery cannot change during it. */
  async search<T>(scopeId: Id, kind: OwnerKind, work: (loaded: LoadedGallery) => T): Promise<T> {
    const key = `${kind}:${scopeId}`;
    const slot = this.#slots.get(key) ?? this.#open(key);
    this.#slots.delete(key);
    this.#slots.set(key, slot);
    const found = slot.ready.then(() => this.#refresh(slot, scopeId, kind)).then(() => work(slot));
    // After a failure the next caller tries again; it does not get the same error.
    slot.ready = found.then(
      () => {},
      () => {},
    );
    return found;
  }

  /** Removes an erased print from memory at once, before the erasure is confirmed, and not only at the next search. */
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
      // The version is read first, so that a print changed during loading is read again at the next refresh.
      const version = await profiles.printsVersion(scopeId);
      // An interrupted load may have left prints that have been erased since.
      slot.clear();
      const damaged = (profile: DamagedProfile) => slot.putDamaged(profile);
      for await (const print of profiles.prints(scopeId, kind, damaged)) await this.#put(slot, print);
      slot.version = version;
      return;
    }
    const isSame = (await profiles.printsVersion(scopeId)) === slot.version;
    if (isSame && slot.damaged.size === 0) return;
    const changed = isSame
      ? { version: slot.version, ids: [] }
      : await profiles.printsChangedSince(scopeId, slot.version);
    await this.#read(slot, scopeId, kind, changed.ids);
    // A print that is restored from a backup does not change the version. Usually many are restored at once: if one can be opened, all are tried.
    const damaged = [...slot.damaged];
    await this.#read(slot, scopeId, kind, damaged.slice(0, mostTried));
    const isRestored = damaged.slice(0, mostTried).some((id) => !slot.damaged.has(id));
    if (isRestored) await this.#read(slot, scopeId, kind, damaged.slice(mostTried));
    slot.version = changed.version;
  }

  /** Takes over these prints as the store has them now. */
  async #read(slot: Slot, scopeId: Id, kind: OwnerKind, ids: readonly Id[]): Promise<void> {
    if (ids.length === 0) return;
    const damaged = new Map<Id, DamagedProfile>();
    const found = await this.store.profiles.printsOf(scopeId, ids, (profile) => damaged.set(profile.id, profile));
    const prints = new Map(found.map((print) => [print.profileId, print]));
    for (const id of ids) {
      const print = prints.get(id);
      const unopened = damaged.get(id);
      if (print?.kind === kind) await this.#put(slot, print);
      else if (unopened?.owner.kind === kind) slot.putDamaged(unopened);
      else slot.remove(id);
    }
  }

  async #put(slot: Slot, print: Print): Promise<void> {
    const { revision } = print.template;
    const gallery = this.models.has(revision)
      ? (slot.galleries.get(revision) ?? (await this.models.open(revision)).gallery())
      : null;
    slot.put(print, gallery);
  }
}
