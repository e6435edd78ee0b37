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

/** A row, in its table or in an index of it. */
interface Entry {
  readonly key: Key;
  readonly primaryKey: Key;
  readonly row: Row;
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
  compare(one.key, other.key) || compare(one.primaryKey, other.primaryKey);

const isRange = (query: Query): query is Range => typeof query === "object" && query !== null && "lower" in query;

/** What can be read of a table and of an index: entries in the order of their keys, equal ones in the order of their rows. */
class Entries {
  readonly #sorted: Entry[] = [];

  /** The position of the first entry of which this is true; it is true of all after it. */
  #first(isReached: (entry: Entry) => boolean): number {
    let [from, to] = [0, this.#sorted.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (isReached(this.#sorted[middle]!)) to = middle;
      else from = middle + 1;
    }
    return from;
  }

  found(query: Query, count = this.#sorted.length): Entry[] {
    if (query === null || query === undefined) return this.#sorted.slice(0, count);
    const { lower, upper, lowerOpen, upperOpen } = isRange(query)
      ? query
      : { lower: query, upper: query, lowerOpen: false, upperOpen: false };
    const found: Entry[] = [];
    for (let at = this.#first(({ key }) => compare(key, lower) >= (lowerOpen ? 1 : 0)); found.length < count; at++) {
      const entry = this.#sorted[at];
      if (!entry || compare(entry.key, upper) >= (upperOpen ? 0 : 1)) break;
      found.push(entry);
    }
    return found;
  }

  /** Inserts, replaces or removes an entry. */
  change(before: Entry | undefined, after: Entry | undefined): void {
    const at = before ? this.#first((entry) => order(entry, before) >= 0) : -1;
    const stays = before && after && order(before, after) === 0;
    if (stays) this.#sorted[at] = after;
    else if (before) this.#sorted.splice(at, 1);
    if (!after || stays) return;
    const last = this.#sorted.at(-1);
    // Ids grow, so that most belong at the end.
    if (!last || order(last, after) < 0) this.#sorted.push(after);
    else
      this.#sorted.splice(
        this.#first((entry) => order(entry, after) >= 0),
        0,
        after,
      );
  }

  get(query: Query) {
    return this.found(query, 1)[0]?.row;
  }
  getKey(query: Query) {
    return this.found(query, 1)[0]?.primaryKey;
  }
  getAll(query?: Query, count?: number) {
    return this.found(query, count).map(({ row }) => row);
  }
  getAllKeys(query?: Query) {
    return this.found(query).map(({ primaryKey }) => primaryKey);
  }
  count(query?: Query) {
    return this.found(query).length;
  }
}

/** `undefined` if the row has no such key: then the index does not have the row. */
function keyAt(row: Row, path: string | readonly string[]): Key | undefined {
  if (typeof path === "string")
    return path.split(".").reduce((at: unknown, name) => (at as Record<string, unknown>)[name], row) as Key | undefined;
  const parts = path.map((one) => keyAt(row, one));
  return parts.includes(undefined) ? undefined : (parts as Key[]);
}

class MemoryTable extends Entries {
  readonly #indexes: ReadonlyMap<string, Entries>;
  #next = 1;

  constructor(
    private readonly shape: TableShape,
    /** Undoes the writes of the transaction, the last one first. */
    private readonly undo: (() => void)[],
  ) {
    super();
    this.#indexes = new Map(Object.keys(shape.indexes ?? {}).map((name) => [name, new Entries()]));
  }

  index(name: string): Entries {
    return this.#indexes.get(name)!;
  }

  add(row: Row, key?: Key): void {
    const entry = this.#entryOf(row, key);
    const isTaken = (name: string) =>
      this.shape.indexes![name]!.unique && this.index(name).get(this.#indexed(name, entry)!.key) !== undefined;
    if (this.get(entry.key) !== undefined || [...this.#indexes.keys()].some(isTaken))
      throw new DOMException("the table has such a row", "ConstraintError");
    this.#write(undefined, entry);
  }

  put(row: Row, key?: Key): void {
    const entry = this.#entryOf(row, key);
    this.#write(this.found(entry.key)[0], entry);
  }

  delete(query: Query): void {
    for (const entry of this.found(query)) this.#write(entry, undefined);
  }

  #write(before: Entry | undefined, after: Entry | undefined): void {
    const change = (removed: Entry | undefined, added: Entry | undefined) => {
      this.change(removed, added);
      for (const [name, entries] of this.#indexes)
        entries.change(removed && this.#indexed(name, removed), added && this.#indexed(name, added));
    };
    change(before, after);
    this.undo.push(() => change(after, before));
  }

  #entryOf(row: Row, given?: Key): Entry {
    const { keyPath, autoIncrement } = this.shape;
    const key = keyPath ? keyAt(row, keyPath)! : autoIncrement ? this.#next++ : given!;
    return { key, primaryKey: key, row };
  }

  #indexed(name: string, { primaryKey, row }: Entry): Entry | undefined {
    const key = keyAt(row, this.shape.indexes![name]!.keyPath);
    return key === undefined ? undefined : { key, primaryKey, row };
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
