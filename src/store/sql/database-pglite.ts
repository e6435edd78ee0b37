/** PostgreSQL compiled to WebAssembly, in this process: a folder, or memory. One session, so everything takes its turn. */
import { PGlite, type Transaction, types } from "@electric-sql/pglite";
import type { Database, Queries, Row } from "./database.js";

/** Bytes travel as hexadecimal text; PGlite's own conversion takes 15 ms for a recording of 100 kB. */
const parsers = { [types.BYTEA]: (text: string) => new Uint8Array(Buffer.from(text.slice(2), "hex")) };
const serializers = { [types.BYTEA]: (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}` };

/** `folder` must be locked by the caller; `null` keeps everything in memory. */
export async function openEmbeddedDatabase(folder: string | null): Promise<Database> {
  const pglite = await PGlite.create(folder === null ? "memory://" : `file://${folder}`, { parsers, serializers });
  let closing: Promise<void> | null = null;
  return {
    exclusive: true,
    ...queriesOf(pglite),
    async script(text) {
      try {
        return await scriptRows(pglite, text);
      } catch (error) {
        // A script may hold its own BEGIN: there is one session, so a transaction left open would swallow what others do next.
        await pglite.exec("ROLLBACK").catch(() => {});
        throw error;
      }
    },
    transaction: (work) => pglite.transaction((transaction) => work(queriesOf(transaction))),
    close() {
      closing ??= pglite.close();
      return closing;
    },
  };
}

function queriesOf(session: PGlite | Transaction): Queries {
  return {
    async query<T extends Row>(text: string, values: readonly unknown[] = []) {
      return (await session.query<T>(text, [...values])).rows;
    },
    script: (text) => scriptRows(session, text),
  };
}

async function scriptRows(session: PGlite | Transaction, text: string): Promise<Row[]> {
  return ((await session.exec(text)).at(-1)?.rows as Row[] | undefined) ?? [];
}
