/** What a job is asked, and the profiles it goes through. */
import { type DescMessage, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";
import type { Id, Profile } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";

/** What is kept of the request: `null` ids stand for all profiles of the scope. */
export interface JobRequest {
  readonly profileIds: readonly Id[] | null;
  readonly configsetId: string;
  /** Of a retraining: says what would become of each profile, and changes nothing. */
  readonly dryRun?: boolean;
}

/** The profiles that a job is about; those erased since it was asked for are left out. */
export async function* profilesOf(
  deps: Dependencies,
  scopeId: Id,
  { profileIds }: JobRequest,
): AsyncGenerator<{ profile: Profile; done: number }> {
  const { profiles } = deps.store;
  if (profileIds) {
    for (const [i, id] of profileIds.entries()) {
      const profile = await profiles.get(scopeId, id);
      if (profile) yield { profile, done: (i + 1) / profileIds.length };
    }
    return;
  }
  const pageSize = 256;
  const total = await profiles.count(scopeId);
  let seen = 0;
  for (let after: Id | null = null; ; ) {
    const page: Profile[] = await profiles.list(scopeId, after, pageSize);
    for (const profile of page) yield { profile, done: ++seen / Math.max(seen, total) };
    if (page.length < pageSize) return;
    after = page.at(-1)!.id;
  }
}

export const asJson = <T extends DescMessage>(schema: T, message: MessageShape<T>): JsonValue =>
  toJson(schema, message);
