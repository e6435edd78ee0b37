/** The contract as a library: every operation is a method that takes the request and returns the response. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { RawFormat, Recording, ToWav } from "../audio/port.js";
import {
  type AnalyzeAudioResult,
  EngagementsProcessor,
  GroupsProcessor,
  type ListenRequest,
  ListenRequestSchema,
  type ListenResponse,
  ListenResponseSchema,
  MediaProcessor,
  ProfilesProcessor,
  SessionsProcessor,
  StatusCode,
  type StatusError,
  statusError,
  VoiceprintProfileRetrainingSchema,
  VoiceprintProfileStatusDetailsSchema,
  VoiceprintsProcessor as VoiceprintsService,
} from "../contract/index.js";
import type {
  LiveOperations,
  LiveOptions,
  Methods,
  OperationOptions,
  OperationRequest,
  Operations,
} from "../contract/operations.js";
import type { Engine } from "../engine/port.js";
import type { GroupKind, Store } from "../store/port.js";
import {
  type ConfigurationOverrides,
  type ConfigurationSet,
  configurationSets,
} from "../voiceprint/configuration-set.js";
import type { FieldRate } from "../voiceprint/field-rates.js";
import { addMediaSegment } from "./add-media-segment.js";
import { analyzeAudio } from "./analyze-audio.js";
import { answer, attempt, okStatus, parseRequest, requestIdOf } from "./call.js";
import { checkWatchlistConsistency } from "./check-watchlist-consistency.js";
import {
  type Clock,
  type Dependencies,
  defaultLimits,
  defaultRetention,
  type GroupImplementation,
  type Ids,
  type Implementation,
  type Limits,
  type Retention,
  withDefaults,
} from "./dependencies.js";
import { detectKnownFraudsters } from "./detect-known-fraudsters.js";
import { startEngagement, stopEngagement } from "./engagements.js";
import { enroll } from "./enroll.js";
import { type ExportedProfile, exportProfile, exportVoiceprintProfile } from "./export-profile.js";
import { callFailure, failureOf, invalid } from "./failures.js";
import { FieldRates } from "./field-rates.js";
import { Galleries } from "./galleries.js";
import { getEnrollStatus } from "./get-enroll-status.js";
import { getSessionDecision } from "./get-session-decision.js";
import { GroupCache } from "./group-cache.js";
import { addGroupMembers, createGroup, deleteGroup, getGroup, removeGroupMembers } from "./groups.js";
import { identify } from "./identify.js";
import { importVoiceprintProfile } from "./import-profile.js";
import { readJob, runJob, startJob } from "./jobs.js";
import { listGroups, listVoiceprintProfiles } from "./listing.js";
import { listen } from "./live/listen.js";
import { type LiveCheck, type LiveRequest, openLiveAnalysis } from "./live/live-check.js";
import { openLiveEnrollment } from "./live/live-enrollment.js";
import type { LiveEnrollmentResult, LiveTask } from "./live/live-task.js";
import { type Models, oneModel } from "./models.js";
import { newIds } from "./new-ids.js";
import { PrintCache } from "./print-cache.js";
import { type PrintsOfModel, printsByModel } from "./prints-by-model.js";
import { processAudio } from "./process-audio.js";
import { isOfScopesModel } from "./profiles.js";
import { capTimes, expireAudio, expireJobs } from "./retention.js";
import { startSession, stopSession } from "./sessions.js";
import { inSinglePrecision } from "./single-precision.js";
import { train } from "./train.js";
import { verify } from "./verify.js";
import {
  createVoiceprintProfile,
  deleteVoiceprintProfile,
  getGkVoiceprintProfileId,
  setVoiceprintProfileConsent,
} from "./voiceprint-profiles.js";

/** What a processor works with. */
export interface VoiceprintsProcessorOptions {
  /** The engine of the model that all scopes use, unless `models` says otherwise. */
  readonly engine: Engine;
  /** Needed if scopes use different models for new prints, or if prints of older models are scored as well. */
  readonly models?: Models;
  readonly store: Store;
  /** Decodes bytes to a recording: `readRecording` of the audio module. */
  readonly readRecording: (bytes: Uint8Array, format?: RawFormat) => Recording;
  /** Decodes compressed recordings: `toWav` of the audio module. Without it they are rejected. */
  readonly toWav?: ToWav;
  /** User-defined configuration sets by id; the built-in ones are always available. */
  readonly configurationSets?: Readonly<Record<string, ConfigurationOverrides>>;
  readonly retention?: Partial<Retention>;
  readonly limits?: Partial<Limits>;
  /** Whether ExportVoiceprintProfile is allowed; true by default. */
  readonly allowExport?: boolean;
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** Called by `close`, to close other resources. */
  readonly onClose?: () => Promise<void>;
}

const methods: Methods = {
  ...VoiceprintsService.method,
  ...EngagementsProcessor.method,
  ...SessionsProcessor.method,
  ...ProfilesProcessor.method,
  ...MediaProcessor.method,
  ...GroupsProcessor.method,
};

/**
 * Operations are named as in the contract. Each returns its response message with `status`, or throws a `StatusError`.
 * The processor does not own engine and store: the code that opened them closes them, after `close()` or in `onClose`.
 */
export class VoiceprintsProcessor implements Operations, LiveOperations {
  readonly processAudio = this.#operation("processAudio", processAudio);
  readonly enroll = this.#operation("enroll", enroll);
  readonly getEnrollStatus = this.#operation("getEnrollStatus", getEnrollStatus);
  readonly train = this.#operation("train", train);
  readonly checkWatchlistConsistency = this.#operation("checkWatchlistConsistency", checkWatchlistConsistency);
  readonly verify = this.#operation("verify", verify);
  readonly identify = this.#operation("identify", identify);
  readonly detectKnownFraudsters = this.#operation("detectKnownFraudsters", detectKnownFraudsters);
  readonly analyzeAudio = this.#operation("analyzeAudio", analyzeAudio);

  readonly startEngagement = this.#operation("startEngagement", startEngagement);
  readonly stopEngagement = this.#operation("stopEngagement", stopEngagement);

  readonly startSession = this.#operation("startSession", startSession);
  readonly stopSession = this.#operation("stopSession", stopSession);
  readonly getSessionDecision = this.#operation("getSessionDecision", getSessionDecision);

  readonly createVoiceprintProfile = this.#operation("createVoiceprintProfile", createVoiceprintProfile);
  readonly listVoiceprintProfiles = this.#operation("listVoiceprintProfiles", listVoiceprintProfiles);
  readonly getGkVoiceprintProfileId = this.#operation("getGkVoiceprintProfileId", getGkVoiceprintProfileId);
  readonly deleteVoiceprintProfile = this.#operation("deleteVoiceprintProfile", deleteVoiceprintProfile);
  readonly exportVoiceprintProfile = this.#operation("exportVoiceprintProfile", exportVoiceprintProfile);
  readonly importVoiceprintProfile = this.#operation("importVoiceprintProfile", importVoiceprintProfile);
  readonly setVoiceprintProfileConsent = this.#operation("setVoiceprintProfileConsent", setVoiceprintProfileConsent);
  readonly startVoiceprintProfilesStatusJob = this.#operation(
    "startVoiceprintProfilesStatusJob",
    (deps, request, options) => startJob(deps, "profile-status", request, options),
  );
  readonly getVoiceprintProfilesStatusJob = this.#operation("getVoiceprintProfilesStatusJob", (deps, request) =>
    readJob(deps, "profile-status", request, VoiceprintProfileStatusDetailsSchema),
  );
  readonly startVoiceprintProfilesRetrainingJob = this.#operation(
    "startVoiceprintProfilesRetrainingJob",
    (deps, request, options) => startJob(deps, "retrain", request, options),
  );
  readonly getVoiceprintProfilesRetrainingJob = this.#operation("getVoiceprintProfilesRetrainingJob", (deps, request) =>
    readJob(deps, "retrain", request, VoiceprintProfileRetrainingSchema),
  );

  readonly createGroup = this.#operation("createGroup", on("group", createGroup));
  readonly createWatchlist = this.#operation("createWatchlist", on("watchlist", createGroup));
  readonly listGroups = this.#operation("listGroups", on("group", listGroups));
  readonly listWatchlists = this.#operation("listWatchlists", on("watchlist", listGroups));
  readonly getGroup = this.#operation("getGroup", on("group", getGroup));
  readonly getWatchlist = this.#operation("getWatchlist", on("watchlist", getGroup));
  readonly deleteGroup = this.#operation("deleteGroup", on("group", deleteGroup));
  readonly deleteWatchlist = this.#operation("deleteWatchlist", on("watchlist", deleteGroup));
  readonly addGroupMembers = this.#operation("addGroupMembers", on("group", addGroupMembers));
  readonly addWatchlistMembers = this.#operation("addWatchlistMembers", on("watchlist", addGroupMembers));
  readonly removeGroupMembers = this.#operation("removeGroupMembers", on("group", removeGroupMembers));
  readonly removeWatchlistMembers = this.#operation("removeWatchlistMembers", on("watchlist", removeGroupMembers));

  readonly #deps: Dependencies;
  readonly #onClose: (() => Promise<void>) | undefined;
  #closing: Promise<void> | null = null;

  constructor(options: VoiceprintsProcessorOptions) {
    const { engine, store, readRecording } = options;
    this.#onClose = options.onClose;
    const clock = options.clock ?? { now: () => Date.now() };
    const models = options.models ?? oneModel(engine);
    this.#deps = {
      models,
      store,
      readRecording,
      toWav: options.toWav ?? (async (bytes) => bytes),
      configurationSets: configurationSets(options.configurationSets),
      galleries: new Galleries(models, store),
      prints: new PrintCache(store),
      groups: new GroupCache(store),
      fieldRates: new FieldRates(engine, store, clock),
      clock,
      ids: options.ids ?? newIds(clock),
      retention: withDefaults("retention", defaultRetention, options.retention),
      limits: withDefaults("limits", defaultLimits, options.limits),
      allowExport: options.allowExport ?? true,
    };
  }

  /** One request with all bytes, or a stream: the first carries the context, each may carry bytes. */
  addMediaSegment(request: OperationRequest<Methods["addMediaSegment"]>, options: OperationOptions = {}) {
    const { input, output } = methods.addMediaSegment;
    return answer(output, this.#deps.ids, options, async (watched) => {
      if (typeof request !== "object" || request === null || !(Symbol.asyncIterator in request))
        return addMediaSegment(this.#deps, parseRequest(input, request), nothing(), watched);
      const stream = request[Symbol.asyncIterator]();
      try {
        const first = await stream.next();
        if (first.done) throw badStream("the stream ended before a message with the context");
        return await addMediaSegment(this.#deps, parseRequest(input, first.value), chunksOf(stream), watched);
      } finally {
        await stream.return?.();
      }
    });
  }

  // LiveProcessor

  /** A live call: the first message starts it, the others carry its audio. */
  async *listen(
    requests: AsyncIterable<MessageInitShape<typeof ListenRequestSchema>>,
    options: LiveOptions = {},
  ): AsyncGenerator<ListenResponse> {
    const requestId = requestIdOf(options, this.#deps.ids);
    const stream = requests[Symbol.asyncIterator]();
    try {
      const { done, value } = await stream.next();
      if (done) throw badStream("the stream ended before its first message");
      const { content } = parseRequest(ListenRequestSchema, value);
      if (content.case !== "start") throw badStream(`the first message must be start, got ${content.case}`);
      for await (const response of listen(this.#deps, content.value, listenRequests(stream), options))
        yield inSinglePrecision(
          ListenResponseSchema,
          create(ListenResponseSchema, { ...response, status: okStatus(response, requestId) }),
        );
    } catch (error) {
      const failure = (options.signal?.aborted && callFailure(options.signal.reason)) || failureOf(error);
      failure.status.requestId = requestId;
      throw failure;
    } finally {
      await stream.return?.();
    }
  }

  // Not in the contract: available only in the library.

  /** AnalyzeAudio on audio that is still arriving, as an object to push samples into. */
  openLiveAnalysis(request: LiveRequest, options: OperationOptions = {}): Promise<LiveCheck<AnalyzeAudioResult>> {
    const requestId = requestIdOf(options, this.#deps.ids);
    const { rateHz: _, ...rest } = request;
    // The signal is used after this method returns: it ends the check itself.
    return attempt(options, requestId, () => {
      parseRequest(methods.analyzeAudio.input, rest, (violation) => violation.field === "audio");
      return openLiveAnalysis(this.#deps, request, options);
    });
  }

  /** Enrollment from audio that is still arriving, as an object to push samples into. */
  openLiveEnrollment(
    request: MessageInitShape<Methods["train"]["input"]> & { readonly rateHz: number },
    options: OperationOptions = {},
  ): Promise<LiveTask<LiveEnrollmentResult>> {
    const requestId = requestIdOf(options, this.#deps.ids);
    const { rateHz, ...rest } = request;
    return attempt(options, requestId, () =>
      openLiveEnrollment(this.#deps, parseRequest(methods.train.input, rest), rateHz, options),
    );
  }

  /** Everything stored about a profile (right of access). `null` if there is no such profile. */
  exportProfile(scopeId: string, profileId: string): Promise<ExportedProfile | null> {
    return exportProfile(this.#deps, scopeId, profileId);
  }

  /**
   * Deletes expired audio, audio models and jobs in all scopes. Stopping a session does it too for audio; abandoned sessions and jobs need this.
   */
  async expire(): Promise<{ media: number; models: number; jobs: number }> {
    await capTimes(this.#deps);
    return { ...(await expireAudio(this.#deps, null)), jobs: await expireJobs(this.#deps) };
  }

  /** Works on jobs, of this process and of others on the same store, until the store closes. */
  workOnJobs(): Promise<void> {
    return this.#deps.store.jobs.work((job) => runJob(this.#deps, job));
  }

  /** The sets that `configset_id` may name. */
  get configurationSets(): ReadonlyMap<string, ConfigurationSet> {
    return this.#deps.configurationSets;
  }

  /** How many trained prints of a scope each model made, including models that are not installed here. */
  printsByModel(scopeId: string): Promise<PrintsOfModel[]> {
    return printsByModel(this.#deps, scopeId);
  }

  /** Whether a profile has a print of the model that new prints of its scope use. */
  async isOfScopesModel(scopeId: string, profileId: string): Promise<boolean> {
    const profile = await this.#deps.store.profiles.get(scopeId, profileId);
    return profile !== null && isOfScopesModel(this.#deps, profile);
  }

  /** How often impostors exceeded the thresholds of 10, 1 and 0.1 % in comparisons with watchlists and groups, on all replicas. */
  fieldRates(): Promise<FieldRate[]> {
    return this.#deps.fieldRates.read();
  }

  /** Stores the counts, and drops the loaded prints from memory. A second call waits for the first. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#deps.fieldRates.keep().catch(() => {});
    this.#deps.galleries.close();
    this.#deps.prints.clear();
    this.#deps.groups.clear();
    await this.#onClose?.();
  }

  #operation<Name extends keyof Methods>(name: Name, implementation: Implementation<Name>) {
    const { input, output }: { input: Methods[Name]["input"]; output: Methods[Name]["output"] } = methods[name];
    return (request: MessageInitShape<typeof input>, options: OperationOptions = {}) =>
      answer(output, this.#deps.ids, options, (watched) =>
        implementation(this.#deps, parseRequest(input, request), watched),
      );
  }
}

const on =
  <Name extends keyof Methods>(kind: GroupKind, operation: GroupImplementation<Name>): Implementation<Name> =>
  (deps, request, options) =>
    operation(deps, kind, request, options);

const badStream = (message: string): StatusError => statusError(StatusCode.BAD_REQUEST, message);

async function* listenRequests(
  stream: AsyncIterator<MessageInitShape<typeof ListenRequestSchema>>,
): AsyncGenerator<ListenRequest> {
  for (let next = await stream.next(); !next.done; next = await stream.next())
    yield create(ListenRequestSchema, next.value);
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function* chunksOf(
  stream: AsyncIterator<MessageInitShape<Methods["addMediaSegment"]["input"]>>,
): AsyncGenerator<Uint8Array> {
  for (let next = await stream.next(); !next.done; next = await stream.next()) {
    const chunk = next.value.chunk ?? new Uint8Array();
    if (!(chunk instanceof Uint8Array))
      throw invalid("chunk", "malformed", `chunk must be a Uint8Array, got ${typeof chunk}`);
    yield chunk;
  }
}
