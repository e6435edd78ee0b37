/** PostgreSQL compiled to WebAssembly, in this process and a folder. There is one session, so all queries run one after the other. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Mutex, PGlite } from "@electric-sql/pglite";
import { prepareDatabaseFolder, whyItDoesNotStart } from "../embedded-folder.js";
import type { Database, Queries, Row } from "./database.js";
import { HOUSEKEEPING, Housekeeping, type HousekeepingLimits } from "./housekeeping.js";
import { BUFFERS, makeDatabase } from "./new-database.js";
import { PreparedSession } from "./prepared-session.js";

const DAY_MS = 86_400_000;

/** `folder` must be locked by the caller. */
export async function openEmbeddedDatabase(
  folder: string,
  limits: HousekeepingLimits = HOUSEKEEPING,
): Promise<Database> {
  // PostgreSQL's own lock: an empty one, left by a process killed while creating it, would prevent every later start.
  await rm(join(folder, "postmaster.pid"), { force: true });
  await prepareDatabaseFolder(folder);
  const open = async () => {
    await makeDatabase(folder);
    return PGlite.create(`file://${folder}`, { startParams: [...PGlite.defaultStartParams, ...BUFFERS] });
  };
  const pglite = await open().catch(async (error: Error) => {
    // File errors of the system are clear by themselves; the database engine reports only that it stopped.
    throw "syscall" in error ? error : await whyItDoesNotStart(folder, error);
  });
  // A new folder has the system's default permissions.
  await prepareDatabaseFolder(folder);
  // Old log files are removed, not recycled: they contain erased data.
  // A statement keeps its plan. Without `enable_seqscan = off`, one planned for a small table would read every row of it however large it gets.
  await pglite.exec("SET wal_recycle = off; SET maintenance_work_mem = '8MB'; SET enable_seqscan = off");
  const session = new PreparedSession(pglite);
  const mutex = new Mutex();
  let latest = 0;
  /**
   * PostgreSQL's timers are due at a time of the clock. After the clock was set back far enough, one would be due later than Node's timers
   * can wait, and be set again every millisecond. An error ends them all.
   */
  async function endTimers(): Promise<void> {
    await pglite.exec("SELECT 1 / 0").catch(() => {});
  }
  const turn = {
    runExclusive: <T>(work: () => Promise<T>): Promise<T> =>
      mutex.runExclusive(() => {
        const now = Date.now();
        const wasSetBack = now < latest - DAY_MS;
        latest = now;
        return wasSetBack ? endTimers().then(work) : work();
      }),
  };
  const housekeeping = new Housekeeping(limits, {
    async logBytes() {
      const { rows } = await turn.runExclusive(() =>
        pglite.query<{ bytes: string }>(
          "SELECT (pg_current_wal_insert_lsn() - redo_lsn)::text AS bytes FROM pg_control_checkpoint()",
        ),
      );
      return Number(rows[0]!.bytes);
    },
    async clean() {
      for (const statement of ["VACUUM", "CHECKPOINT"]) await turn.runExclusive(() => pglite.exec(statement));
    },
  });
  let closing: Promise<void> | null = null;

  /** For callers that already have their turn. */
  const queries: Queries = {
    query(text, values) {
      housekeeping.noteStatement(text, values);
      return session.query(text, values);
    },
    async foreign(text, values) {
      housekeeping.notePoll(text, values);
      if (values?.length) return (await pglite.query<Row>(text, [...values])).rows;
      return ((await pglite.exec(text)).at(-1)?.rows as Row[] | undefined) ?? [];
    },
  };

  return {
    exclusive: true,
    query: (text, values) => turn.runExclusive(() => queries.query(text, values)),
    foreign: (text, values) =>
      turn.runExclusive(async () => {
        try {
          return await queries.foreign(text, values);
        } catch (error) {
          // A script may contain its own BEGIN: a transaction left open would swallow later statements of others.
          await pglite.exec("ROLLBACK").catch(() => {});
          throw error;
        }
      }),
    transaction: (work) =>
      turn.runExclusive(async () => {
        await session.query("BEGIN");
        try {
          const result = await work(queries);
          await session.query("COMMIT");
          return result;
        } catch (error) {
          await session.query("ROLLBACK");
          throw error;
        }
      }),
    close() {
      housekeeping.stop();
      closing ??= turn.runExclusive(() => pglite.close());
      return closing;
    },
  };
}
