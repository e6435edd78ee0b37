import { StatusCode } from "../contract/gen/vendor/rpc/status_pb.js";
import { StatusError } from "../contract/status-error.js";
import { duration } from "./messages.js";

/** Callers that enroll or train the same profile at the same moment collide a few times; this many means a defect. */
const TRIES = 100;

/** Retries while another writer was faster (`undefined`), a limited number of times and only until the caller cancels. */
export async function untilUncontended<T>(
  signal: AbortSignal | undefined,
  attempt: () => Promise<T | undefined>,
): Promise<T> {
  for (let tries = 0; tries < TRIES; tries++) {
    signal?.throwIfAborted();
    const done = await attempt();
    if (done !== undefined) return done;
    await new Promise((resume) => setTimeout(resume, 0));
  }
  throw new StatusError({
    statusCode: StatusCode.BUSY,
    message: `other calls changed the profile ${TRIES} times in a row; try again`,
    retryAfter: duration(1),
  });
}
