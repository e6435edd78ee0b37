/** Jobs in a page. If several pages have the same store, the one that holds the lock runs the jobs. */
import { ENDED_STATES, FAILED_STATE, jobsBeyond, TRIES, UNFINISHED_STATES } from "../job-queue.js";
import type { Job, Store } from "../port.js";
import type { IdbContext } from "./context.js";
import { inStoreWords, type StoredJob, within } from "./schema.js";

const POLL_MS = 2_000;

export function createJobs({ db }: IdbContext, name: string) {
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
      const tx = db.transaction("jobs", "readwrite");
      const known = await tx.store.getAll(within(job.scopeId));
      const isFull = known.filter(({ state }) => UNFINISHED_STATES.includes(state)).length >= maxUnfinished;
      if (isFull) return false;
      await inStoreWords(job.id, Promise.all([tx.store.add(stored), tx.done]));
      wake();
      return true;
    },
    async get(scopeId, id) {
      const stored = await db.get("jobs", [scopeId, id]);
      return stored ? plainJob(stored) : null;
    },
    update: (scopeId, id, change) => changeJob(scopeId, id, (job) => ({ ...job, ...change })),
    async work(handler) {
      working = Promise.all([working, whileAlone(name, stopping.signal, () => workAll(handler))]).then(() => {});
    },
    async expire(createdBefore) {
      const tx = db.transaction("jobs", "readwrite");
      let removed = 0;
      for (const { scopeId, id, state, createdAt } of await tx.store.getAll()) {
        if (createdAt >= createdBefore || !ENDED_STATES.includes(state)) continue;
        await tx.store.delete([scopeId, id]);
        removed++;
      }
      await tx.done;
      return removed;
    },
    async trim(scopeId, maxBytes) {
      const tx = db.transaction("jobs", "readwrite");
      const removed = jobsBeyond(await tx.store.getAll(within(scopeId)), maxBytes);
      for (const { id } of removed) await tx.store.delete([scopeId, id]);
      await tx.done;
      return removed.length;
    },
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
        setTimeout(resolve, POLL_MS);
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

  async function changeJob(scopeId: string, id: string, change: (job: StoredJob) => StoredJob): Promise<boolean> {
    const tx = db.transaction("jobs", "readwrite");
    const job = await tx.store.get([scopeId, id]);
    if (job) await tx.store.put(change(job));
    await tx.done;
    return job !== undefined;
  }
}

function plainJob({ tries: _, queued: __, ...job }: StoredJob): Job {
  return job;
}

function dequeued({ queued: _, ...job }: StoredJob): StoredJob {
  return job;
}

/** If the browser has locks between pages, the work waits for the lock; otherwise there is only one page. */
async function whileAlone(name: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  const locks = (globalThis.navigator as Navigator | undefined)?.locks;
  if (!locks) return work();
  try {
    await locks.request(`vivavoce jobs ${name}`, { signal }, work);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
