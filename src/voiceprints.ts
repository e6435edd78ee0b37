/**
 * The easy door: enroll, verify and identify by name, with one call each. It uses the operations of the contract, so its
 * answers are those of the contract.
 */
import { callLimit } from "./contract/call-limit.js";
import { secondsOf } from "./contract/duration.js";
import {
  type AnalyzeAudioResult,
  AudioValidity,
  EnrollReason,
  EnrollStatus,
  IdentifyResultSchema,
  StatusCode,
  StatusError,
  statusError,
  TrainReason,
  type TrainResult,
  type VerifyResultJson,
  VerifyResultSchema,
  VoiceprintProfileStatus,
} from "./contract/index.js";
import { limitsFault } from "./contract/operation-options.js";
import type { OperationOptions, Operations, Progress } from "./contract/operations.js";
import { type NamesOf, optionsFault } from "./contract/options-fault.js";
import { invalid } from "./contract/refusal.js";
import { type Analysis, type Answer, analysisOf, answerOf, type Identification } from "./easy-door/answers.js";
import { type Audio, assertRate, recordingOf } from "./easy-door/audio.js";
import { EnrollmentListener, enrollmentOf, Listener, type LiveAccess } from "./easy-door/listener.js";
import type { ExportedProfile } from "./processor/export-profile.js";
import { open, SealedExportError, seal } from "./sealed-export.js";
import { typeName } from "./type-name.js";
import {
  abandonSession,
  candidatesIn,
  channelSelector,
  comparisonOf,
  existingProfile,
  findOrCreateProfile,
  findProfile,
  inSession,
  type Media,
  type NamedProfile,
  type Owner,
  orCleanUp,
  profilesIn,
  profilesNamed,
  type SessionContext,
  type Settings,
  startSession,
  stopSession,
  upload,
} from "./workflow.js";

export type { RawEncoding } from "./audio/port.js";
export type { Analysis, Answer, DecisionName, Identification, NamedScore, ReasonName } from "./easy-door/answers.js";
export type { Audio, AudioChunk } from "./easy-door/audio.js";
export type {
  AnalysisTask,
  EnrollmentListener,
  EnrollmentTask,
  Listener,
  ListenerTask,
  LiveAccess,
  LiveEnrollmentRequest,
  LiveEnrollmentState,
  LiveListener,
} from "./easy-door/listener.js";
export type { ExportedProfile, ExportedSegment, ExportedTemplate } from "./processor/export-profile.js";
export type { LiveRequest } from "./processor/live/live-check.js";
export type { Comparison, NamedProfile } from "./workflow.js";

/** The result for one recording. */
export interface EnrolledSegment {
  readonly enrolled: boolean;
  readonly reason: keyof typeof EnrollReason;
  readonly validity: keyof typeof AudioValidity;
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
  /** Whether the template was made from it; `null` when no training took place. */
  readonly usedForTraining: boolean | null;
}

/** A print after recordings were added to it. */
export interface Enrollment {
  readonly trained: boolean;
  /** TRAIN_OK, or why the print was not trained. */
  readonly reason: keyof typeof TrainReason;
  readonly status: keyof typeof VoiceprintProfileStatus;
  readonly printVersion: number;
  /** Status of the whole print, not only of this call. */
  readonly enrollStatus: keyof typeof EnrollStatus;
  /** Net speech that the print was trained from. */
  readonly netSpeechSeconds: number;
  /** How much more speech, and at least how many more recordings, training needs; `null` if training was not tried. */
  readonly missingSpeechSeconds: number | null;
  readonly missingRecordings: number | null;
  readonly profileId: string;
  /** One for each recording. */
  readonly segments: readonly EnrolledSegment[];
}

/** Progress of a call. */
export type VoiceprintsProgress =
  | { readonly step: "segment"; readonly index: number; readonly total: number; readonly segment: EnrolledSegment }
  | { readonly step: "train" }
  | ({ readonly step: "listen" } & Progress);

/** Options of every call. */
export interface CallChoices {
  /** Ends the call, which rejects with CANCELLED; a listener ends with it too. */
  readonly signal?: AbortSignal;
  /** Time limit of the whole call, which then rejects with DEADLINE_EXCEEDED; for a listener, that of opening it. No limit by default. */
  readonly timeoutMs?: number;
  /** A box reports only the steps `segment` and `train`. What it throws ends the call, which rejects with it. */
  readonly onProgress?: (progress: VoiceprintsProgress) => void;
  /** Which of the owner's prints; empty by default. */
  readonly tag?: string;
  /** For audio with several channels: 1 is the first, 0 (the default) mixes all. */
  readonly channel?: number;
  /** Processes all audio, even after a checkpoint has given a clear answer. */
  readonly ignoreCheckpoints?: boolean;
}

/** Who the audio is compared with. */
export interface Target {
  /** Names of persons. */
  readonly persons?: readonly string[];
  /** Names of fraudsters, or `true` for all. */
  readonly fraudsters?: readonly string[] | true;
}

/** Fails with NOT_IMPLEMENTED if the model has no network for the attack. */
export interface AttackChoices {
  readonly synthetic?: boolean;
  readonly playback?: boolean;
}

/** Options of `analyze`. */
export interface AnalysisChoices extends CallChoices, Target, AttackChoices {}

/** Options of `enroll`. */
export interface EnrollChoices extends CallChoices {
  /** `false` only adds the recordings; a later call can train. */
  readonly train?: boolean;
}

/** The easy door: voices by name, on this machine or on a box. */
export class Voiceprints {
  constructor(
    /** The contract's operations, for everything that the methods here do not cover. */
    readonly operations: Operations,
    private readonly settings: Settings,
    /** `null` if live audio is not available. */
    private readonly live: LiveAccess | null = null,
  ) {}

  /** Adds recordings to a person's print and trains it if they are enough. Call it again to add more. */
  enroll(person: string, recordings: readonly Audio[], choices: EnrollChoices = {}): Promise<Enrollment> {
    return this.#enroll("person", person, recordings, choices);
  }

  /** As `enroll`, for a fraudster. */
  enrollFraudster(fraudster: string, recordings: readonly Audio[], choices: EnrollChoices = {}): Promise<Enrollment> {
    return this.#enroll("fraudster", fraudster, recordings, choices);
  }

  /** Is it this person? */
  verify(person: string, audio: Audio, choices: CallChoices = {}): Promise<Answer<VerifyResultJson>> {
    return this.#inSession(choices, callChoices, async (context, choices) => {
      const gkVoiceprintProfileId = { value: await this.#existingProfile("person", person, choices) };
      const media = await this.#media(context, audio, choices);
      const request = { context, audio: media, gkVoiceprintProfileId, ...listening(choices) };
      const { result, status } = await this.operations.verify(request, operationOptions(choices));
      const { authenticationScore, riskEngineResult } = result!;
      return answerOf(VerifyResultSchema, result!, authenticationScore, riskEngineResult, status?.message);
    });
  }

  /** Which of these persons is it, if any? Without names: of all enrolled persons. */
  identify(audio: Audio, persons?: readonly string[], choices: CallChoices = {}): Promise<Identification> {
    return this.#inSession(choices, callChoices, async (context, choices) => {
      let media: Media | null = null;
      const { profiles, result, status } = await unlessErased(persons === undefined, async () => {
        const profiles = await this.#profiles("person", persons, choices);
        if (persons === undefined && profiles.length === 0)
          throw statusError(
            StatusCode.NOT_FOUND,
            `nobody is enrolled${choices.tag ? ` with the tag "${choices.tag}"` : ""}; enroll somebody before identifying`,
          );
        media ??= await this.#media(context, audio, choices);
        const uniqueIds = profiles.map(({ id }) => ({ value: id }));
        const target = { case: "gkVoiceprintProfileIds", value: { uniqueIds } } as const;
        const request = { context, audio: media, target, ...listening(choices) };
        return { profiles, ...(await this.operations.identify(request, operationOptions(choices))) };
      });
      const names = new Map(profiles.map(({ id, name }) => [id, name]));
      const candidates = result!.voiceprintResults.flatMap(({ gkVoiceprintProfileId, score }) => {
        const name = names.get(gkVoiceprintProfileId?.value ?? "");
        return name === undefined ? [] : [{ name, ...comparisonOf(score.value) }];
      });
      const { authenticationScore, riskEngineResult } = result!;
      const answer = answerOf(IdentifyResultSchema, result!, authenticationScore, riskEngineResult, status?.message);
      const person = answer.decision === "AUTHENTIC" ? (candidates[0]?.name ?? null) : null;
      return { ...answer, person, candidates };
    });
  }

  /** Is it a known fraudster? FRAUD, NO_RISK_DETECTED, or the reason for neither. Without names: any enrolled fraudster. */
  watch(audio: Audio, fraudsters?: readonly string[], choices: CallChoices = {}): Promise<Analysis> {
    return this.#analyze(audio, choices, callChoices, { fraudsters: fraudsters ?? true });
  }

  /** Runs several checks at once. With none selected, it only measures the quality of the audio. */
  analyze(audio: Audio, choices: AnalysisChoices = {}): Promise<Analysis> {
    return this.#analyze(audio, choices, analysisChoices);
  }

  /** Checks audio that is still arriving: `push` chunks until `answer` is set, or call `finish`. */
  async listen(target: Target & AttackChoices, rateHz: number, choices: CallChoices = {}): Promise<Listener> {
    if (typeof target !== "object" || target === null)
      throw invalid("target", "missing", `listen needs a target to check, such as { persons: ["ada"] }, got ${target}`);
    const fault = optionsFault(target, targetChoices, "target");
    if (fault !== null) throw invalid("target", "malformed", fault);
    const live = this.#liveAccess();
    assertRate(rateHz, live.rates);
    assertChoices(choices, callChoices);
    return this.#inLiveSession(choices, async (context, choices, end) => {
      const targets = await this.#targets(target, choices);
      const ignoreCheckpoints = choices.ignoreCheckpoints ?? false;
      const request = { context, rateHz, ignoreCheckpoints, ...targets.request, ...attacks(target) };
      const check = await live.listen(request, operationOptions(choices));
      const outcomeOf = (result: AnalyzeAudioResult) => analysisOf(result, targets.names, check.notCompared);
      return new Listener(check, rateHz, outcomeOf, end, choices.signal);
    });
  }

  /** Enrolls from audio that is still arriving: `push` chunks until `enrollment` is set, or call `finish`. */
  async listenToEnroll(person: string, rateHz: number, choices: CallChoices = {}): Promise<EnrollmentListener> {
    const live = this.#liveAccess();
    // Before a profile is created.
    assertRate(rateHz, live.rates);
    assertChoices(choices, callChoices);
    return this.#inLiveSession(choices, async (context, choices, end) => {
      const owner = { kind: "person", name: person, tag: choices.tag ?? "" } as const;
      const { scope } = this.settings;
      const gkVoiceprintProfileId = {
        value: await findOrCreateProfile(this.operations, scope, owner, callOptions(choices)),
      };
      const request = { context, gkVoiceprintProfileId, rateHz };
      const task = await live.listenToEnroll(request, operationOptions(choices));
      return new EnrollmentListener(task, rateHz, enrollmentOf, end, choices.signal);
    });
  }

  /** Everything stored about a person, for them to see: one entry for each print. */
  export(person: string): Promise<ExportedProfile[]>;
  /** The same sealed with a passphrase, as a string that `import` reads on another box or device. */
  export(person: string, choices: { readonly passphrase: string }): Promise<string>;
  export(person: string, choices?: { readonly passphrase: string }): Promise<ExportedProfile[] | string> {
    return this.#export("person", person, choices);
  }

  /** As `export`. */
  exportFraudster(fraudster: string): Promise<ExportedProfile[]>;
  /** As `export` with a passphrase. */
  exportFraudster(fraudster: string, choices: { readonly passphrase: string }): Promise<string>;
  exportFraudster(fraudster: string, choices?: { readonly passphrase: string }): Promise<ExportedProfile[] | string> {
    return this.#export("fraudster", fraudster, choices);
  }

  /**
   * Imports what `export` sealed elsewhere. The model revision must be the same, and the person must not have these prints here. Imports all
   * prints or none. `name` replaces the name under which they were exported.
   */
  async import(
    sealed: string | Uint8Array | Blob,
    choices: { readonly passphrase: string; readonly name?: string },
  ): Promise<NamedProfile[]> {
    if (typeof choices?.passphrase !== "string")
      throw invalid("passphrase", "missing", `import needs { passphrase: "…" }, got ${given(choices)}`);
    assertKnown(choices, importChoices);
    if (choices.name !== undefined) assertName(choices.name);
    const exported = await asFieldViolation(async () => open(await textOf(sealed), choices.passphrase));
    const profiles = Array.isArray(exported) ? (exported as ExportedProfile[]) : [];
    if (profiles.length === 0) throw invalid("sealed", "empty", "the sealed export contains no voiceprint");
    const context = { gkScopeId: { value: this.settings.scope } };
    const imported: NamedProfile[] = [];
    const importAll = async () => {
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
    };
    const undo = async () => {
      for (const { id } of imported)
        await this.operations.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: { value: id } });
    };
    return orCleanUp(importAll(), undo);
  }

  /** Erases a person's prints, recordings and keys; with a tag, only that print. Resolves to false if there was nothing to erase. */
  erase(person: string, choices: { readonly tag?: string } = {}): Promise<boolean> {
    return this.#erase("person", person, choices);
  }

  /** As `erase`. */
  eraseFraudster(fraudster: string, choices: { readonly tag?: string } = {}): Promise<boolean> {
    return this.#erase("fraudster", fraudster, choices);
  }

  /** The names of all persons who have a profile. */
  people(): Promise<string[]> {
    return this.#names("person");
  }

  /** The names of all fraudsters who have a profile. */
  fraudsters(): Promise<string[]> {
    return this.#names("fraudster");
  }

  /** Closes what was opened with it; on a box there is nothing to close. */
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
      throw invalid("recordings", "empty", "recordings must be a list of at least one recording");
    assertName(name);
    return this.#inSession(choices, enrollChoices, async (context, choices) => {
      // All recordings are read before anything is stored, so that a rejected call leaves no new profile and no partial enrollment.
      const media: Media[] = [];
      for (const [i, recording] of recordings.entries())
        media.push(
          await this.#media(context, recording, choices, recordings.length > 1 ? `recordings[${i}]` : undefined),
        );
      let profileId: string | null = null;
      const profile = async () => {
        const owner = { kind, name, tag: choices.tag ?? "" };
        profileId ??= await findOrCreateProfile(this.operations, this.settings.scope, owner, callOptions(choices));
        return profileId;
      };
      const analyzed: AnalyzedSegment[] = [];
      for (const [index, input] of media.entries()) {
        const one = await this.#enrollSegment(context, profile, input, choices);
        analyzed.push(one);
        choices.onProgress?.({ step: "segment", index, total: recordings.length, segment: one.segment });
      }
      const gkVoiceprintProfileId = { value: await profile() };
      // A recording that could not be processed says nothing about the print.
      const { enrollStatus } = analyzed.findLast(({ id }) => id !== undefined) ?? analyzed[0]!;
      const enrolled = { profileId: gkVoiceprintProfileId.value, enrollStatus };
      if (choices.train === false)
        return { ...UNTRAINED, ...enrolled, segments: analyzed.map(({ segment }) => segment) };
      choices.onProgress?.({ step: "train" });
      // Recordings that were all added before must not make a new print version.
      const onlyIfChanged = analyzed.every(({ segment }) => !segment.enrolled);
      const request = { context, gkVoiceprintProfileId, onlyIfChanged };
      const { result } = await this.operations.train(request, callOptions(choices));
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
        segments: analyzed.map(({ segment, id }) => ({ ...segment, usedForTraining: used.get(id) ?? null })),
      };
    });
  }

  async #enrollSegment(
    context: SessionContext,
    profile: () => Promise<string>,
    input: Media,
    choices: CallChoices,
  ): Promise<AnalyzedSegment> {
    const request = { context, input, isForEnrollment: true, ...channelSelector(choices.channel) };
    const processed = await this.operations.processAudio(request, operationOptions(choices));
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
    const enrollment = { context, gkVoiceprintProfileId: { value: await profile() }, gkProcessedAudioId };
    const { result } = await this.operations.enroll(enrollment, callOptions(choices));
    const reason = EnrollReason[result!.reason] as keyof typeof EnrollReason;
    return {
      segment: { ...measured, enrolled: result!.enrolled === true, reason },
      id: gkProcessedAudioId.value,
      enrollStatus: EnrollStatus[result!.enrollStatus] as keyof typeof EnrollStatus,
    };
  }

  /** Every call has its own session, so that its audio is deleted after the answer. */
  async #inSession<C extends CallChoices, T>(
    choices: C,
    known: object,
    work: (context: SessionContext, choices: C) => Promise<T>,
  ): Promise<T> {
    assertChoices(choices, known);
    // One limit for all operations of the call. Each has it too, in place of the limit that a connection sets.
    const { signal, end } = callLimit(choices);
    const limited = { ...choices, signal };
    const options = callOptions(limited);
    return inSession(this.operations, this.settings, (context) => work(context, limited), options).finally(end);
  }

  /** The session goes on with the listener that `open` opens, which ends it; it is ended here if that fails. */
  async #inLiveSession<T>(
    choices: CallChoices,
    open: (context: SessionContext, choices: CallChoices, end: (isFailed: boolean) => Promise<void>) => Promise<T>,
  ): Promise<T> {
    const limit = callLimit(choices);
    const limited = { ...choices, signal: limit.signal };
    const started = startSession(this.operations, this.settings, callOptions(limited));
    const context = await orCleanUp(started, async () => limit.end());
    const end = (isFailed: boolean) => {
      limit.end();
      return (isFailed ? abandonSession : stopSession)(this.operations, context);
    };
    const listener = await orCleanUp(open(context, limited, end), () => end(true));
    limit.endTime();
    return listener;
  }

  #analyze(audio: Audio, choices: AnalysisChoices, known: object, target: Target = choices): Promise<Analysis> {
    return this.#inSession(choices, known, async (context, choices) => {
      let media: Media | null = null;
      return unlessErased(target.fraudsters === true, async () => {
        const targets = await this.#targets(target, choices);
        media ??= await this.#media(context, audio, choices);
        const request = { context, audio: media, ...targets.request, ...listening(choices), ...attacks(choices) };
        const { result, status } = await this.operations.analyzeAudio(request, operationOptions(choices));
        return analysisOf(result!, targets.names, status?.message);
      });
    });
  }

  /** `place` is the recording's place in a list, for errors about a recording without a name. */
  async #media(context: SessionContext, audio: Audio, choices: CallChoices, place?: string): Promise<Media> {
    const recording = { ...(place !== undefined && { name: place }), ...(await recordingOf(audio, place)) };
    return upload(this.operations, context, recording, callOptions(choices));
  }

  #liveAccess(): LiveAccess {
    if (this.live) return this.live;
    const message =
      "live audio is not available on these Voiceprints; open them with openVoiceprints or connectVoiceprints";
    throw statusError(StatusCode.NOT_IMPLEMENTED, message);
  }

  async #targets({ persons, fraudsters }: Target, choices: CallChoices) {
    const watched =
      fraudsters === undefined
        ? undefined
        : await this.#profiles("fraudster", fraudsters === true ? undefined : fraudsters, choices);
    if (watched?.length === 0)
      throw statusError(StatusCode.NOT_FOUND, "no fraudster is enrolled; enroll one before watching");
    const claimed = persons === undefined ? [] : await this.#profiles("person", persons, choices);
    const found = [...claimed, ...(watched ?? [])];
    const names = new Map(found.map(({ id, name }) => [id, name]));
    const uniqueIds = found.map(({ id }) => ({ value: id }));
    return { names, request: uniqueIds.length > 0 ? { gkVoiceprintProfileIds: { uniqueIds } } : {} };
  }

  async #profiles(
    kind: Owner["kind"],
    names: readonly string[] | undefined,
    choices: CallChoices,
  ): Promise<Pick<NamedProfile, "id" | "name">[]> {
    const { tag } = choices;
    if (names === undefined) return candidatesIn(this.operations, this.settings.scope, kind, tag, callOptions(choices));
    if (!Array.isArray(names))
      throw invalid("names", "malformed", `the names of ${kind}s must be a list, got ${typeName(names)}`);
    if (names.length === 0) throw invalid("names", "empty", `the list of ${kind}s must have at least one name`);
    for (const name of names) assertName(name);
    return profilesNamed(this.operations, this.settings.scope, kind, names, tag ?? "", callOptions(choices));
  }

  async #names(kind: Owner["kind"]): Promise<string[]> {
    const profiles = await profilesIn(this.operations, this.settings.scope, kind);
    return [...new Set(profiles.map(({ name }) => name))].filter(Boolean).sort();
  }

  async #export(
    kind: Owner["kind"],
    name: string,
    choices: { readonly passphrase: string } | undefined,
  ): Promise<ExportedProfile[] | string> {
    assertName(name);
    // A passphrase that is missing must not give an export that is not sealed.
    if (choices !== undefined && typeof choices?.passphrase !== "string")
      throw invalid("passphrase", "missing", sealingNeeds(choices));
    if (choices !== undefined) assertKnown(choices, exportChoices);
    const { scope } = this.settings;
    const context = { gkScopeId: { value: scope } };
    const profiles = await each(await profilesIn(this.operations, scope, kind, name), async ({ id }) => {
      const answer = await unlessGone(
        this.operations.exportVoiceprintProfile({ context, gkVoiceprintProfileId: { value: id } }),
      );
      return answer && (JSON.parse(new TextDecoder().decode(answer.profile)) as ExportedProfile);
    });
    if (choices === undefined) return profiles;
    if (profiles.length === 0) throw statusError(StatusCode.NOT_FOUND, `the ${kind} "${name}" has no voiceprint`);
    // `import` takes trained prints only, and somebody who erases a print after exporting it relies on the export.
    const trained = profiles.filter(({ template }) => template !== null);
    if (trained.length === 0) {
      const message = `the voiceprint of the ${kind} "${name}" is not trained and could not be imported; finish its enrollment first`;
      throw invalid("name", "not_trained", message);
    }
    return asFieldViolation(() => seal(trained, choices.passphrase));
  }

  #existingProfile(kind: Owner["kind"], name: string, choices: CallChoices): Promise<string> {
    assertName(name);
    const owner = { kind, name, tag: choices.tag ?? "" };
    return existingProfile(this.operations, this.settings.scope, owner, callOptions(choices));
  }

  async #erase(kind: Owner["kind"], name: string, choices: { readonly tag?: string }): Promise<boolean> {
    assertName(name);
    // A tag that is not understood must not erase all prints.
    assertKnown(choices, eraseChoices);
    assertTag(choices);
    const { tag } = choices;
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

/** Runs `work` on one after the other, and leaves out `null` results. */
async function each<T, R>(all: readonly T[], work: (one: T) => Promise<R | null>): Promise<R[]> {
  const done: R[] = [];
  for (const one of all) {
    const result = await work(one);
    if (result !== null) done.push(result);
  }
  return done;
}

/** `null` if it was erased at the same moment, so that the others can still be processed. */
async function unlessGone<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StatusError && error.code === StatusCode.NOT_FOUND) return null;
    throw error;
  }
}

/** Turns errors of sealing and opening into a StatusError, like all others. */
async function asFieldViolation<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SealedExportError) throw invalid(error.field, "unusable", error.message);
    throw error;
  }
}

function textOf(sealed: string | Uint8Array | Blob): string | Promise<string> {
  if (typeof sealed === "string") return sealed;
  if (sealed instanceof Uint8Array) return new TextDecoder().decode(sealed);
  if (sealed instanceof Blob) return sealed.text();
  const message = `a sealed export must be a string, a Uint8Array or a Blob, got ${typeName(sealed)}`;
  throw invalid("sealed", "malformed", message);
}

/** An enrolled segment with the id of its processed audio. */
interface AnalyzedSegment {
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

/** Zero if it was trained. */
function missingOf(result: TrainResult) {
  if (result.reason === TrainReason.TRAIN_OK) return { missingSpeechSeconds: 0, missingRecordings: 0 };
  return {
    missingSpeechSeconds: Math.max(0, secondsOf(result.minNetAudioRequired) - secondsOf(result.totalNetAudio)),
    missingRecordings: Math.max(0, (result.minSegmentsRequired ?? 0) - (result.totalValidSegments ?? 0)),
  };
}

/**
 * When all profiles are compared, one may be erased before Identify gets to it. That is not the caller's fault, so the
 * work is repeated without it. If the caller named the profile, the error is thrown.
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

/** The type of a passphrase that is not a string. */
const given = (choices: unknown): string =>
  typeof choices === "object" && choices
    ? `{ passphrase: ${typeName((choices as { passphrase?: unknown }).passphrase)} }`
    : typeName(choices);

const sealingNeeds = (choices: unknown): string =>
  `a sealed export needs { passphrase: "…" }, got ${given(choices)}; without a second argument the export is not sealed`;

const callChoices: NamesOf<CallChoices> = {
  signal: true,
  timeoutMs: true,
  onProgress: true,
  tag: true,
  channel: true,
  ignoreCheckpoints: true,
};
const enrollChoices: NamesOf<EnrollChoices> = { ...callChoices, train: true };
const targetChoices: NamesOf<Target & AttackChoices> = {
  persons: true,
  fraudsters: true,
  synthetic: true,
  playback: true,
};
const analysisChoices: NamesOf<AnalysisChoices> = { ...callChoices, ...targetChoices };
const eraseChoices = { tag: true };
const exportChoices = { passphrase: true };
const importChoices = { passphrase: true, name: true };

/** For callers without a type checker: these would be noticed late, or not at all. */
function assertKnown(choices: object, known: object): void {
  if (typeof choices !== "object" || choices === null)
    throw invalid("choices", "malformed", `the choices of a call must be an object, got ${choices}`);
  const fault = optionsFault(choices, known);
  if (fault !== null) throw invalid("choices", "unknown", fault);
}

function assertChoices(choices: CallChoices, known: object): void {
  assertKnown(choices, known);
  assertTag(choices);
  const { signal, timeoutMs, onProgress } = choices;
  const fault = limitsFault({ signal, timeoutMs, onProgress } as OperationOptions);
  if (fault !== null) throw invalid("choices", "malformed", fault);
}

function assertTag({ tag }: { readonly tag?: string }): void {
  if (tag !== undefined && typeof tag !== "string")
    throw invalid("tag", "malformed", `tag must be a string, got ${typeName(tag)}`);
}

function assertName(name: string): void {
  if (typeof name !== "string" || name === "") throw invalid("name", "malformed", "name must be a non-empty string");
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
