/** The tables in memory answer as those of a browser's database do, whatever was written before. */
import "fake-indexeddb/auto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openDatabase } from "../../src/store/indexeddb/database.js";
import { createMemoryTables } from "../../src/store/memory-tables.js";
import { keysBetween, type StoreDatabase, within } from "../../src/store/records/tables.js";
import { newId } from "./fixtures.js";

// biome-ignore lint/suspicious/noExplicitAny: rows of any table, of which only the keys matter here
type Any = any;

/** Few, so that they meet. */
const part = fc.constantFrom("a", "b", "10", "9", "");
const number = fc.constantFrom(1, 2, 10);
const rows: Readonly<Record<string, fc.Arbitrary<object>>> = {
  sessions: fc.record({ scopeId: part, id: part, engagementId: part }),
  checks: fc.record({ scopeId: part, id: part, sessionId: part }),
  // Two names that are one if their parts are joined.
  owners: fc.record({
    scopeId: fc.constantFrom("a", ""),
    id: part,
    kind: fc.constantFrom("a", "a\0b"),
    externalId: fc.constantFrom("a", "b\0a"),
  }),
  segments: fc.record({ scopeId: part, profileId: part, position: number, audioModelId: part }),
  printChanges: fc.record({ scopeId: part, profileId: part, version: number }),
  jobs: fc.record({ scopeId: part, id: part, queued: fc.constantFrom(1, 1) }, { requiredKeys: ["scopeId", "id"] }),
};
/** The unique index of each, which only `add` keeps. */
const withoutUnique = ["sessions", "printChanges", "jobs"];
const indexes: Readonly<Record<string, readonly string[]>> = {
  sessions: ["engagement"],
  checks: ["id", "session"],
  owners: ["name"],
  segments: ["enrolled", "audioModel"],
  printChanges: ["version"],
  jobs: ["queued"],
};
const key = fc.oneof(fc.tuple(part, part), fc.tuple(part, part, number), number);
const range = fc.oneof(
  part.map((scope) => within(scope)),
  fc.tuple(part, part, fc.boolean()).map(([scope, after, isOpen]) => keysBetween([scope, after], [scope, []], isOpen)),
  fc.tuple(part, number).map(([scope, since]) => keysBetween([scope, since], [scope, []], true)),
);

const step = fc.constantFrom(...Object.keys(rows)).chain((table) =>
  fc.oneof(
    rows[table]!.map((row) => ({ table, method: "add", values: [row] })),
    ...(withoutUnique.includes(table) ? [rows[table]!.map((row) => ({ table, method: "put", values: [row] }))] : []),
    fc.oneof(key, range).map((query) => ({ table, method: "delete", values: [query] })),
    fc.oneof(key, range, fc.constant(null)).map((query) => ({ table, method: "getAll", values: [query, 3] })),
    fc.oneof(key, range).map((query) => ({ table, method: "get", values: [query] })),
    fc
      .tuple(fc.constantFrom(...indexes[table]!), fc.oneof(key, range))
      .map(([index, query]) => ({ table, method: "index", values: [index, query] })),
  ),
);

/** What each step answered, and then everything that is left. A transaction that fails leaves nothing. */
async function answers(db: StoreDatabase, transactions: readonly (readonly Any[])[]) {
  const given: unknown[] = [];
  for (const steps of transactions) {
    const work = async (tables: Any) => {
      for (const { table, method, values } of steps) {
        const [index, query] = values;
        const source = method === "index" ? tables[table].index(index) : tables[table];
        const answer = await (method === "index" ? source.getAll(query) : source[method](...values));
        if (!["add", "put", "delete"].includes(method)) given.push(answer);
      }
    };
    await db.transact(Object.keys(rows) as Any[], work).catch((error: Error) => given.push(error.name));
  }
  for (const table of Object.keys(rows) as Any[]) {
    given.push(await db.getAll(table), await db.count(table), await db.last(table, within("a"), 2));
    for (const index of indexes[table]!) given.push(await db.getAllFromIndex(table, index as never));
  }
  return given;
}

test("rows, order, indexes and failed transactions are those of IndexedDB", async () => {
  const transactions = fc.array(fc.array(step, { maxLength: 12 }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(transactions, async (given) => {
      const browser = await openDatabase(newId("tables"));
      const expected = await answers(browser, given);
      browser.close();
      expect(await answers(createMemoryTables(), given)).toEqual(expected);
    }),
    { numRuns: 300 },
  );
}, 120_000);
