/** Jobs in this process or page, one at a time. */
import { ENDED_STATES, FAILED_STATE, TRIES, UNFINISHED_STATES } from "../job-states.js";
import type { Job, Store } from "../port.js";
import type { RecordContext } from "./context.js";
import { inStoreWords, type StoredJob, within } from "./tables.js";

/** For a store that several pages have open. */
export interface OtherPages {
  /** How often to look for jobs of other pages. */
  readonly pollMs: number;
  /** Runs the work while no other page does, until the signal aborts. */
  whileAlone(signal: AbortSignal, work: () => Promise<void>): Promise<void>;
}

export function createJobs({ db }: RecordContext, others: OtherPages | null) {
  const stopping = new AbortController();
  let working: Promise<void> = Promise.resolve();
  let wake: () => void = () => {};

  const jobs: Store["jobs"] = {
    async create(job, maxUnfinished = Number.POSITIVE_INFINITY) {
      const stored: StoredJob = {
        ...job,
        request: job.request ?? null,
        result: job.result ?? null,
        tries: 0,
        queued: 1,
      };
      const write = db.transact(["jobs"], async ({ jobs: table }) => {
        const known = await table.getAll(within(job.scopeId));
        const isFull = known.filter(({ state }) => UNFINISHED_STATES.includes(state)).length >= maxUnfinished;
        if (!isFull) await table.add(stored);
        return !isFull;
      });
      const isCreated = await inStoreWords(job.id, write);
      if (isCreated) wake();
      return isCreated;
    },
    async get(scopeId, id) {
      const stored = await db.get("jobs", [scopeId, id]);
      return stored ? plainJob(stored) : null;
    },
    update: (scopeId, id, change) => changeJob(scopeId, id, (job) => ({ ...job, ...change })),
    async work(handler) {
      const work = () => workAll(handler);
      working = Promise.all([working, others ? others.whileAlone(stopping.signal, work) : work()]).then(() => {});
    },
    expire: (createdBefore) =>
      remove(null, (all) =>
        all.filter(({ state, createdAt }) => createdAt < createdBefore && ENDED_STATES.includes(state)),
      ),
    trim: (scopeId, maxBytes) => remove(within(scopeId), (all) => jobsBeyond(all, maxBytes)),
  };
  return {
    jobs,
    /** Waits for the current job. */
    async stop(): Promise<void> {
      stopping.abort();
      wake();
      await working;
    },
  };

  async function workAll(handler: (job: Job) => Promise<void>): Promise<void> {
    while (!stopping.signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
        if (others) setTimeout(resolve, others.pollMs);
      });
      const isIdle = await workOnNext(handler).catch(() => true);
      if (isIdle) await woken;
    }
  }

  /** True if no job waits. Fails if the browser has no space left, or if a page has removed the database: it is tried again later. */
  async function workOnNext(handler: (job: Job) => Promise<void>): Promise<boolean> {
    const job = await db.getFromIndex("jobs", "queued", 1);
    if (job) await workOn(job, handler);
    return !job;
  }

  async function workOn(job: StoredJob, handler: (job: Job) => Promise<void>): Promise<void> {
    const { scopeId, id } = job;
    // Counted before the attempt, so that a page that dies during it has used it up.
    const tries = job.tries + 1;
    if (tries > TRIES) return void (await changeJob(scopeId, id, (now) => ({ ...dequeued(now), state: FAILED_STATE })));
    await changeJob(scopeId, id, (now) => ({ ...now, tries }));
    try {
      await handler(plainJob(job));
      await changeJob(scopeId, id, dequeued);
    } catch {
      if (tries === TRIES) await changeJob(scopeId, id, (now) => ({ ...dequeued(now), state: FAILED_STATE }));
    }
  }

  function changeJob(scopeId: string, id: string, change: (job: StoredJob) => StoredJob): Promise<boolean> {
    return db.transact(["jobs"], async ({ jobs: table }) => {
      const job = await table.get([scopeId, id]);
      if (job) await table.put(change(job));
      return job !== undefined;
    });
  }

  function remove(range: IDBKeyRange | null, which: (all: readonly Job[]) => readonly Job[]): Promise<number> {
    return db.transact(["jobs"], async ({ jobs: table }) => {
      const removed = which(await table.getAll(range));
      for (const { scopeId, id } of removed) await table.delete([scopeId, id]);
      return removed.length;
    });
  }
}

function plainJob({ tries: _, queued: __, ...job }: StoredJob): Job {
  return job;
}

function dequeued({ queued: _, ...job }: StoredJob): StoredJob {
  return job;
}

/** The jobs that `trim` removes. */
function jobsBeyond(jobs: readonly Job[], maxBytes: number): Job[] {
  const newestFirst = jobs
    .filter(({ state }) => ENDED_STATES.includes(state))
    .sort((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1));
  let bytes = 0;
  return newestFirst.filter(({ request, result }, i) => {
    bytes += JSON.stringify([request, result]).length;
    return i > 0 && bytes > maxBytes;
  });
}
