/** A job's request, and the profiles that the job processes. */
import { isDamage } from "../store/damaged-profiles.js";
import type { Id, ListedProfile } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";

/** The stored part of the request. If the ids are `null`, the job processes all profiles of the scope. */
export interface JobRequest {
  readonly profileIds: readonly Id[] | null;
  readonly configsetId: string;
  /** For retraining: only report what would happen to each profile. */
  readonly dryRun?: boolean;
}

/** The profiles that a job processes. Profiles erased since the request are left out. */
export async function* profilesOf(
  deps: Dependencies,
  scopeId: Id,
  { profileIds }: JobRequest,
): AsyncGenerator<{ profile: ListedProfile; done: number }> {
  const { profiles } = deps.store;
  if (profileIds) {
    for (const [i, id] of profileIds.entries()) {
      const [profile] = await profiles.getMany(scopeId, [id]);
      if (profile) yield { profile, done: (i + 1) / profileIds.length };
    }
    return;
  }
  const pageSize = 256;
  const total = await profiles.count(scopeId);
  let seen = 0;
  for (let after: Id | null = null; ; ) {
    const page: ListedProfile[] = await profiles.list(scopeId, after, pageSize);
    for (const profile of page) yield { profile, done: ++seen / Math.max(seen, total) };
    if (page.length < pageSize) return;
    after = page.at(-1)!.id;
  }
}

/** The result for one profile, or `otherwise` if it is damaged, so that the others are processed. */
export async function unlessDamaged<T, U>(work: () => Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await work();
  } catch (error) {
    if (isDamage(error)) return otherwise;
    throw error;
  }
}
