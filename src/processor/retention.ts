/** How long audio, audio models and jobs are kept. */
import type { Id } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";

/**
 * Deletes everything that has expired at time `at`, in one scope or in all (`null`). Returns how many media segments and
 * audio models were deleted. A caller that just stopped a session passes its stop time, as the clock may have been set back.
 */
export async function expireAudio(
  deps: Dependencies,
  scopeId: Id | null,
  at = deps.clock.now(),
): Promise<{ media: number; models: number }> {
  const { audioSeconds, audioModelSeconds, abandonedSessionSeconds } = deps.retention;
  // "Before" is strict, and a session that stopped in this millisecond must be included.
  const now = at + 1;
  const before = (seconds: number) => now - seconds * 1000;
  const times = (seconds: number) => [before(seconds), before(seconds + abandonedSessionSeconds)] as const;
  const media = await deps.store.media.expire(scopeId, ...times(audioSeconds));
  const models = await deps.store.processed.expire(scopeId, ...times(audioModelSeconds));
  return { media, models };
}

/**
 * A session that was started or stopped while the clock was ahead would keep its audio for that much longer. If it is the clock that is behind now, its audio
 * goes earlier than configured: keeping a voice for too long is worse.
 */
export const capTimes = ({ store, clock }: Dependencies): Promise<void> => store.sessions.capTimes(clock.now());

/** The result of a status job repeats what profiles said then, their consent included: it must not outlive them for long. */
export const expireJobs = ({ store, clock, retention }: Dependencies): Promise<number> =>
  store.jobs.expire(clock.now() - retention.jobSeconds * 1000);
