/**
 * Caches large groups, because reading a watchlist of a hundred thousand members takes longer than searching it. Every use first compares
 * the store's version of the group. Erased members are in no gallery, so they may stay in this cache.
 */
import type { Group, GroupKind, Id, Store } from "../store/port.js";

export class GroupCache {
  readonly #known = new Map<string, { readonly version: number; readonly group: Group }>();

  constructor(
    private readonly store: Store,
    private readonly capacity = 64,
  ) {}

  async get(scopeId: Id, kind: GroupKind, id: Id): Promise<Group | null> {
    const { groups } = this.store;
    const key = JSON.stringify([scopeId, kind, id]);
    // Read the version before the members, so that the members are never older than the version. If they are newer, they are read again.
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
