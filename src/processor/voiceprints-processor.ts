/** The contract, in process: every operation as a method that takes the request and answers the response. */
import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { v7 } from "uuid";
import type { RawFormat, Recording } from "../audio/port.js";
import * as engagements from "../contract/gen/vendor/biosec/v1/engagements_pb.js";
import * as groups from "../contract/gen/vendor/biosec/v1/groups_pb.js";
import * as live from "../contract/gen/vendor/biosec/v1/live_pb.js";
import * as media from "../contract/gen/vendor/biosec/v1/media_pb.js";
import * as profiles from "../contract/gen/vendor/biosec/v1/profiles_pb.js";
import * as sessions from "../contract/gen/vendor/biosec/v1/sessions_pb.js";
import * as voiceprints from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { StatusCode, StatusSchema } from "../contract/gen/vendor/rpc/status_pb.js";
import { StatusError } from "../contract/status-error.js";
import type { Engine } from "../engine/port.js";
import type { Store } from "../store/port.js";
import {
  type ConfigurationOverrides,
  type ConfigurationSet,
  configurationSets,
} from "../voiceprint/configuration-set.js";
import { addMediaSegment } from "./add-media-segment.js";
import { analyzeAudio } from "./analyze-audio.js";
import { answer, attempt, parseRequest, type Request } from "./call.js";
import { checkWatchlistConsistency } from "./check-watchlist-consistency.js";
import {
  type Clock,
  type Dependencies,
  defaultLimits,
  defaultRetention,
  type Ids,
  type Limits,
  type OperationOptions,
  type Retention,
  withDefaults,
} from "./dependencies.js";
import { detectKnownFraudsters } from "./detect-known-fraudsters.js";
import { startEngagement, stopEngagement } from "./engagements.js";
import { enroll } from "./enroll.js";
import { type ExportedProfile, exportProfile } from "./export-profile.js";
import { asStatusError, callFailure, invalid } from "./failures.js";
import { Galleries } from "./galleries.js";
import { getEnrollStatus } from "./get-enroll-status.js";
import { getSessionDecision } from "./get-session-decision.js";
import { GroupCache } from "./group-cache.js";
import { addGroupMembers, createGroup, deleteGroup, getGroup, removeGroupMembers } from "./groups.js";
import { identify } from "./identify.js";
import { readJob, runJob, startJob } from "./jobs.js";
import { listen } from "./live/listen.js";
import { type LiveCheck, type LiveRequest, openLiveAnalysis } from "./live/live-check.js";
import { PrintCache } from "./print-cache.js";
import { processAudio } from "./process-audio.js";
import { expireAudio } from "./retention.js";
import { startSession, stopSession } from "./sessions.js";
import { inSinglePrecision } from "./single-precision.js";
import { train } from "./train.js";
import { verify } from "./verify.js";
import { createVoiceprintProfile, deleteVoiceprintProfile, getGkVoiceprintProfileId } from "./voiceprint-profiles.js";

export interface VoiceprintsProcessorOptions {
  readonly engine: Engine;
  readonly store: Store;
  /** How bytes become a recording: `readRecording` of the audio part. */
  readonly readRecording: (bytes: Uint8Array, format?: RawFormat) => Recording;
  /** User-defined configuration sets, by their id; those built in are always there. */
  readonly configurationSets?: Readonly<Record<string, ConfigurationOverrides>>;
  readonly retention?: Partial<Retention>;
  readonly limits?: Partial<Limits>;
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** What else ends with the processor. */
  readonly onClose?: () => Promise<void>;
}

type Operation<I extends DescMessage, O extends DescMessage> = (
  deps: Dependencies,
  request: MessageShape<I>,
  options: OperationOptions,
) => Promise<MessageInitShape<O>>;

/**
 * Operations are named as in the contract. Each answers its response message with `status`, or throws a `StatusError`.
 * The processor does not own engine and store: whoever opened them closes them, after `close()` here or in `onClose`.
 */
export class VoiceprintsProcessor {
  readonly #deps: Dependencies;
  readonly #onClose: (() => Promise<void>) | undefined;

  constructor(options: VoiceprintsProcessorOptions) {
    const { engine, store, readRecording } = options;
    this.#onClose = options.onClose;
    this.#deps = {
      engine,
      store,
      readRecording,
      configurationSets: configurationSets(options.configurationSets),
      galleries: new Galleries(engine, store),
      prints: new PrintCache(store),
      groups: new GroupCache(store),
      clock: options.clock ?? { now: () => Date.now() },
      ids: options.ids ?? { next: () => v7() },
      retention: withDefaults("retention", defaultRetention, options.retention),
      limits: withDefaults("limits", defaultLimits, options.limits),
    };
  }

  // VoiceprintsProcessor

  processAudio(request: Request<typeof voiceprints.ProcessAudioRequestSchema>, options?: OperationOptions) {
    const { ProcessAudioRequestSchema, ProcessAudioResponseSchema } = voiceprints;
    return this.#run(ProcessAudioRequestSchema, ProcessAudioResponseSchema, processAudio, request, options);
  }

  enroll(request: Request<typeof voiceprints.EnrollRequestSchema>, options?: OperationOptions) {
    return this.#run(voiceprints.EnrollRequestSchema, voiceprints.EnrollResponseSchema, enroll, request, options);
  }

  getEnrollStatus(request: Request<typeof voiceprints.GetEnrollStatusRequestSchema>, options?: OperationOptions) {
    const { GetEnrollStatusRequestSchema, GetEnrollStatusResponseSchema } = voiceprints;
    return this.#run(GetEnrollStatusRequestSchema, GetEnrollStatusResponseSchema, getEnrollStatus, request, options);
  }

  train(request: Request<typeof voiceprints.TrainRequestSchema>, options?: OperationOptions) {
    return this.#run(voiceprints.TrainRequestSchema, voiceprints.TrainResponseSchema, train, request, options);
  }

  checkWatchlistConsistency(
    request: Request<typeof voiceprints.CheckWatchlistConsistencyRequestSchema>,
    options?: OperationOptions,
  ) {
    const { CheckWatchlistConsistencyRequestSchema: input, CheckWatchlistConsistencyResponseSchema: output } =
      voiceprints;
    return this.#run(input, output, checkWatchlistConsistency, request, options);
  }

  verify(request: Request<typeof voiceprints.VerifyRequestSchema>, options?: OperationOptions) {
    return this.#run(voiceprints.VerifyRequestSchema, voiceprints.VerifyResponseSchema, verify, request, options);
  }

  identify(request: Request<typeof voiceprints.IdentifyRequestSchema>, options?: OperationOptions) {
    return this.#run(voiceprints.IdentifyRequestSchema, voiceprints.IdentifyResponseSchema, identify, request, options);
  }

  detectKnownFraudsters(
    request: Request<typeof voiceprints.DetectKnownFraudstersRequestSchema>,
    options?: OperationOptions,
  ) {
    const { DetectKnownFraudstersRequestSchema: input, DetectKnownFraudstersResponseSchema: output } = voiceprints;
    return this.#run(input, output, detectKnownFraudsters, request, options);
  }

  analyzeAudio(request: Request<typeof voiceprints.AnalyzeAudioRequestSchema>, options?: OperationOptions) {
    const { AnalyzeAudioRequestSchema, AnalyzeAudioResponseSchema } = voiceprints;
    return this.#run(AnalyzeAudioRequestSchema, AnalyzeAudioResponseSchema, analyzeAudio, request, options);
  }

  // EngagementsProcessor

  startEngagement(request: Request<typeof engagements.StartEngagementRequestSchema>, options?: OperationOptions) {
    const { StartEngagementRequestSchema, StartEngagementResponseSchema } = engagements;
    return this.#run(StartEngagementRequestSchema, StartEngagementResponseSchema, startEngagement, request, options);
  }

  stopEngagement(request: Request<typeof engagements.StopEngagementRequestSchema>, options?: OperationOptions) {
    const { StopEngagementRequestSchema, StopEngagementResponseSchema } = engagements;
    return this.#run(StopEngagementRequestSchema, StopEngagementResponseSchema, stopEngagement, request, options);
  }

  // SessionsProcessor

  startSession(request: Request<typeof sessions.StartSessionRequestSchema>, options?: OperationOptions) {
    const { StartSessionRequestSchema, StartSessionResponseSchema } = sessions;
    return this.#run(StartSessionRequestSchema, StartSessionResponseSchema, startSession, request, options);
  }

  stopSession(request: Request<typeof sessions.StopSessionRequestSchema>, options?: OperationOptions) {
    const { StopSessionRequestSchema, StopSessionResponseSchema } = sessions;
    return this.#run(StopSessionRequestSchema, StopSessionResponseSchema, stopSession, request, options);
  }

  getSessionDecision(request: Request<typeof sessions.GetSessionDecisionRequestSchema>, options?: OperationOptions) {
    const { GetSessionDecisionRequestSchema: input, GetSessionDecisionResponseSchema: output } = sessions;
    return this.#run(input, output, getSessionDecision, request, options);
  }

  // ProfilesProcessor

  createVoiceprintProfile(
    request: Request<typeof profiles.CreateVoiceprintProfileRequestSchema>,
    options?: OperationOptions,
  ) {
    const { CreateVoiceprintProfileRequestSchema: input, CreateVoiceprintProfileResponseSchema: output } = profiles;
    return this.#run(input, output, createVoiceprintProfile, request, options);
  }

  getGkVoiceprintProfileId(
    request: Request<typeof profiles.GetGkVoiceprintProfileIdRequestSchema>,
    options?: OperationOptions,
  ) {
    const { GetGkVoiceprintProfileIdRequestSchema: input, GetGkVoiceprintProfileIdResponseSchema: output } = profiles;
    return this.#run(input, output, getGkVoiceprintProfileId, request, options);
  }

  deleteVoiceprintProfile(
    request: Request<typeof profiles.DeleteVoiceprintProfileRequestSchema>,
    options?: OperationOptions,
  ) {
    const { DeleteVoiceprintProfileRequestSchema: input, DeleteVoiceprintProfileResponseSchema: output } = profiles;
    return this.#run(input, output, deleteVoiceprintProfile, request, options);
  }

  startVoiceprintProfilesStatusJob(
    request: Request<typeof profiles.StartVoiceprintProfilesStatusJobRequestSchema>,
    options?: OperationOptions,
  ) {
    const { StartVoiceprintProfilesStatusJobRequestSchema: input } = profiles;
    const { StartVoiceprintProfilesStatusJobResponseSchema: output } = profiles;
    return this.#run(input, output, (deps, message) => startJob(deps, "profile-status", message), request, options);
  }

  getVoiceprintProfilesStatusJob(
    request: Request<typeof profiles.GetVoiceprintProfilesStatusJobRequestSchema>,
    options?: OperationOptions,
  ) {
    const { GetVoiceprintProfilesStatusJobRequestSchema: input, VoiceprintProfileStatusDetailsSchema: entry } =
      profiles;
    const { GetVoiceprintProfilesStatusJobResponseSchema: output } = profiles;
    return this.#run(
      input,
      output,
      (deps, message) => readJob(deps, "profile-status", message, entry),
      request,
      options,
    );
  }

  startVoiceprintProfilesRetrainingJob(
    request: Request<typeof profiles.StartVoiceprintProfilesRetrainingJobRequestSchema>,
    options?: OperationOptions,
  ) {
    const { StartVoiceprintProfilesRetrainingJobRequestSchema: input } = profiles;
    const { StartVoiceprintProfilesRetrainingJobResponseSchema: output } = profiles;
    return this.#run(input, output, (deps, message) => startJob(deps, "retrain", message), request, options);
  }

  getVoiceprintProfilesRetrainingJob(
    request: Request<typeof profiles.GetVoiceprintProfilesRetrainingJobRequestSchema>,
    options?: OperationOptions,
  ) {
    const { GetVoiceprintProfilesRetrainingJobRequestSchema: input, VoiceprintProfileRetrainingSchema: entry } =
      profiles;
    const { GetVoiceprintProfilesRetrainingJobResponseSchema: output } = profiles;
    return this.#run(input, output, (deps, message) => readJob(deps, "retrain", message, entry), request, options);
  }

  // MediaProcessor

  /** One request with all bytes, or a stream: the first carries the context, each may carry bytes. */
  addMediaSegment(
    request:
      | Request<typeof media.AddMediaSegmentRequestSchema>
      | AsyncIterable<Request<typeof media.AddMediaSegmentRequestSchema>>,
    options: OperationOptions = {},
  ) {
    const { AddMediaSegmentRequestSchema: input, AddMediaSegmentResponseSchema: output } = media;
    return answer(output, this.#deps.ids, options, async (watched) => {
      if (!(Symbol.asyncIterator in request))
        return addMediaSegment(this.#deps, parseRequest(input, request), nothing(), watched);
      const stream = request[Symbol.asyncIterator]();
      try {
        const first = await stream.next();
        if (first.done)
          throw new StatusError({ statusCode: StatusCode.BAD_REQUEST, message: "the stream ended before its context" });
        return await addMediaSegment(this.#deps, parseRequest(input, first.value), chunksOf(stream), watched);
      } finally {
        await stream.return?.();
      }
    });
  }

  // LiveProcessor

  /** A call as it is spoken: the first message starts it, the others carry its audio. */
  async *listen(
    requests: AsyncIterable<Request<typeof live.ListenRequestSchema>>,
    options: OperationOptions = {},
  ): AsyncGenerator<live.ListenResponse> {
    const requestId = options.requestId ?? this.#deps.ids.next();
    const stream = requests[Symbol.asyncIterator]();
    const status = create(StatusSchema, { statusCode: StatusCode.OK, requestId });
    try {
      const { done, value } = await stream.next();
      if (done) throw badStream("the stream ended before its first message");
      const { content } = parseRequest(live.ListenRequestSchema, value);
      if (content.case !== "start") throw badStream(`the first message must be start, got ${content.case}`);
      for await (const response of listen(this.#deps, content.value, listenRequests(stream), options))
        yield inSinglePrecision(live.ListenResponseSchema, create(live.ListenResponseSchema, { ...response, status }));
    } catch (error) {
      const failure = (options.signal?.aborted && callFailure(options.signal.reason)) || asStatusError(error);
      failure.status.requestId = requestId;
      throw failure;
    } finally {
      await stream.return?.();
    }
  }

  // GroupsProcessor

  createGroup(request: Request<typeof groups.CreateGroupRequestSchema>, options?: OperationOptions) {
    return this.#createGroup("group", request, options);
  }

  createWatchlist(request: Request<typeof groups.CreateGroupRequestSchema>, options?: OperationOptions) {
    return this.#createGroup("watchlist", request, options);
  }

  getGroup(request: Request<typeof groups.GetGroupRequestSchema>, options?: OperationOptions) {
    return this.#getGroup("group", request, options);
  }

  getWatchlist(request: Request<typeof groups.GetGroupRequestSchema>, options?: OperationOptions) {
    return this.#getGroup("watchlist", request, options);
  }

  deleteGroup(request: Request<typeof groups.DeleteGroupRequestSchema>, options?: OperationOptions) {
    return this.#deleteGroup("group", request, options);
  }

  deleteWatchlist(request: Request<typeof groups.DeleteGroupRequestSchema>, options?: OperationOptions) {
    return this.#deleteGroup("watchlist", request, options);
  }

  addGroupMembers(request: Request<typeof groups.AddGroupMembersRequestSchema>, options?: OperationOptions) {
    return this.#addMembers("group", request, options);
  }

  addWatchlistMembers(request: Request<typeof groups.AddGroupMembersRequestSchema>, options?: OperationOptions) {
    return this.#addMembers("watchlist", request, options);
  }

  removeGroupMembers(request: Request<typeof groups.RemoveGroupMembersRequestSchema>, options?: OperationOptions) {
    return this.#removeMembers("group", request, options);
  }

  removeWatchlistMembers(request: Request<typeof groups.RemoveGroupMembersRequestSchema>, options?: OperationOptions) {
    return this.#removeMembers("watchlist", request, options);
  }

  // Beyond the contract's messages: what a library can do and a request cannot say.

  /** AnalyzeAudio on audio that is still arriving, as an object to push samples into. */
  openLiveAnalysis(
    request: LiveRequest,
    options: OperationOptions = {},
  ): Promise<LiveCheck<voiceprints.AnalyzeAudioResult>> {
    const requestId = options.requestId ?? this.#deps.ids.next();
    const { rateHz: _, ...rest } = request;
    // The signal outlives this call: it ends the check itself.
    return attempt(options, requestId, () => {
      parseRequest(voiceprints.AnalyzeAudioRequestSchema, rest, (violation) => violation.field === "audio");
      return openLiveAnalysis(this.#deps, request, options);
    });
  }

  /** All that is kept of a profile (right of access). `null` when there is none. */
  exportProfile(scopeId: string, profileId: string): Promise<ExportedProfile | null> {
    return exportProfile(this.#deps, scopeId, profileId);
  }

  /** Removes audio and audio models that are kept no longer, in all scopes. Sessions do it when they stop; abandoned ones need this. */
  expire(): Promise<{ media: number; models: number }> {
    return expireAudio(this.#deps, null);
  }

  /** Works on jobs, of this process and of others on the same store, until the store closes. */
  workOnJobs(): Promise<void> {
    return this.#deps.store.jobs.work((job) => runJob(this.#deps, job));
  }

  /** The sets that `configset_id` may name. */
  get configurationSets(): ReadonlyMap<string, ConfigurationSet> {
    return this.#deps.configurationSets;
  }

  /** Forgets the prints that were loaded. */
  async close(): Promise<void> {
    this.#deps.galleries.close();
    this.#deps.prints.clear();
    this.#deps.groups.clear();
    await this.#onClose?.();
  }

  #run<I extends DescMessage, O extends DescMessage>(
    input: I,
    output: O,
    operation: Operation<I, O>,
    request: Request<I>,
    options: OperationOptions = {},
  ): Promise<MessageShape<O>> {
    return answer(output, this.#deps.ids, options, (watched) =>
      operation(this.#deps, parseRequest(input, request), watched),
    );
  }

  #createGroup(kind: GroupKind, request: Request<typeof groups.CreateGroupRequestSchema>, options?: OperationOptions) {
    const { CreateGroupRequestSchema: input, CreateGroupResponseSchema: output } = groups;
    return this.#run(input, output, (deps, message) => createGroup(deps, kind, message), request, options);
  }

  #getGroup(kind: GroupKind, request: Request<typeof groups.GetGroupRequestSchema>, options?: OperationOptions) {
    const { GetGroupRequestSchema: input, GetGroupResponseSchema: output } = groups;
    return this.#run(input, output, (deps, message) => getGroup(deps, kind, message), request, options);
  }

  #deleteGroup(kind: GroupKind, request: Request<typeof groups.DeleteGroupRequestSchema>, options?: OperationOptions) {
    const { DeleteGroupRequestSchema: input, DeleteGroupResponseSchema: output } = groups;
    return this.#run(input, output, (deps, message) => deleteGroup(deps, kind, message), request, options);
  }

  #addMembers(
    kind: GroupKind,
    request: Request<typeof groups.AddGroupMembersRequestSchema>,
    options?: OperationOptions,
  ) {
    const { AddGroupMembersRequestSchema: input, AddGroupMembersResponseSchema: output } = groups;
    return this.#run(input, output, (deps, message) => addGroupMembers(deps, kind, message), request, options);
  }

  #removeMembers(
    kind: GroupKind,
    request: Request<typeof groups.RemoveGroupMembersRequestSchema>,
    options?: OperationOptions,
  ) {
    const { RemoveGroupMembersRequestSchema: input, RemoveGroupMembersResponseSchema: output } = groups;
    return this.#run(input, output, (deps, message) => removeGroupMembers(deps, kind, message), request, options);
  }
}

type GroupKind = "group" | "watchlist";

const badStream = (message: string): StatusError => new StatusError({ statusCode: StatusCode.BAD_REQUEST, message });

async function* listenRequests(
  stream: AsyncIterator<Request<typeof live.ListenRequestSchema>>,
): AsyncGenerator<live.ListenRequest> {
  for (let next = await stream.next(); !next.done; next = await stream.next())
    yield create(live.ListenRequestSchema, next.value);
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function* chunksOf(
  stream: AsyncIterator<Request<typeof media.AddMediaSegmentRequestSchema>>,
): AsyncGenerator<Uint8Array> {
  for (let next = await stream.next(); !next.done; next = await stream.next()) {
    const chunk = next.value.chunk ?? new Uint8Array();
    if (!(chunk instanceof Uint8Array)) throw invalid("chunk", "malformed", "chunk must be a Uint8Array");
    yield chunk;
  }
}
