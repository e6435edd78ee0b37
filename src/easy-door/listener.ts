/** Audio that is still arriving: checks and enrollments that listen to it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type AnalyzeAudioResult, EnrollStatus, TrainReason, type TrainRequestSchema } from "../contract/index.js";
import { onAbort } from "../contract/on-abort.js";
import type { OperationOptions } from "../contract/operations.js";
import type { LiveRequest } from "../processor/live/live-check.js";
import type { LiveEnrollmentResult, LiveTask } from "../processor/live/live-task.js";
import { orCleanUp } from "../workflow.js";
import type { Analysis } from "./answers.js";
import { type AudioChunk, samplesOfChunk } from "./audio.js";

/** Listens to audio that is still arriving, in this process or on a box. */
export interface LiveAccess {
  listen(request: LiveRequest, options: OperationOptions): Promise<AnalysisTask>;
  listenToEnroll(request: LiveEnrollmentRequest, options: OperationOptions): Promise<EnrollmentTask>;
  /** The lowest and the highest sampling rate, in Hz. */
  readonly rates: readonly [number, number];
  /** Closes what was opened for it. */
  close(): Promise<void>;
}

/** What a listener drives: a check or an enrollment of arriving audio. */
export type ListenerTask<Result> = Pick<LiveTask<Result>, "push" | "finish" | "close">;
/** A live check as `Listener` drives it. */
export interface AnalysisTask extends ListenerTask<AnalyzeAudioResult> {
  /** Which prints are not compared, and why; empty if all are. */
  readonly notCompared: string;
}
/** A live enrollment as `EnrollmentListener` drives it. */
export type EnrollmentTask = ListenerTask<LiveEnrollmentResult>;
/** Whose print a live enrollment adds to, and the rate of its audio. */
export type LiveEnrollmentRequest = MessageInitShape<typeof TrainRequestSchema> & { readonly rateHz: number };

/** Audio that is still arriving, and its session, which is stopped once: with the outcome, or when the task fails or is closed. */
export abstract class LiveListener<Result, Outcome> {
  // Not `private`: a listener that is logged must not log what it works with.
  readonly #task: ListenerTask<Result>;
  readonly #rateHz: number;
  readonly #outcomeOf: (result: Result) => Outcome;
  readonly #endSession: (isFailed: boolean) => Promise<void>;
  /** Stops waiting for the signal. */
  readonly #forget: (() => void) | undefined;
  #outcome: Outcome | null = null;
  #open = true;

  constructor(
    task: ListenerTask<Result>,
    rateHz: number,
    outcomeOf: (result: Result) => Outcome,
    endSession: (isFailed: boolean) => Promise<void>,
    signal?: AbortSignal,
  ) {
    this.#task = task;
    this.#rateHz = rateHz;
    this.#outcomeOf = outcomeOf;
    this.#endSession = endSession;
    // The caller may never come back to a listener that was cancelled.
    this.#forget = signal && onAbort(signal, () => void this.#stop(true).catch(() => {}));
  }

  protected get outcome(): Outcome | null {
    return this.#outcome;
  }

  /** Adds a chunk of audio; ownership of a `Float32Array` passes to the listener. Resolves to the outcome once there is one. */
  async push(chunk: AudioChunk): Promise<Outcome | null> {
    // An invalid chunk throws, but does not end the task.
    const samples = samplesOfChunk(chunk, this.#rateHz);
    if (this.#outcome) return this.#outcome;
    const result = await this.#orStop(this.#task.push(samples));
    return result && this.#end(result);
  }

  /** Ends the audio. Resolves to the outcome of all audio so far. */
  async finish(): Promise<Outcome> {
    return this.#outcome ?? this.#end(await this.#orStop(this.#task.finish()));
  }

  /** Ends without an outcome; segments that were enrolled stay. */
  async close(): Promise<void> {
    await this.#task.close();
    await this.#stop();
  }

  async #end(result: Result): Promise<Outcome> {
    this.#outcome ??= this.#outcomeOf(result);
    await this.#stop();
    return this.#outcome;
  }

  #orStop<T>(work: Promise<T>): Promise<T> {
    return orCleanUp(work, () => this.#stop(true));
  }

  async #stop(isFailed = false): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    this.#forget?.();
    await this.#endSession(isFailed);
  }
}

/** A live check and its session. */
export class Listener extends LiveListener<AnalyzeAudioResult, Analysis> {
  /** Set as soon as a checkpoint gave a clear answer. */
  get answer(): Analysis | null {
    return this.outcome;
  }

  /** Pushes chunks until there is an answer or no more audio. An error, also one of the source, closes the listener. */
  follow(chunks: AsyncIterable<AudioChunk> | Iterable<AudioChunk>): Promise<Analysis> {
    return orCleanUp(this.#follow(chunks), () => this.close());
  }

  async #follow(chunks: AsyncIterable<AudioChunk> | Iterable<AudioChunk>): Promise<Analysis> {
    for await (const chunk of chunks) {
      const answer = await this.push(chunk);
      if (answer) return answer;
    }
    return this.finish();
  }
}

/** Progress of a live enrollment. */
export interface LiveEnrollmentState {
  readonly status: keyof typeof EnrollStatus;
  /** Number of segments that this call has added to the print. */
  readonly enrolledSegments: number;
  readonly trained: boolean;
}

/** A live enrollment and its session. */
export class EnrollmentListener extends LiveListener<LiveEnrollmentResult, LiveEnrollmentState> {
  /** Set as soon as training would not gain from more audio. */
  get enrollment(): LiveEnrollmentState | null {
    return this.outcome;
  }
}

export function enrollmentOf({ value }: LiveEnrollmentResult): LiveEnrollmentState {
  const { enrollStatus = EnrollStatus.UNSPECIFIED, enrolledSegments = 0, training } = value;
  const trained = training?.reason === TrainReason.TRAIN_OK;
  return { status: EnrollStatus[enrollStatus] as keyof typeof EnrollStatus, enrolledSegments, trained };
}
