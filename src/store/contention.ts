import { StoreError } from "./errors.js";

/** Writers that meet do so a few times; more is a fault that must not hold up everybody else. */
const TRIES = 100;

/** Tries again while somebody else was faster (`undefined`), but not for ever. */
export async function untilUncontended<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < TRIES; tries++) {
    const done = await attempt();
    if (done !== undefined) return done;
    // A turn of the event loop: answers that all come from memory would otherwise keep timers and other callers waiting.
    await new Promise((resume) => setTimeout(resume, 0));
  }
  throw new StoreError("contended", `${what} was changed by others ${TRIES} times in a row; try again`);
}
