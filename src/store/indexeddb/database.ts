/** The tables in a database of a browser. */
import { type IDBPDatabase, openDB } from "idb";
import {
  SHAPES,
  type StoreDatabase,
  type StoreSchema,
  TABLE_NAMES,
  type TableName,
  type Tables,
} from "../records/tables.js";

const VERSION = 1;

export async function openDatabase(name: string): Promise<StoreDatabase> {
  const db: IDBPDatabase<StoreSchema> = await openDB<StoreSchema>(name, VERSION, {
    upgrade: create,
    // A newer version of the page waits until this one closes the database.
    blocking: () => db.close(),
  });
  return {
    // Bound: the methods are those of a proxy.
    get: db.get.bind(db),
    getFromIndex: db.getFromIndex.bind(db),
    getAll: db.getAll.bind(db),
    getAllFromIndex: db.getAllFromIndex.bind(db),
    getAllKeys: db.getAllKeys.bind(db),
    count: db.count.bind(db),
    add: db.add.bind(db),
    put: db.put.bind(db),
    delete: db.delete.bind(db),
    close: () => db.close(),
    async transact<Name extends TableName, T>(names: readonly Name[], work: (tables: Tables<Name>) => Promise<T>) {
      const tx = db.transaction([...names], "readwrite");
      const tables = Object.fromEntries(names.map((each) => [each, tx.objectStore(each)])) as never;
      tx.done.catch(() => {});
      try {
        const result = await work(tables);
        await tx.done;
        return result;
      } catch (error) {
        try {
          tx.abort();
        } catch {
          // The browser itself has ended it.
        }
        throw error;
      }
    },
    async last(table, range, limit) {
      const rows: StoreSchema[typeof table]["value"][] = [];
      let cursor = limit > 0 ? await db.transaction(table).store.openCursor(range, "prev") : null;
      while (cursor && rows.length < limit) {
        rows.push(cursor.value);
        cursor = await cursor.continue();
      }
      return rows;
    },
  };
}

function create(db: IDBPDatabase<StoreSchema>): void {
  for (const name of TABLE_NAMES) {
    const { keyPath = null, autoIncrement = false, indexes = {} } = SHAPES[name];
    const table = db.createObjectStore(name, { keyPath, autoIncrement });
    for (const [index, { keyPath: indexed, unique = false }] of Object.entries(indexes))
      table.createIndex(index as never, indexed, { unique });
  }
}
