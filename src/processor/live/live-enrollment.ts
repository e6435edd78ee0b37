/** Enrolls from audio that is still arriving, one stretch of good speech after another, until more would not help training. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { joined } from "../../audio/joined.js";
import {
  AudioValidity,
  type Context,
  EnrollReason,
  EnrollStatus,
  GetEnrollStatusRequestSchema,
  type ListenSegmentSchema,
  type TrainRequest,
  TrainRequestSchema,
  type TrainResultSchema,
  TrainStatus,
  type UniqueId,
} from "../../contract/index.js";
import type { Measures, VoiceAnalysis, VoiceStream } from "../../engine/port.js";
import type { MediaSegment, ProcessedAudio } from "../../store/port.js";
import type { ConfigurationSet } from "../../voiceprint/configuration-set.js";
import { audioValidity } from "../../voiceprint/quality-gate.js";
import { measuredAudio, newProcessedAudio } from "../audio-model.js";
import { assertStillRunning, type OpenContext, openContext } from "../context.js";
import { type Dependencies, engineOptions, type OperationOptions } from "../dependencies.js";
import { enrollAudio } from "../enroll.js";
import { failureOf, invalid } from "../failures.js";
import { getEnrollStatus } from "../get-enroll-status.js";
import { pcm16, processingResult } from "../process-audio.js";
import { findProfileToChange } from "../profiles.js";
import { train } from "../train.js";
import { checkLiveRate, untilStoreIsBack } from "./live-check.js";
import type { LiveEnrollmentResult, LiveTask, ReportEvent } from "./live-task.js";

/** A stretch ends here even if it has little speech, because its audio is in memory. */
const longestStretchSeconds = 120;

/** Three stretches give enough speech for the best training, if the configuration set allows it. */
const stretchSpeechSeconds = (set: ConfigurationSet): number =>
  Math.min(set.maxNetAudioForEnroll, Math.max(set.minNetAudioForEnroll, set.optimalNetAudioForTrain / 3));

export async function openLiveEnrollment(
  deps: Dependencies,
  request: TrainRequest,
  rateHz: number,
  options: OperationOptions,
): Promise<LiveTask<LiveEnrollmentResult>> {
  checkLiveRate(rateHz);
  const context = await openContext(deps, request.context, options);
  const profileId = request.gkVoiceprintProfileId!;
  await findProfileToChange(deps, context.scopeId, profileId);
  return new LiveEnrollment(context, { context: request.context!, profileId }, rateHz, () => {});
}

export class LiveEnrollment implements LiveTask<LiveEnrollmentResult> {
  readonly score = null;
  /** Batches may be as long as possible: nobody waits for the end of a stretch. */
  readonly calmSeconds = Number.POSITIVE_INFINITY;
  #stream: VoiceStream | null = null;
  #chunks: Float32Array[] = [];
  #samples = 0;
  #enrolled = 0;
  /** Some of the audio is in the profile already: a client that reconnects sends all of it again. */
  #isRepeated = false;
  #training: MessageInitShape<typeof TrainResultSchema> | undefined;
  #status = EnrollStatus.UNSPECIFIED;
  #done: LiveEnrollmentResult | null = null;
  /** Chunks are processed in the order in which they were pushed, whether or not the caller waits. */
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(
    private readonly context: OpenContext,
    private readonly request: { readonly context: Context; readonly profileId: UniqueId },
    private readonly rateHz: number,
    private readonly report: ReportEvent,
  ) {}

  push(samples: Float32Array): Promise<LiveEnrollmentResult | null> {
    return this.#next(async () => {
      for (let left = samples; left.length > 0 && !this.#done; ) left = await this.#analyze(left);
      return this.#done;
    });
  }

  /** Processes samples up to the end of the stretch; returns the rest for the next stretch. */
  async #analyze(samples: Float32Array): Promise<Float32Array> {
    const longest = longestStretchSeconds * this.rateHz;
    const read = samples.subarray(0, longest - this.#samples);
    this.#chunks.push(read.slice());
    this.#samples += read.length;
    const stream = await this.#open();
    const spoken = await stream.push(read.slice());
    // Silence before the first word is not kept in memory.
    if (spoken === 0 && this.#samples > 3 * this.rateHz) await this.#drop();
    else if (stream.ended) {
      const arrived = this.#samples;
      const unheard = arrived - (await this.#endStretch(stream));
      return samples.subarray(Math.max(1, read.length - unheard));
    } else if (this.#samples === longest) await this.#endStretch(stream);
    return samples.subarray(read.length);
  }

  finish(): Promise<LiveEnrollmentResult> {
    return this.#next(async () => {
      if (!this.#done && this.#stream) await this.#endStretch(this.#stream);
      return this.#done ?? (await this.#conclude());
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#turn;
    await this.#drop();
  }

  measures(): Promise<Measures> {
    return this.#next(async () => (await this.#open()).measures());
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(async () => {
      if (this.#closed && !this.#done) throw invalid("audio", "closed", "the live enrollment is closed");
      try {
        return await work();
      } catch (error) {
        this.#closed = true;
        await this.#drop();
        throw failureOf(error);
      }
    });
    this.#turn = done.catch(() => {});
    return done;
  }

  async #open(): Promise<VoiceStream> {
    this.#stream ??= await this.context.engine.stream(this.rateHz, {
      ...engineOptions(this.context.options),
      maxNetSpeechSeconds: stretchSpeechSeconds(this.context.set),
    });
    return this.#stream;
  }

  /** Resolves to the number of samples that the engine read. */
  async #endStretch(stream: VoiceStream): Promise<number> {
    const analysis = await stream.analysis();
    const analyzed = this.#analyzed(analysis);
    const audio = pcm16(analyzed);
    await this.#drop();
    if (analysis.measures.netSpeechSeconds === 0) return analyzed.length;
    const { media, processed } = this.#segment(analysis, audio);
    const value = await untilStoreIsBack(() => this.#enroll(media, processed), this.context.options);
    if (value.enrollment?.enrolled) this.#enrolled++;
    this.report({ case: "segment", value });
    if (this.#status === EnrollStatus.TRAIN_SUGGESTED || this.#status === EnrollStatus.FULL) await this.#conclude();
    return analyzed.length;
  }

  /** The samples that the engine read; the rest of the last chunk is beyond the limit. */
  #analyzed({ measures }: VoiceAnalysis): Float32Array {
    const length = Math.min(this.#samples, Math.round(measures.grossSeconds * this.rateHz));
    return joined(this.#chunks).subarray(0, length);
  }

  #segment(analysis: VoiceAnalysis, audio: Uint8Array) {
    const { deps, scopeId, session, set } = this.context;
    const media: MediaSegment = {
      id: deps.ids.next(),
      scopeId,
      sessionId: session.id,
      partOf: null,
      rateHz: this.rateHz,
      channels: 1,
      encoding: "pcm16",
      createdAt: deps.clock.now(),
      audio,
    };
    const validity = audioValidity(measuredAudio(analysis), "enroll", set);
    const processed = newProcessedAudio(this.context, media, null, "process-audio", validity, analysis);
    return { media, processed };
  }

  /** May be called again with the same segment, of which a store that was away has all, a part or nothing. */
  async #enroll(media: MediaSegment, processed: ProcessedAudio): Promise<MessageInitShape<typeof ListenSegmentSchema>> {
    const { deps, scopeId, session } = this.context;
    const { profileId } = this.request;
    await assertStillRunning(deps, session);
    // Nothing is stored of a person who was erased or withdrew consent during the call.
    await findProfileToChange(deps, scopeId, profileId);
    const enrollment = processed.validity === AudioValidity.AUDIO_OK ? await this.#added(processed) : null;
    if (enrollment) this.#status = enrollment.enrollStatus;
    if (!enrollment?.enrolled) {
      this.#isRepeated ||= enrollment?.reason === EnrollReason.ALREADY_ADDED || this.#status === EnrollStatus.FULL;
      const processing = processingResult(processed, null, null);
      return {
        processing,
        ...(enrollment && { enrollment: { ...enrollment, audioDetails: processing.audioDetails! } }),
      };
    }
    // Only now: an erasure of the profile finds what it was enrolled from, and nothing is stored after an erasure.
    await deps.store.media.add(media, profileId.value).catch(unlessExists);
    await deps.store.processed.add(processed, profileId.value).catch(unlessExists);
    const processing = processingResult(processed);
    if (this.#status === EnrollStatus.TRAIN_NOT_POSSIBLE) return { processing, enrollment };
    const training = await this.#train();
    // If segments disagree, adding more of them does not make a better print.
    if (training?.trainStatus !== TrainStatus.TRAINED && this.#status === EnrollStatus.TRAIN_SUGGESTED)
      this.#status = EnrollStatus.TRAIN_POSSIBLE;
    return { processing, enrollment, ...(training && { training }) };
  }

  async #added(processed: ProcessedAudio) {
    const { deps, scopeId } = this.context;
    const { profileId } = this.request;
    const enrollment = await enrollAudio(this.context, profileId, processed);
    if (enrollment.enrolled) return enrollment;
    const segments = await deps.store.profiles.segments(scopeId, profileId.value);
    const isOurs = segments.some((segment) => segment.processed.id === processed.id);
    return isOurs ? { ...enrollment, enrolled: true, reason: EnrollReason.ENROLL_OK } : enrollment;
  }

  async #train() {
    const { deps, options } = this.context;
    const { context, profileId } = this.request;
    const request = create(TrainRequestSchema, { context, gkVoiceprintProfileId: profileId });
    this.#training = (await train(deps, request, options)).result;
    return this.#training;
  }

  /** What the connections before this one added is as much of this call as what this one did. */
  async #concludeRepeated(): Promise<void> {
    const { deps, scopeId, session } = this.context;
    const segments = await deps.store.profiles.segments(scopeId, this.request.profileId.value);
    this.#enrolled = segments.filter(({ processed }) => processed.sessionId === session.id).length;
    if (this.#enrolled > 0 && !this.#training && this.#status !== EnrollStatus.TRAIN_NOT_POSSIBLE) await this.#train();
  }

  #conclude(): Promise<LiveEnrollmentResult> {
    return untilStoreIsBack(() => this.#concludeNow(), this.context.options);
  }

  async #concludeNow(): Promise<LiveEnrollmentResult> {
    if (this.#isRepeated) await this.#concludeRepeated();
    if (this.#status === EnrollStatus.UNSPECIFIED) {
      const { context, profileId } = this.request;
      const request = create(GetEnrollStatusRequestSchema, { context, gkVoiceprintProfileId: profileId });
      const { result } = await getEnrollStatus(this.context.deps, request, this.context.options);
      this.#status = result ?? EnrollStatus.UNSPECIFIED;
    }
    this.#done = {
      case: "enroll",
      value: {
        enrollStatus: this.#status,
        enrolledSegments: this.#enrolled,
        ...(this.#training && { training: this.#training }),
      },
    };
    return this.#done;
  }

  async #drop(): Promise<void> {
    for (const chunk of this.#chunks) chunk.fill(0);
    this.#chunks = [];
    this.#samples = 0;
    const stream = this.#stream;
    this.#stream = null;
    await stream?.close();
  }
}

/** Written before the store was away. */
function unlessExists(error: unknown): void {
  if ((error as { code?: unknown }).code !== "exists") throw error;
}
