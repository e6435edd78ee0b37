/**
 * The easy door: voices by name, in one line each. It is built on the same operations as everything else, so what it
 * answers is what the contract answers.
 */
import {
  type DescMessage,
  type MessageInitShape,
  type MessageJsonType,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import type { RawEncoding } from "./audio/port.js";
import { readRecording } from "./audio/read-recording.js";
import { sampleEncodings } from "./audio/sample-encoding.js";
import { floatWav } from "./audio/wav-writer.js";
import { AudioValidity, Decision, TrainReason } from "./contract/gen/vendor/biosec/v1/common_pb.js";
import {
  type AnalyzeAudioResult,
  type AnalyzeAudioResultJson,
  AnalyzeAudioResultSchema,
  type AuthenticationScore,
  DecisionReason,
  EnrollReason,
  EnrollStatus,
  type FraudDetectionScore,
  type IdentifyResultJson,
  IdentifyResultSchema,
  type TrainRequestSchema,
  type TrainResult,
  type VerifyResult,
  type VerifyResultJson,
  VerifyResultSchema,
  VoiceprintProfileStatus,
} from "./contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { StatusCode } from "./contract/gen/vendor/rpc/status_pb.js";
import { fieldViolation } from "./contract/mandatory.js";
import type { OperationOptions, Operations } from "./contract/operations.js";
import { StatusError } from "./contract/status-error.js";
import type { ExportedProfile } from "./processor/export-profile.js";
import type { LiveCheck, LiveRequest, LiveState } from "./processor/live/live-check.js";
import type { LiveResult, LiveTask } from "./processor/live/live-task.js";
import { open, SealedExportError, seal } from "./sealed-export.js";
import {
  type Comparison,
  channelSelector,
  comparisonOf,
  existingProfile,
  findOrCreateProfile,
  findProfile,
  inSession,
  type Media,
  type NamedProfile,
  type Owner,
  profilesIn,
  type Recording,
  type SessionContext,
  type Settings,
  secondsOf,
  startSession,
  stopSession,
  upload,
} from "./workflow.js";

export type { Comparison, NamedProfile } from "./workflow.js";

/** A recording (WAV; compressed where it can be decoded), headerless bytes, or mono samples in -1..1. A `File`, or the `name` of bytes, is named in errors. */
export type Audio =
  | Uint8Array
  | ArrayBuffer
  | Blob
  | {
      readonly bytes: Uint8Array;
      readonly encoding: RawEncoding;
      readonly rateHz: number;
      readonly channels?: number;
      readonly name?: string;
    }
  | { readonly samples: Float32Array; readonly rateHz: number };

/** A decision by its name in the contract. */
export type DecisionName = keyof typeof Decision;
/** A reason by its name in the contract. */
export type ReasonName = keyof typeof DecisionReason;

/** What a check says, as plain JSON values. */
export interface Answer<Result> extends Comparison {
  readonly decision: DecisionName;
  readonly reason: ReasonName;
  /** 0..1000, higher is riskier. */
  readonly risk: number | null;
  /** 0..100 */
  readonly reliability: number | null;
  readonly netSpeechSeconds: number;
  /** The contract's result as it stands in JSON, with all it says. */
  readonly result: Result;
}

/** Somebody who was compared. */
export interface NamedScore extends Comparison {
  readonly name: string;
}

/** Who of several it is. */
export interface Identification extends Answer<IdentifyResultJson> {
  /** Who it is; `null` unless the decision is AUTHENTIC. */
  readonly person: string | null;
  /** Best first. */
  readonly candidates: readonly NamedScore[];
}

/** Several checks at once. */
export interface Analysis extends Answer<AnalyzeAudioResultJson> {
  readonly validity: keyof typeof AudioValidity;
  /** The most likely person and fraudster that were compared, whatever the decision. */
  readonly likeliestPerson: string | null;
  readonly likeliestFraudster: string | null;
}

/** What became of one recording. */
export interface EnrolledSegment {
  readonly enrolled: boolean;
  readonly reason: keyof typeof EnrollReason;
  readonly validity: keyof typeof AudioValidity;
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
  /** Whether the print was trained from it; `null` when no training took place. */
  readonly usedForTraining: boolean | null;
}

/** A print after recordings were added to it. */
export interface Enrollment {
  readonly trained: boolean;
  /** TRAIN_OK, or what is missing. */
  readonly reason: keyof typeof TrainReason;
  readonly status: keyof typeof VoiceprintProfileStatus;
  readonly printVersion: number;
  /** Of everything that was enrolled, not of this call alone. */
  readonly enrollStatus: keyof typeof EnrollStatus;
  /** Of the speech that the print was trained from. */
  readonly netSpeechSeconds: number;
  /** What is still to be said, and in how many recordings at least, before it can be trained; `null` where training was not tried. */
  readonly missingSpeechSeconds: number | null;
  readonly missingRecordings: number | null;
  readonly profileId: string;
  /** One for each recording given. */
  readonly segments: readonly EnrolledSegment[];
}

/** What a call is at. */
export type VoiceprintsProgress =
  | { readonly step: "segment"; readonly index: number; readonly total: number; readonly segment: EnrolledSegment }
  | { readonly step: "train" }
  | {
      readonly step: "listen";
      readonly netSpeechSeconds: number;
      readonly grossSeconds: number;
      readonly totalSeconds: number | null;
    };

/** What every call takes besides its audio. */
export interface CallChoices {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly onProgress?: (progress: VoiceprintsProgress) => void;
  /** Which of the owner's prints; empty by default. */
  readonly tag?: string;
  /** Of audio with several channels: 1 is the first, 0 (the default) mixes all. */
  readonly channel?: number;
  /** Hears all of the audio, even when a checkpoint has given a clear answer. */
  readonly ignoreCheckpoints?: boolean;
}

/** With whom audio is compared. */
export interface Target {
  /** Persons that it may be. */
  readonly persons?: readonly string[];
  /** `true`: all known fraudsters. */
  readonly fraudsters?: readonly string[] | true;
}

/** Refused (NOT_IMPLEMENTED) when the model has no network for it. */
export interface AttackChoices {
  readonly synthetic?: boolean;
  readonly playback?: boolean;
}

/** What `analyze` is asked for. */
export interface AnalysisChoices extends CallChoices, Target, AttackChoices {}

/** What `enroll` takes besides its recordings. */
export interface EnrollChoices extends CallChoices {
  /** `false` adds the recordings only; a later call trains. */
  readonly train?: boolean;
}

/** Audio that is still arriving: heard in this process, or by a box. */
export interface LiveAccess {
  listen(request: LiveRequest, options: OperationOptions): Promise<AnalysisTask>;
  listenToEnroll(request: LiveEnrollmentRequest, options: OperationOptions): Promise<EnrollmentTask>;
  /** Ends what was opened for it. */
  close(): Promise<void>;
}

/** A live check as `Listener` drives it. */
export interface AnalysisTask extends Pick<LiveCheck<AnalyzeAudioResult>, "finish" | "close"> {
  push(samples: Float32Array): Promise<Pick<LiveState<AnalyzeAudioResult>, "result">>;
}
/** A live enrollment as `EnrollmentListener` drives it. */
export type EnrollmentTask = Pick<LiveTask, "push" | "finish" | "close">;
/** Whose print a live enrollment adds to, and the rate of its audio. */
export type LiveEnrollmentRequest = MessageInitShape<typeof TrainRequestSchema> & { readonly rateHz: number };

/** The easy door: voices by name, on this machine or on a box. */
export class Voiceprints {
  constructor(
    /** The contract's operations, for everything that the easy door has no word for. */
    readonly operations: Operations,
    private readonly settings: Settings,
    /** `null`: whoever opened it listens to nothing. */
    private readonly live: LiveAccess | null = null,
  ) {}

  /** Adds recordings to a person's print and trains it when there is enough. Can be called again with more. */
  enroll(person: string, recordings: readonly Audio[], choices: EnrollChoices = {}): Promise<Enrollment> {
    return this.#enroll("person", person, recordings, choices);
  }

  /** As `enroll`, for somebody to be watched for. */
  enrollFraudster(fraudster: string, recordings: readonly Audio[], choices: EnrollChoices = {}): Promise<Enrollment> {
    return this.#enroll("fraudster", fraudster, recordings, choices);
  }

  /** Is it this person? */
  verify(person: string, audio: Audio, choices: CallChoices = {}): Promise<Answer<VerifyResultJson>> {
    return this.#inSession(async (context) => {
      const profileId = await this.#existingProfile("person", person, choices.tag);
      const { result } = await this.operations.verify(
        {
          context,
          audio: await this.#media(context, audio, choices),
          gkVoiceprintProfileId: { value: profileId },
          ...listening(choices),
        },
        operationOptions(choices),
      );
      return answerOf(VerifyResultSchema, result!, result!.authenticationScore, result!.riskEngineResult);
    });
  }

  /** Which of these persons is it, if any? Without names: of all that are enrolled. */
  identify(audio: Audio, persons?: readonly string[], choices: CallChoices = {}): Promise<Identification> {
    return this.#inSession(async (context) => {
      let media: Media | null = null;
      const { profiles, result } = await unlessErased(persons === undefined, async () => {
        const profiles = await this.#profiles("person", persons, choices.tag);
        media ??= await this.#media(context, audio, choices);
        const uniqueIds = profiles.map(({ id }) => ({ value: id }));
        const { result } = await this.operations.identify(
          {
            context,
            audio: media,
            target: { case: "gkVoiceprintProfileIds", value: { uniqueIds } },
            ...listening(choices),
          },
          operationOptions(choices),
        );
        return { profiles, result };
      });
      const names = new Map(profiles.map(({ id, name }) => [id, name]));
      const candidates = result!.voiceprintResults.flatMap(({ gkVoiceprintProfileId, score }) => {
        const name = names.get(gkVoiceprintProfileId?.value ?? "");
        return name === undefined ? [] : [{ name, ...comparisonOf(score.value) }];
      });
      const answer = answerOf(IdentifyResultSchema, result!, result!.authenticationScore, result!.riskEngineResult);
      const person = answer.decision === "AUTHENTIC" ? (candidates[0]?.name ?? null) : null;
      return { ...answer, person, candidates };
    });
  }

  /** Is it a known fraudster? FRAUD, NO_RISK_DETECTED, or why neither. Without names: any that is enrolled. */
  watch(audio: Audio, fraudsters?: readonly string[], choices: CallChoices = {}): Promise<Analysis> {
    return this.analyze(audio, { ...choices, fraudsters: fraudsters ?? true });
  }

  /** Several checks at once, or, with none asked for, what the audio is like. */
  analyze(audio: Audio, choices: AnalysisChoices = {}): Promise<Analysis> {
    return this.#inSession(async (context) => {
      let media: Media | null = null;
      return unlessErased(choices.fraudsters === true, async () => {
        const targets = await this.#targets(choices);
        media ??= await this.#media(context, audio, choices);
        const { result } = await this.operations.analyzeAudio(
          { context, audio: media, ...targets.request, ...listening(choices), ...attacks(choices) },
          operationOptions(choices),
        );
        return analysisOf(result!, targets.names);
      });
    });
  }

  /** Listens to audio that is still arriving: `push` chunks until `answer` is there, or `finish`. */
  async listen(target: Target & AttackChoices, rateHz: number, choices: CallChoices = {}): Promise<Listener> {
    const targets = await this.#targets({ ...choices, ...target });
    const session = await startSession(this.operations, this.settings);
    try {
      const ignoreCheckpoints = choices.ignoreCheckpoints ?? false;
      const check = await this.#liveAccess().listen(
        { context: session, rateHz, ignoreCheckpoints, ...targets.request, ...attacks(target) },
        operationOptions(choices),
      );
      return new Listener(
        check,
        rateHz,
        (result) => analysisOf(result, targets.names),
        () => stopSession(this.operations, session),
      );
    } catch (error) {
      await stopSession(this.operations, session);
      throw error;
    }
  }

  /** Enrolls from audio that is still arriving: `push` chunks until `enrollment` is there, or `finish`. */
  async listenToEnroll(person: string, rateHz: number, choices: CallChoices = {}): Promise<EnrollmentListener> {
    const session = await startSession(this.operations, this.settings);
    try {
      const owner = { kind: "person", name: person, tag: choices.tag ?? "" } as const;
      const gkVoiceprintProfileId = { value: await findOrCreateProfile(this.operations, this.settings.scope, owner) };
      const request = { context: session, gkVoiceprintProfileId, rateHz };
      const task = await this.#liveAccess().listenToEnroll(request, operationOptions(choices));
      return new EnrollmentListener(task, rateHz, () => stopSession(this.operations, session));
    } catch (error) {
      await stopSession(this.operations, session);
      throw error;
    }
  }

  /** All that is kept of a person, for them to see: one entry for each of their prints. */
  export(person: string): Promise<ExportedProfile[]>;
  /** The same for another box or device, sealed with a passphrase: a text that `import` takes there. */
  export(person: string, choices: { readonly passphrase: string }): Promise<string>;
  export(person: string, choices?: { readonly passphrase: string }): Promise<ExportedProfile[] | string> {
    return this.#export("person", person, choices?.passphrase);
  }

  /** As `export`. */
  exportFraudster(fraudster: string): Promise<ExportedProfile[]>;
  /** As `export` with a passphrase. */
  exportFraudster(fraudster: string, choices: { readonly passphrase: string }): Promise<string>;
  exportFraudster(fraudster: string, choices?: { readonly passphrase: string }): Promise<ExportedProfile[] | string> {
    return this.#export("fraudster", fraudster, choices?.passphrase);
  }

  /**
   * Takes in what `export` sealed elsewhere: prints of the same model revision, of somebody who has none here. All of them, or none.
   * `name` is whose they are here, where it is not the name they were exported with.
   */
  async import(
    sealed: string | Uint8Array | Blob,
    choices: { readonly passphrase: string; readonly name?: string },
  ): Promise<NamedProfile[]> {
    if (choices.name !== undefined) assertName(choices.name);
    const exported = await asFieldViolation(async () => open(await textOf(sealed), choices.passphrase));
    const profiles = Array.isArray(exported) ? (exported as ExportedProfile[]) : [];
    if (profiles.length === 0) throw unfit("sealed", "empty", "the sealed export holds no voiceprint");
    const context = { gkScopeId: { value: this.settings.scope } };
    const imported: NamedProfile[] = [];
    try {
      for (const profile of profiles) {
        const { gkVoiceprintProfileId } = await this.operations.importVoiceprintProfile({
          context,
          profile: new TextEncoder().encode(JSON.stringify(profile)),
          ownerId: choices.name ?? "",
        });
        const name = choices.name ?? profile.owner.externalId;
        imported.push({ id: gkVoiceprintProfileId!.value, name, tag: profile.tag });
      }
      return imported;
    } catch (error) {
      for (const { id } of imported)
        await this.operations.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: { value: id } });
      throw error;
    }
  }

  /** Erases a person: prints, recordings, keys; with a tag only that print. False when there was nothing. */
  erase(person: string, choices: { readonly tag?: string } = {}): Promise<boolean> {
    return this.#erase("person", person, choices.tag);
  }

  /** As `erase`. */
  eraseFraudster(fraudster: string, choices: { readonly tag?: string } = {}): Promise<boolean> {
    return this.#erase("fraudster", fraudster, choices.tag);
  }

  /** The names of all persons that have a profile. */
  people(): Promise<string[]> {
    return this.#names("person");
  }

  /** The names of all fraudsters that have a profile. */
  fraudsters(): Promise<string[]> {
    return this.#names("fraudster");
  }

  /** Closes what was opened for it; on a box there is nothing to close. */
  async close(): Promise<void> {
    await this.live?.close();
  }

  async #enroll(
    kind: Owner["kind"],
    name: string,
    recordings: readonly Audio[],
    choices: EnrollChoices,
  ): Promise<Enrollment> {
    if (!Array.isArray(recordings) || recordings.length === 0)
      throw unfit("recordings", "empty", "recordings must be a list of at least one recording");
    assertName(name);
    return this.#inSession(async (context) => {
      // All are read before anything is kept: a call that is refused leaves nobody, and no half of an enrollment, behind.
      const media: Media[] = [];
      for (const recording of recordings) media.push(await this.#media(context, recording, choices));
      let profileId: string | null = null;
      const profile = async () => {
        profileId ??= await findOrCreateProfile(this.operations, this.settings.scope, {
          kind,
          name,
          tag: choices.tag ?? "",
        });
        return profileId;
      };
      const heard: HeardSegment[] = [];
      for (const [index, input] of media.entries()) {
        const one = await this.#enrollSegment(context, profile, input, choices);
        heard.push(one);
        choices.onProgress?.({ step: "segment", index, total: recordings.length, segment: one.segment });
      }
      const gkVoiceprintProfileId = { value: await profile() };
      const enrollStatus = heard.at(-1)!.enrollStatus;
      const enrolled = { profileId: gkVoiceprintProfileId.value, enrollStatus };
      if (choices.train === false) return { ...UNTRAINED, ...enrolled, segments: heard.map(({ segment }) => segment) };
      choices.onProgress?.({ step: "train" });
      const { result } = await this.operations.train({ context, gkVoiceprintProfileId }, callOptions(choices));
      const used = new Map(
        result!.enrollmentSegmentsDetails.map((one) => [one.gkProcessedAudioId?.value, one.usedForTrain ?? false]),
      );
      return {
        ...enrolled,
        trained: result!.reason === TrainReason.TRAIN_OK,
        reason: TrainReason[result!.reason] as keyof typeof TrainReason,
        status: VoiceprintProfileStatus[result!.status] as keyof typeof VoiceprintProfileStatus,
        printVersion: result!.voiceprintDetails?.printVersion ?? 0,
        netSpeechSeconds: secondsOf(result!.totalNetAudio),
        ...missingOf(result!),
        segments: heard.map(({ segment, id }) => ({ ...segment, usedForTraining: used.get(id) ?? null })),
      };
    });
  }

  async #enrollSegment(
    context: SessionContext,
    profile: () => Promise<string>,
    input: Media,
    choices: CallChoices,
  ): Promise<HeardSegment> {
    const processed = await this.operations.processAudio(
      { context, input, isForEnrollment: true, ...channelSelector(choices.channel) },
      operationOptions(choices),
    );
    const { gkProcessedAudioId, validity, audioDetails } = processed.result!;
    const measured = {
      validity: AudioValidity[validity] as keyof typeof AudioValidity,
      netSpeechSeconds: secondsOf(audioDetails?.netAudio),
      snrDb: audioDetails?.snrDb ?? null,
      usedForTraining: null,
    };
    if (!gkProcessedAudioId) {
      const segment = { ...measured, enrolled: false, reason: "INTERNAL_ERROR" } as const;
      return { segment, id: undefined, enrollStatus: "UNSPECIFIED" };
    }
    const { result } = await this.operations.enroll(
      { context, gkVoiceprintProfileId: { value: await profile() }, gkProcessedAudioId },
      callOptions(choices),
    );
    const full = result!.enrollStatus === EnrollStatus.FULL && result!.enrolled !== true;
    const reason = full ? "UNSPECIFIED" : (EnrollReason[result!.reason] as keyof typeof EnrollReason);
    return {
      segment: { ...measured, enrolled: result!.enrolled === true, reason },
      id: gkProcessedAudioId.value,
      enrollStatus: EnrollStatus[result!.enrollStatus] as keyof typeof EnrollStatus,
    };
  }

  /** Every call is a session of its own, so that its audio goes when it has been answered. */
  #inSession<T>(work: (context: SessionContext) => Promise<T>): Promise<T> {
    return inSession(this.operations, this.settings, work);
  }

  async #media(context: SessionContext, audio: Audio, choices: CallChoices): Promise<Media> {
    return upload(this.operations, context, await recordingOf(audio), callOptions(choices));
  }

  /** `refusal`: what to say where the operations are those of a server. */
  #liveAccess(): LiveAccess {
    if (this.live) return this.live;
    const message = "these voices were opened without live audio: use openVoiceprints or connectVoiceprints";
    throw new StatusError({ statusCode: StatusCode.NOT_IMPLEMENTED, message });
  }

  async #targets({ persons, fraudsters, tag }: Target & CallChoices) {
    const watched =
      fraudsters && (await this.#profiles("fraudster", fraudsters === true ? undefined : fraudsters, tag));
    if (watched?.length === 0)
      throw new StatusError({
        statusCode: StatusCode.NOT_FOUND,
        message: "no fraudster is enrolled; enroll one before watching",
      });
    const found = [...(persons ? await this.#profiles("person", persons, tag) : []), ...(watched ?? [])];
    const names = new Map(found.map(({ id, name }) => [id, name]));
    const uniqueIds = found.map(({ id }) => ({ value: id }));
    return { names, request: uniqueIds.length > 0 ? { gkVoiceprintProfileIds: { uniqueIds } } : {} };
  }

  async #profiles(
    kind: Owner["kind"],
    names: readonly string[] | undefined,
    tag: string | undefined,
  ): Promise<Pick<NamedProfile, "id" | "name">[]> {
    if (names === undefined) {
      const all = await profilesIn(this.operations, this.settings.scope, kind);
      return all.filter((profile) => tag === undefined || profile.tag === tag);
    }
    return each(names, async (name) => ({ id: await this.#existingProfile(kind, name, tag), name }));
  }

  async #names(kind: Owner["kind"]): Promise<string[]> {
    const profiles = await profilesIn(this.operations, this.settings.scope, kind);
    return [...new Set(profiles.map(({ name }) => name))].sort();
  }

  async #export(
    kind: Owner["kind"],
    name: string,
    passphrase: string | undefined,
  ): Promise<ExportedProfile[] | string> {
    assertName(name);
    const { scope } = this.settings;
    const context = { gkScopeId: { value: scope } };
    const profiles = await each(await profilesIn(this.operations, scope, kind, name), async ({ id }) => {
      const answer = await unlessGone(
        this.operations.exportVoiceprintProfile({ context, gkVoiceprintProfileId: { value: id } }),
      );
      return answer && (JSON.parse(new TextDecoder().decode(answer.profile)) as ExportedProfile);
    });
    if (passphrase === undefined) return profiles;
    if (profiles.length === 0)
      throw new StatusError({ statusCode: StatusCode.NOT_FOUND, message: `the ${kind} "${name}" has no voiceprint` });
    return asFieldViolation(() => seal(profiles, passphrase));
  }

  #existingProfile(kind: Owner["kind"], name: string, tag = ""): Promise<string> {
    assertName(name);
    return existingProfile(this.operations, this.settings.scope, { kind, name, tag });
  }

  async #erase(kind: Owner["kind"], name: string, tag: string | undefined): Promise<boolean> {
    assertName(name);
    const { scope } = this.settings;
    const ids =
      tag === undefined
        ? await profilesIn(this.operations, scope, kind, name)
        : [{ id: await findProfile(this.operations, scope, { kind, name, tag }) }];
    const erased = await each(ids, async ({ id }) => {
      if (id === null) return null;
      const context = { gkScopeId: { value: scope } };
      return unlessGone(this.operations.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: { value: id } }));
    });
    return erased.length > 0;
  }
}

/** One after the other, without those that gave nothing. */
async function each<T, R>(all: readonly T[], work: (one: T) => Promise<R | null>): Promise<R[]> {
  const done: R[] = [];
  for (const one of all) {
    const result = await work(one);
    if (result !== null) done.push(result);
  }
  return done;
}

/** `null` where somebody erased it at the same moment: the others are still to come. */
async function unlessGone<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StatusError && error.code === StatusCode.NOT_FOUND) return null;
    throw error;
  }
}

/** What cannot be sealed or opened is refused as everything else is. */
async function asFieldViolation<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SealedExportError) throw unfit(error.field, "unusable", error.message);
    throw error;
  }
}

function textOf(sealed: string | Uint8Array | Blob): string | Promise<string> {
  if (typeof sealed === "string") return sealed;
  if (sealed instanceof Uint8Array) return new TextDecoder().decode(sealed);
  if (sealed instanceof Blob) return sealed.text();
  throw unfit("sealed", "malformed", `a sealed export must be a text, a Uint8Array or a Blob, got ${typeof sealed}`);
}

/** A segment as it was enrolled, with the id of its processed audio. */
interface HeardSegment {
  readonly segment: EnrolledSegment;
  readonly id: string | undefined;
  readonly enrollStatus: keyof typeof EnrollStatus;
}

const UNTRAINED = {
  trained: false,
  reason: "UNSPECIFIED",
  status: "UNSPECIFIED",
  printVersion: 0,
  netSpeechSeconds: 0,
  missingSpeechSeconds: null,
  missingRecordings: null,
} as const;

/** Zero where it was trained. */
function missingOf({
  reason,
  totalNetAudio,
  minNetAudioRequired,
  totalValidSegments,
  minSegmentsRequired,
}: TrainResult) {
  if (reason === TrainReason.TRAIN_OK) return { missingSpeechSeconds: 0, missingRecordings: 0 };
  return {
    missingSpeechSeconds: Math.max(0, secondsOf(minNetAudioRequired) - secondsOf(totalNetAudio)),
    missingRecordings: Math.max(0, (minSegmentsRequired ?? 0) - (totalValidSegments ?? 0)),
  };
}

/** Mono audio of a live check: samples in -1..1, 16-bit samples, or bytes in an encoding. */
export type AudioChunk = Float32Array | Int16Array | { readonly bytes: Uint8Array; readonly encoding: RawEncoding };

function samplesOfChunk(chunk: AudioChunk, rateHz: number): Float32Array {
  if (chunk instanceof Float32Array) return chunk;
  if (chunk instanceof Int16Array) return Float32Array.from(chunk, (sample) => sample / 32768);
  if (typeof chunk === "object" && chunk !== null && "bytes" in chunk && chunk.bytes instanceof Uint8Array) {
    const { bytes, encoding } = chunk;
    if (bytes.length === 0) return new Float32Array();
    const size = sampleEncodings[encoding]?.bytesPerSample ?? 1;
    if (bytes.length % size !== 0)
      throw unfit(
        "audio",
        "not_audio",
        `samples of ${encoding} have ${size} bytes; ${bytes.length} bytes end inside one`,
      );
    try {
      const recording = readRecording(bytes, { encoding, rateHz, channels: 1 });
      return Float32Array.from([...recording.read(1)].flatMap((part) => [...part]));
    } catch (error) {
      throw unfit("audio", "not_audio", error instanceof Error ? error.message : "the bytes are not audio");
    }
  }
  const given = chunk === null ? "null" : typeof chunk === "object" ? (chunk as object).constructor.name : typeof chunk;
  throw unfit(
    "audio",
    "not_audio",
    `a chunk must be a Float32Array, an Int16Array or { bytes: Uint8Array, encoding }, got ${given}`,
  );
}

/** The session of a live task: it stops once, with the task. */
class LiveSession {
  #open = true;

  constructor(private readonly onEnd: () => Promise<void>) {}

  /** A task that failed has ended, and its session with it. */
  async orStop<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    await this.onEnd();
  }
}

/** A live check and its session. */
export class Listener {
  #answer: Analysis | null = null;
  readonly #session: LiveSession;

  constructor(
    private readonly check: AnalysisTask,
    private readonly rateHz: number,
    private readonly analysisOf: (result: AnalyzeAudioResult) => Analysis,
    onEnd: () => Promise<void>,
  ) {
    this.#session = new LiveSession(onEnd);
  }

  /** Set as soon as a checkpoint gave a clear answer. */
  get answer(): Analysis | null {
    return this.#answer;
  }

  /** A chunk of the audio; a `Float32Array` is handed over. Resolves to the answer when there is one. */
  async push(chunk: AudioChunk): Promise<Analysis | null> {
    // A wrong chunk is refused while the check goes on.
    const samples = samplesOfChunk(chunk, this.rateHz);
    if (this.#answer) return this.#answer;
    const { result } = await this.#session.orStop(this.check.push(samples));
    return result && this.#end(result);
  }

  /** Pushes chunks until there is an answer or no more audio. */
  async follow(chunks: AsyncIterable<AudioChunk> | Iterable<AudioChunk>): Promise<Analysis> {
    for await (const chunk of chunks) {
      const answer = await this.push(chunk);
      if (answer) return answer;
    }
    return this.finish();
  }

  /** No more audio: the answer on what was heard. */
  async finish(): Promise<Analysis> {
    return this.#answer ?? this.#end(await this.#session.orStop(this.check.finish()));
  }

  /** Ends without an answer. */
  async close(): Promise<void> {
    await this.check.close();
    await this.#session.stop();
  }

  async #end(result: AnalyzeAudioResult): Promise<Analysis> {
    this.#answer ??= this.analysisOf(result);
    await this.#session.stop();
    return this.#answer;
  }
}

/** How far a live enrollment is. */
export interface LiveEnrollmentState {
  readonly status: keyof typeof EnrollStatus;
  /** Stretches of this call that the print now has. */
  readonly enrolledSegments: number;
  readonly trained: boolean;
}

/** A live enrollment and its session. */
export class EnrollmentListener {
  #enrollment: LiveEnrollmentState | null = null;
  readonly #session: LiveSession;

  constructor(
    private readonly task: EnrollmentTask,
    private readonly rateHz: number,
    onEnd: () => Promise<void>,
  ) {
    this.#session = new LiveSession(onEnd);
  }

  /** Set as soon as training is at its best: no more audio is needed. */
  get enrollment(): LiveEnrollmentState | null {
    return this.#enrollment;
  }

  /** A chunk of the audio. Resolves to the enrollment when no more is needed. */
  async push(chunk: AudioChunk): Promise<LiveEnrollmentState | null> {
    const samples = samplesOfChunk(chunk, this.rateHz);
    if (this.#enrollment) return this.#enrollment;
    const result = await this.#session.orStop(this.task.push(samples));
    return result && this.#end(result);
  }

  /** No more audio: what was enrolled. */
  async finish(): Promise<LiveEnrollmentState> {
    return this.#enrollment ?? this.#end(await this.#session.orStop(this.task.finish()));
  }

  /** Ends here; what was enrolled stays. */
  async close(): Promise<void> {
    await this.task.close();
    await this.#session.stop();
  }

  async #end(result: LiveResult): Promise<LiveEnrollmentState> {
    if (result.case !== "enroll") throw new TypeError(`expected the result of an enrollment, got ${result.case}`);
    const { enrollStatus = EnrollStatus.UNSPECIFIED, enrolledSegments = 0, training } = result.value;
    const trained = training?.reason === TrainReason.TRAIN_OK;
    this.#enrollment = { status: EnrollStatus[enrollStatus] as keyof typeof EnrollStatus, enrolledSegments, trained };
    await this.#session.stop();
    return this.#enrollment;
  }
}

/**
 * Who is compared because all are may be erased before it comes to it: that is no fault of the caller's, and the work is
 * done again without them. Who was named and is gone is said to be.
 */
async function unlessErased<T>(all: boolean, work: () => Promise<T>): Promise<T> {
  for (let triesLeft = 8; ; triesLeft--) {
    try {
      return await work();
    } catch (error) {
      const gone =
        error instanceof StatusError &&
        error.code === StatusCode.NOT_FOUND &&
        error.status.fieldViolations.some(({ field }) => field.startsWith("gk_voiceprint_profile_ids"));
      if (!all || !gone || triesLeft === 0) throw error;
    }
  }
}

const unfit = (field: string, violation: string, message: string): StatusError =>
  new StatusError({
    statusCode: StatusCode.INVALID_REQUEST,
    message,
    fieldViolations: [fieldViolation(field, violation, message)],
  });

function assertName(name: string): void {
  if (typeof name !== "string" || name === "")
    throw unfit("name", "malformed", "name must be a string that is not empty");
}

const callOptions = ({ signal, timeoutMs }: CallChoices): OperationOptions => ({
  ...(signal && { signal }),
  ...(timeoutMs !== undefined && { timeoutMs }),
});

const operationOptions = (choices: CallChoices): OperationOptions => ({
  ...callOptions(choices),
  onProgress: (progress) => choices.onProgress?.({ step: "listen", ...progress }),
});

const listening = ({ channel, ignoreCheckpoints }: CallChoices) => ({
  ignoreCheckpoints: ignoreCheckpoints ?? false,
  ...channelSelector(channel),
});

const attacks = ({ synthetic, playback }: AttackChoices) => ({
  ...(synthetic && { syntheticSpeechDetectionParameters: {} }),
  ...(playback && { channelPlaybackDetectionParameters: {} }),
});

function answerOf<Schema extends DescMessage>(
  schema: Schema,
  result: MessageShape<Schema> & Pick<VerifyResult, "decision" | "reason" | "audioDetails">,
  score: AuthenticationScore | FraudDetectionScore | undefined,
  risk: VerifyResult["riskEngineResult"],
): Answer<MessageJsonType<Schema>> {
  return {
    decision: Decision[result.decision] as DecisionName,
    reason: DecisionReason[result.reason] as ReasonName,
    ...comparisonOf(score),
    risk: risk?.risk ?? null,
    reliability: risk?.reliability ?? null,
    netSpeechSeconds: secondsOf(result.audioDetails?.netAudio),
    result: toJson(schema, result) as MessageJsonType<Schema>,
  };
}

function analysisOf(result: AnalyzeAudioResult, names: ReadonlyMap<string, string>): Analysis {
  const { authenticationResult: person, fraudDetectionResult: fraudster } = result;
  // Of the part that the decision rests on.
  const isFraud = fraudster?.decision === Decision.FRAUD;
  const score = (isFraud ? undefined : person?.authenticationScore) ?? fraudster?.fraudDetectionScore;
  const nameOf = (id: string | undefined) => (id === undefined ? null : (names.get(id) ?? null));
  return {
    ...answerOf(AnalyzeAudioResultSchema, result, score, result.riskEngineGlobalResult),
    validity: AudioValidity[result.validity] as keyof typeof AudioValidity,
    likeliestPerson: nameOf(person?.topPersonVoiceprintDetails?.gkVoiceprintProfileId?.value),
    likeliestFraudster: nameOf(fraudster?.topFraudsterVoiceprintDetails?.gkVoiceprintProfileId?.value),
  };
}

async function recordingOf(audio: Audio): Promise<Recording> {
  if (audio instanceof Uint8Array) return { chunk: audio };
  if (audio instanceof ArrayBuffer) return { chunk: new Uint8Array(audio) };
  if (audio instanceof Blob) {
    const chunk = new Uint8Array(await audio.arrayBuffer());
    return audio instanceof File ? { chunk, name: audio.name } : { chunk };
  }
  if (typeof audio === "object" && audio !== null) {
    if ("samples" in audio && audio.samples instanceof Float32Array)
      return { chunk: floatWav([audio.samples], audio.rateHz) };
    if ("bytes" in audio && audio.bytes instanceof Uint8Array) {
      const { bytes, encoding, rateHz, channels = 1, name } = audio;
      return { chunk: bytes, encoding, rate: rateHz, channels, ...(name !== undefined && { name }) };
    }
  }
  throw unfit(
    "audio",
    "not_audio",
    "audio must be a recording as Uint8Array, ArrayBuffer or Blob (read a file first), { samples: Float32Array, rateHz }, or { bytes, encoding, rateHz }",
  );
}
