import { StoreError } from "./errors.js";

/** Concurrent writers collide a few times at most; more is a fault that must not hold up other callers. */
const TRIES = 100;

/** Retries while another writer was faster (`undefined`), up to a limit. */
export async function untilUncontended<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < TRIES; tries++) {
    const done = await attempt();
    if (done !== undefined) return done;
    // Yields to the event loop: replies that all come from memory would otherwise block timers and other callers.
    await new Promise((resume) => setTimeout(resume, 0));
  }
  throw new StoreError("contended", `other calls changed ${what} ${TRIES} times in a row; try again`);
}
