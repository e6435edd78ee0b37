/** How long audio and audio models are kept. */
import type { Id } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";

/** Removes what is kept no longer, of one scope or of all (`null`). Returns how many media segments and audio models went. */
export async function expireAudio(deps: Dependencies, scopeId: Id | null): Promise<{ media: number; models: number }> {
  const { audioSeconds, audioModelSeconds, abandonedSessionSeconds } = deps.retention;
  // "Before" is strict, and a session that stopped this very millisecond has stopped.
  const now = deps.clock.now() + 1;
  const before = (seconds: number) => now - seconds * 1000;
  const media = await deps.store.media.expire(
    scopeId,
    before(audioSeconds),
    before(audioSeconds + abandonedSessionSeconds),
  );
  const models = await deps.store.processed.expire(
    scopeId,
    before(audioModelSeconds),
    before(audioModelSeconds + abandonedSessionSeconds),
  );
  return { media, models };
}
