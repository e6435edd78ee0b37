/**
 * Large groups, as they were read last. Reading a watchlist of a hundred thousand members takes longer than searching it; before every
 * use the store's version of the group is compared. Members that were erased are in no gallery, so they may stay here.
 */
import type { Group, GroupKind, Id, Store } from "../store/port.js";

interface Known {
  readonly version: number;
  readonly group: Group;
}

export class GroupCache {
  readonly #known = new Map<string, Known>();

  constructor(
    private readonly store: Store,
    private readonly capacity = 64,
  ) {}

  async get(scopeId: Id, kind: GroupKind, id: Id): Promise<Group | null> {
    const { groups } = this.store;
    const key = JSON.stringify([scopeId, kind, id]);
    // Before the members: those read may be newer than the version noted, and are then read again, but never older.
    const version = await groups.version(scopeId, kind, id);
    const known = this.#known.get(key);
    this.#known.delete(key);
    if (version === null) return null;
    const group = known?.version === version ? known.group : await groups.get(scopeId, kind, id);
    if (!group) return null;
    this.#known.set(key, { version, group });
    if (this.#known.size > this.capacity) this.#known.delete(this.#known.keys().next().value!);
    return group;
  }

  clear(): void {
    this.#known.clear();
  }
}
