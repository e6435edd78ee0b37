/**
 * Jobs: callers see our row; pg-boss decides which replica runs the job, and gives it to another when a
 * worker dies. Started with the first job or the first worker, because it adds its own tables and timers.
 */
import type PgBoss from "pg-boss";
import { ENDED_STATES, FAILED_STATE, UNFINISHED_STATES } from "../job-states.js";
import type { Id, Job, Store } from "../port.js";
import { inStoreWords, type SqlContext } from "./context.js";
import type { Database, Queries } from "./database.js";
import { keyOf, rowKey } from "./text.js";

const SCHEMA = "vivavoce_jobs";
const QUEUE = "jobs";
/** Queue of pg-boss for jobs that failed for good, whether the handler threw or the process died. */
const FAILED_QUEUE = "failed-jobs";
const RETRIES = 2;
/** The time limit of a job in pg-boss. A replica that dies is detected much earlier, by its missing heartbeat. */
const LONGEST_JOB_HOURS = 23;
/** pg-boss drops a job that has waited for longer than this; its own default is two weeks. */
const LONGEST_WAIT_MINUTES = 10 * 365 * 24 * 60;
/** Heartbeats within the time after which a silent replica counts as dead. */
const SIGNS_OF_LIFE = 4;
const SILENT = { message: "the replica that ran this job stopped responding" };
const POLL_SECONDS = 1;
const STOP_TIMEOUT_MS = 30_000;
const ENDED = `state IN (${ENDED_STATES.join(", ")})`;
const UNFINISHED = `state IN (${UNFINISHED_STATES.join(", ")})`;

interface Ticket {
  readonly scopeId: Id;
  readonly id: Id;
}

interface JobRow extends Record<string, unknown> {
  readonly state: number;
  readonly progress: number;
  readonly result: string;
  readonly data: string;
}

/** After `deadAfterSeconds` without a heartbeat, the job of a replica is given to another. */
export function createJobs({ database }: SqlContext, deadAfterSeconds: number) {
  const statements = new Statements(database);
  const signEveryMs = (deadAfterSeconds * 1000) / SIGNS_OF_LIFE;
  let starting: Promise<PgBoss> | null = null;
  let worker: string | null = null;
  /** The job of the worker, which has one at a time, by its id in pg-boss. */
  let running: string | null = null;
  let watch: NodeJS.Timeout | undefined;

  function boss(): Promise<PgBoss> {
    starting ??= startBoss(database, statements).catch((error) => {
      starting = null;
      throw error;
    });
    return starting;
  }

  async function get(scopeId: Id, id: Id): Promise<Job | null> {
    const [row] = await database.query<JobRow>(
      "SELECT state, progress, result, data FROM vivavoce.jobs WHERE scope = $1 AND id = $2",
      rowKey(scopeId, id),
    );
    if (!row) return null;
    return { ...JSON.parse(row.data), state: row.state, progress: row.progress, result: JSON.parse(row.result) };
  }

  async function update(scopeId: Id, id: Id, { state, result, progress }: Partial<Job>): Promise<boolean> {
    const rows = await database.query(
      `UPDATE vivavoce.jobs SET state = coalesce($3, state), result = coalesce($4, result), progress = coalesce($5, progress)
       WHERE scope = $1 AND id = $2 RETURNING 1`,
      [...rowKey(scopeId, id), state ?? null, result === undefined ? null : JSON.stringify(result), progress ?? null],
    );
    return rows.length > 0;
  }

  const jobs: Store["jobs"] = {
    get,
    update,
    async create(job, maxUnfinished = Number.MAX_SAFE_INTEGER) {
      const queue = await boss();
      const { state, progress, result, ...plain } = job;
      const queueId = crypto.randomUUID();
      const insert = database.transaction(async (tx) => {
        // Without the lock, replicas that count at the same moment would each take the last place.
        await tx.query("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", [keyOf(job.scopeId), SCOPE_LOCKS]);
        const inserted = await tx.query(
          `INSERT INTO vivavoce.jobs (scope, id, queue_id, state, progress, result, data, created_at)
           SELECT $1, $2, $3, $4::integer, $5::double precision, $6, $7, $8::double precision
           WHERE (SELECT count(*) FROM vivavoce.jobs WHERE scope = $1 AND ${UNFINISHED}) < $9::bigint RETURNING 1`,
          [
            ...rowKey(job.scopeId, job.id),
            queueId,
            state,
            progress,
            JSON.stringify(result ?? null),
            JSON.stringify({ ...plain, request: plain.request ?? null }),
            job.createdAt,
            maxUnfinished,
          ],
        );
        if (inserted.length === 0) return false;
        const ticket: Ticket = { scopeId: job.scopeId, id: job.id };
        await queue.send(QUEUE, { ticket: JSON.stringify(ticket) }, { id: queueId, db: executorOf(tx) });
        return true;
      });
      const isCreated = await inStoreWords(job.id, insert);
      if (isCreated && worker) queue.notifyWorker(worker);
      return isCreated;
    },
    async work(handler) {
      const queue = await boss();
      if (database.exclusive) await returnAbandoned(database, queue);
      else watch = everyNowAndThen(signEveryMs, () => returnOfTheDead(database, queue, deadAfterSeconds));
      const options = { pollingIntervalSeconds: POLL_SECONDS, batchSize: 1 };
      worker = await queue.work<{ ticket: string }>(QUEUE, options, async ([message]) => {
        const { scopeId, id } = ticketOf(message!);
        const job = await get(scopeId, id);
        if (!job) return;
        const signs = database.exclusive ? undefined : everyNowAndThen(signEveryMs, () => showLife(database, job));
        running = message!.id;
        try {
          await handler(job);
        } finally {
          running = null;
          clearInterval(signs);
        }
      });
      await queue.work<{ ticket: string }>(FAILED_QUEUE, options, async ([message]) => {
        const { scopeId, id } = ticketOf(message!);
        await update(scopeId, id, { state: FAILED_STATE });
      });
    },
    async expire(createdBefore) {
      const rows = await database.query(`DELETE FROM vivavoce.jobs WHERE ${ENDED} AND created_at < $1 RETURNING 1`, [
        createdBefore,
      ]);
      return rows.length;
    },
    async trim(scopeId, maxBytes) {
      const rows = await database.query(
        `DELETE FROM vivavoce.jobs USING (
           SELECT id AS old_id, row_number() OVER newest_first AS place,
             sum(octet_length(result) + octet_length(data)) OVER newest_first AS bytes
           FROM vivavoce.jobs WHERE scope = $1 AND ${ENDED}
           WINDOW newest_first AS (ORDER BY created_at DESC, id DESC)
         ) AS ended WHERE scope = $1 AND id = old_id AND place > 1 AND bytes > $2::bigint RETURNING 1`,
        [keyOf(scopeId), maxBytes],
      );
      return rows.length;
    },
  };

  return {
    jobs,
    /** Lets the current job finish for up to half a minute; then it returns to the queue, and this attempt does not count. */
    async stop(): Promise<void> {
      clearInterval(watch);
      // Without an answer of the database the attempt counts.
      if (running) await notCounted(database, running).catch(() => {});
      const queue = await starting;
      if (queue) await queue.stop({ graceful: true, wait: true, timeout: STOP_TIMEOUT_MS });
      await statements.finish();
    },
  };
}

const ticketOf = ({ data }: PgBoss.Job<{ ticket: string }>): Ticket => JSON.parse(data.ticket);

/** Arbitrary numbers that no other program uses. */
const QUEUE_LOCK = 7_161_931_216;
const SCOPE_LOCKS = 7_161_931_217;

/** Replicas that start at the same time create the queue one after the other: pg-boss's own lock does not cover all of it. */
function startBoss(database: Database, statements: Statements): Promise<PgBoss> {
  if (database.exclusive) return createBoss(statements);
  return database.transaction(
    async (tx) => {
      await tx.query("SELECT pg_advisory_xact_lock($1)", [QUEUE_LOCK]);
      return createBoss(statements);
    },
    { slow: true },
  );
}

async function createBoss(statements: Statements): Promise<PgBoss> {
  const { default: Boss } = await import("pg-boss");
  const boss = new Boss({ db: statements, schema: SCHEMA, schedule: false });
  // pg-boss retries by itself; without a listener an error would end the process.
  boss.on("error", () => {});
  await boss.start();
  await boss.createQueue(FAILED_QUEUE);
  const options = {
    name: QUEUE,
    retryLimit: RETRIES,
    expireInHours: LONGEST_JOB_HOURS,
    retentionMinutes: LONGEST_WAIT_MINUTES,
    deadLetter: FAILED_QUEUE,
  };
  await boss.createQueue(QUEUE, options);
  // A queue created by an earlier version has the old options.
  await boss.updateQueue(QUEUE, options);
  return boss;
}

/** In a database that only this process has open, a job in progress at the start belongs to a process that died. */
async function returnAbandoned(database: Database, boss: PgBoss): Promise<void> {
  const rows = await database.query<{ queue_id: string }>(`SELECT queue_id FROM vivavoce.jobs WHERE ${UNFINISHED}`);
  for (const { queue_id } of rows) {
    const job = await boss.getJobById(QUEUE, queue_id);
    if (job?.state === "active") await boss.fail(QUEUE, queue_id);
  }
}

/** The next attempt adds one again. */
async function notCounted(database: Database, queueId: string): Promise<void> {
  await database.foreign(`UPDATE ${SCHEMA}.job SET retry_count = retry_count - 1 WHERE name = $1 AND id = $2`, [
    QUEUE,
    queueId,
  ]);
}

/** Uses the database's clock, because the clocks of replicas differ. */
async function showLife(database: Database, { scopeId, id }: Job): Promise<void> {
  await database.query("UPDATE vivavoce.jobs SET alive_at = now() WHERE scope = $1 AND id = $2", rowKey(scopeId, id));
}

/** Jobs in progress whose replica is silent: it died, or lost the database. Each job is returned only once, whoever asks. */
async function returnOfTheDead(database: Database, boss: PgBoss, deadAfterSeconds: number): Promise<void> {
  await database.transaction(async (tx) => {
    const rows = await tx.foreign(
      `SELECT q.id FROM vivavoce.jobs j JOIN ${SCHEMA}.job q ON q.name = $1 AND q.id = j.queue_id::uuid
       WHERE j.${UNFINISHED} AND q.state = 'active'
         AND greatest(q.started_on, j.alive_at) < now() - make_interval(secs => $2)
       FOR UPDATE SKIP LOCKED`,
      [QUEUE, deadAfterSeconds],
    );
    for (const { id } of rows) await boss.fail(QUEUE, id as string, SILENT, { db: executorOf(tx) });
  });
}

/** After a failure it is tried again next time. */
function everyNowAndThen(ms: number, work: () => Promise<void>): NodeJS.Timeout {
  return setInterval(() => void work().catch(() => {}), ms).unref();
}

function executorOf(queries: Queries): PgBoss.Db {
  return {
    executeSql: async (text, values?: unknown[]) => ({ rows: await queries.foreign(text, values) }),
  };
}

/**
 * pg-boss does not wait for the statement that completes a job. This does, and ignores errors after the end: the database is about to
 * close, and a job not marked as complete only runs again.
 */
class Statements implements PgBoss.Db {
  readonly #executor: PgBoss.Db;
  readonly #underWay = new Set<Promise<unknown>>();
  #finished = false;

  constructor(database: Database) {
    this.#executor = executorOf(database);
  }

  async executeSql(text: string, values: unknown[]): Promise<{ rows: unknown[] }> {
    if (this.#finished) return { rows: [] };
    const done = this.#executor.executeSql(text, values);
    this.#underWay.add(done);
    try {
      return await done;
    } finally {
      this.#underWay.delete(done);
    }
  }

  async finish(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    this.#finished = true;
  }
}
