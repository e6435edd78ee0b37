/** Tables in memory, with the order, the indexes and the transactions of IndexedDB. Rows are not copied: nobody may change one. */
import { SHAPES, type StoreDatabase, TABLE_NAMES, type TableShape } from "./records/tables.js";

type Key = string | number | readonly Key[];

interface Range {
  readonly lower: Key;
  readonly upper: Key;
  readonly lowerOpen: boolean;
  readonly upperOpen: boolean;
}

type Query = Key | Range | null | undefined;

/** Most are records; settings are texts. */
type Row = object | string;

/** A row, with its entries: first that of the table, then those of its indexes. */
interface Held {
  readonly primaryKey: Key;
  /** Undefined when it is removed. */
  row: Row | undefined;
  readonly entries: (Entry | undefined)[];
}

interface Entry {
  readonly key: Key;
  readonly held: Held;
  isRemoved: boolean;
}

/** Numbers before texts before lists. */
const rankOf = (key: Key): number => (typeof key === "number" ? 0 : typeof key === "string" ? 1 : 2);

function compare(one: Key, other: Key): number {
  if (typeof one !== "object" || typeof other !== "object")
    return rankOf(one) - rankOf(other) || Number(one > other) - Number(one < other);
  const both = Math.min(one.length, other.length);
  for (let i = 0; i < both; i++) if (one[i] !== other[i]) return compare(one[i]!, other[i]!);
  return one.length - other.length;
}

const order = (one: Entry, other: Entry): number =>
  compare(one.key, other.key) || compare(one.held.primaryKey, other.held.primaryKey);

/** Most keys are a scope and an id, which are looked up as they are: making one text of them takes longer than finding them. */
const scopeOf = (key: Key): Key => (typeof key === "object" ? key[0]! : NO_SCOPE);
/** No part of a key is this. */
const NO_SCOPE = Number.NaN;
function restOf(key: Key): Key {
  if (typeof key !== "object") return key;
  // With its length, ["a\0b", "c"] and ["a", "b\0c"] differ.
  return key.length === 2 ? key[1]! : `${String(key[1]).length} ${key.slice(1).join("\0")}`;
}

const isKey = (query: Query): query is Key =>
  typeof query === "string" || typeof query === "number" || Array.isArray(query);

/** The position of the first entry of which this is true; it is true of all after it. */
function first(entries: readonly Entry[], isReached: (entry: Entry) => boolean): number {
  let [from, to] = [0, entries.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (isReached(entries[middle]!)) to = middle;
    else from = middle + 1;
  }
  return from;
}

function insert(entries: Entry[], entry: Entry): void {
  const last = entries.at(-1);
  // Ids grow, so that most belong at the end.
  const isLast = !last || order(last, entry) < 0;
  entries.splice(isLast ? entries.length : first(entries, (one) => order(one, entry) >= 0), 0, entry);
}

/** What can be read of a table and of an index: rows in the order of their keys, those with equal keys in the order of their primary keys. */
class Entries {
  /** Those with the same key, by its parts. */
  readonly #withKey = new Map<Key, Map<Key, Entry[]>>();
  /** Once a range was read: all. Removed ones stay until the next range is read: closing a gap moves everything after it. */
  #sorted: Entry[] | null = null;
  #removed = 0;

  constructor(
    /** Among the entries of a row. */
    private readonly position: number,
    /** Undefined if the index does not have the row. */
    readonly keyOf: (row: Row) => Key | undefined,
  ) {}

  protected found(query: Query, limit = Number.POSITIVE_INFINITY): readonly Entry[] {
    if (isKey(query)) return this.#withKey.get(scopeOf(query))?.get(restOf(query))?.slice(0, limit) ?? [];
    this.#sorted ??= [...this.#withKey.values()].flatMap((scope) => [...scope.values()].flat()).sort(order);
    if (this.#removed > 0) this.#closeGaps();
    const from = query ? first(this.#sorted, ({ key }) => compare(key, query.lower) >= (query.lowerOpen ? 1 : 0)) : 0;
    const to = query
      ? first(this.#sorted, ({ key }) => compare(key, query.upper) >= (query.upperOpen ? 0 : 1))
      : this.#sorted.length;
    return this.#sorted.slice(from, Math.min(to, from + limit));
  }

  /** Call when the row has been written or removed. */
  update(held: Held, key = held.row === undefined ? undefined : this.keyOf(held.row)): void {
    const before = held.entries[this.position];
    if (before && key !== undefined && compare(before.key, key) === 0) return;
    if (before) this.#remove(before);
    const after = key === undefined ? undefined : { key, held, isRemoved: false };
    if (after) this.#insert(after);
    held.entries[this.position] = after;
  }

  #insert(entry: Entry): void {
    const [scope, rest] = [scopeOf(entry.key), restOf(entry.key)];
    const inScope = this.#withKey.get(scope) ?? new Map<Key, Entry[]>();
    this.#withKey.set(scope, inScope);
    const equal = inScope.get(rest);
    if (equal) insert(equal, entry);
    else inScope.set(rest, [entry]);
    if (this.#sorted) insert(this.#sorted, entry);
  }

  #remove(entry: Entry): void {
    const [scope, rest] = [scopeOf(entry.key), restOf(entry.key)];
    const inScope = this.#withKey.get(scope)!;
    const equal = inScope.get(rest)!;
    equal.splice(equal.indexOf(entry), 1);
    if (equal.length === 0) inScope.delete(rest);
    if (inScope.size === 0) this.#withKey.delete(scope);
    entry.isRemoved = true;
    if (this.#sorted && ++this.#removed * 2 > this.#sorted.length) this.#closeGaps();
  }

  #closeGaps(): void {
    this.#sorted = this.#sorted!.filter(({ isRemoved }) => !isRemoved);
    this.#removed = 0;
  }

  get(query: Query) {
    return this.found(query, 1)[0]?.held.row;
  }
  getKey(query: Query) {
    return this.found(query, 1)[0]?.held.primaryKey;
  }
  getAll(query?: Query, limit?: number) {
    return this.found(query, limit).map(({ held }) => held.row);
  }
  getAllKeys(query?: Query) {
    return this.found(query).map(({ held }) => held.primaryKey);
  }
  count(query?: Query) {
    return this.found(query).length;
  }
}

/** Reads a key of a row: undefined if the row lacks a part of it. */
function keyReader(path: string | readonly string[]): (row: Row) => Key | undefined {
  if (typeof path === "string") {
    const names = path.split(".");
    return (row) => names.reduce((at: unknown, name) => (at as Record<string, unknown>)[name], row) as Key | undefined;
  }
  const readers = path.map(keyReader);
  return (row) => {
    const parts = readers.map((read) => read(row));
    return parts.includes(undefined) ? undefined : (parts as Key[]);
  };
}

class MemoryTable extends Entries {
  readonly #indexes = new Map<string, Entries>();
  readonly #unique: Entries[] = [];
  #next = 1;

  constructor(
    { keyPath, autoIncrement, indexes = {} }: TableShape,
    /** Undoes the writes of the transaction, the last one first. */
    private readonly undo: (() => void)[],
  ) {
    super(0, keyPath ? keyReader(keyPath) : () => (autoIncrement ? this.#next++ : undefined));
    for (const [name, { keyPath, unique }] of Object.entries(indexes)) {
      const index = new Entries(this.#indexes.size + 1, keyReader(keyPath));
      this.#indexes.set(name, index);
      if (unique) this.#unique.push(index);
    }
  }

  index(name: string): Entries {
    return this.#indexes.get(name)!;
  }

  add(row: Row, key = this.keyOf(row)!): void {
    const isTaken = (index: Entries) => index.keyOf(row) !== undefined && index.count(index.keyOf(row)) > 0;
    if (this.count(key) > 0 || this.#unique.some(isTaken))
      throw new DOMException("the table has such a row", "ConstraintError");
    this.put(row, key);
  }

  put(row: Row, key = this.keyOf(row)!): void {
    this.#write(this.found(key)[0]?.held ?? { primaryKey: key, row: undefined, entries: [] }, row);
  }

  delete(query: Query): void {
    for (const { held } of this.found(query)) this.#write(held, undefined);
  }

  #write(held: Held, row: Row | undefined): void {
    const before = held.row;
    this.#set(held, row);
    this.undo.push(() => this.#set(held, before));
  }

  #set(held: Held, row: Row | undefined): void {
    held.row = row;
    this.update(held, row === undefined ? undefined : held.primaryKey);
    for (const index of this.#indexes.values()) index.update(held);
  }
}

export function createMemoryTables(): StoreDatabase {
  const undo: (() => void)[] = [];
  const tables = Object.fromEntries(TABLE_NAMES.map((name) => [name, new MemoryTable(SHAPES[name], undo)]));
  let last: Promise<unknown> = Promise.resolve();

  /** One transaction after the other. */
  function transact<T>(work: () => T | Promise<T>): Promise<T> {
    const done = last.then(work).catch((error) => {
      for (const step of undo.splice(0).reverse()) step();
      throw error;
    });
    last = done.then(
      () => undo.splice(0),
      () => {},
    );
    return done;
  }

  type Method = (...values: unknown[]) => unknown;
  const of =
    (method: string) =>
    (table: string, ...values: unknown[]) =>
      transact(() => (tables[table] as unknown as Record<string, Method>)[method]!(...values));
  const ofIndex = (method: "get" | "getAll") => (table: string, index: string, query: Query) =>
    transact(() => tables[table]!.index(index)[method](query));
  const singles = ["get", "getAll", "getAllKeys", "count", "add", "put", "delete"];
  return {
    ...Object.fromEntries(singles.map((method) => [method, of(method)])),
    getFromIndex: ofIndex("get"),
    getAllFromIndex: ofIndex("getAll"),
    transact: (_names: unknown, work: (all: typeof tables) => Promise<unknown>) => transact(() => work(tables)),
    last: (table: string, range: Range, limit: number) =>
      transact(() => tables[table]!.getAll(range).reverse().slice(0, Math.max(0, limit))),
    close() {},
  } as unknown as StoreDatabase;
}
