/** Work that outlasts a call: the profile-status job and retraining after a model update. */
import { type DescMessage, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import {
  type Context,
  type ListOfUniqueId,
  VoiceprintProfilesStatusJobState as State,
  StatusCode,
  StatusError,
} from "../contract/index.js";
import type { Job } from "../store/port.js";
import { findProfiles } from "./candidates.js";
import { checkOptionalContext } from "./context.js";
import type { Dependencies, OperationOptions } from "./dependencies.js";
import { notInScope } from "./failures.js";
import type { JobRequest } from "./job-profiles.js";
import { duration, uniqueId } from "./messages.js";
import { profileStatuses } from "./profiles-status-job.js";
import { retrainProfiles } from "./retraining-job.js";

/** Jobs take seconds to hours. */
const RETRY_SECONDS = 30;

export async function startJob(
  deps: Dependencies,
  kind: Job["kind"],
  request: {
    readonly context?: Context | undefined;
    readonly gkVoiceprintProfileIds?: ListOfUniqueId | undefined;
    readonly dryRun?: boolean;
  },
  options: OperationOptions,
) {
  const scopeId = await checkOptionalContext(deps, request.context);
  const list = request.gkVoiceprintProfileIds;
  if (list) await findProfiles({ deps, options, scopeId }, list, "gk_voiceprint_profile_ids");
  const id = deps.ids.next();
  const wanted: JobRequest = {
    profileIds: list ? [...new Set(list.uniqueIds.map(({ value }) => value))] : null,
    configsetId: request.context!.configsetId,
    ...(request.dryRun && { dryRun: true }),
  };
  const createdAt = deps.clock.now();
  const state = State.PENDING;
  const job: Job = { id, scopeId, kind, state, request: wanted, result: null, progress: 0, createdAt };
  const { jobsPerScope } = deps.limits;
  if (!(await deps.store.jobs.create(job, jobsPerScope)))
    throw new StatusError({
      statusCode: StatusCode.QUOTA_EXCEEDED,
      message: `this scope already has ${jobsPerScope} unfinished jobs; try again when one has ended`,
      retryAfter: duration(RETRY_SECONDS),
    });
  return { gkJobId: uniqueId(id), state };
}

export async function readJob<T extends DescMessage>(
  deps: Dependencies,
  kind: Job["kind"],
  request: { readonly context?: Context | undefined; readonly gkJobId?: { readonly value: string } | undefined },
  schema: T,
): Promise<{ state: State; progress: number; profiles: MessageShape<T>[] }> {
  const scopeId = await checkOptionalContext(deps, request.context);
  const job = await deps.store.jobs.get(scopeId, request.gkJobId!.value);
  if (job?.kind !== kind) throw notInScope("gk_job_id", "job", request.gkJobId!.value);
  const published = job.state === State.COMPLETED ? (job.result as JsonValue[]) : [];
  return { state: job.state, progress: job.progress, profiles: published.map((json) => fromJson(schema, json)) };
}

/**
 * Runs one job. If it throws, the store retries it a few times and then marks it as failed. A job may therefore run
 * more than once; both kinds of job can be repeated safely.
 */
export async function runJob(deps: Dependencies, job: Job): Promise<void> {
  const { store } = deps;
  // Its process died after the last write, before the queue learned of it: callers may already have read the result.
  if (job.state === State.COMPLETED) return;
  await store.jobs.trim(job.scopeId, deps.limits.jobBytesPerScope);
  await store.jobs.update(job.scopeId, job.id, { state: State.STARTED, progress: 0 });
  let reported = 0;
  const onProgress = async (done: number) => {
    if (done - reported < 0.01) return;
    reported = done;
    await store.jobs.update(job.scopeId, job.id, { progress: done });
  };
  const request = job.request as JobRequest;
  const result =
    job.kind === "profile-status"
      ? await profileStatuses(deps, job.scopeId, request, onProgress)
      : await retrainProfiles(deps, job.scopeId, request, onProgress);
  await store.jobs.update(job.scopeId, job.id, { state: State.COMPLETED, progress: 1, result });
}
