/** Processes recordings with the streaming kernel (assembly/dsp/stream.ts): measures, and the features of windows of net speech. */
import { badArgument, EngineError } from "./engine-error.js";
import { BAD_WINDOW, DETAIL_ROWS, HAMMING_ROWS, LIMIT_REACHED, MEL_ROWS, WINDOW_FULL } from "./gen/kernel-exports.js";
import type { Kernels } from "./kernels.js";
import type { Measures, VoiceWindow } from "./port.js";

/** The saved state of a stream: only what the kernel needs. Valid only for the kernels that wrote it. */
export type StreamState = Uint8Array<ArrayBuffer>;

/** One window of net speech, as the network expects it. */
export interface WindowFeatures extends Omit<VoiceWindow, "embedding"> {
  /** [frames][bins]; the bins depend on the stream's rows. */
  readonly features: Float32Array<ArrayBuffer>;
}

export interface StreamStep {
  readonly state: StreamState;
  /** Windows that became full. */
  readonly windows: readonly WindowFeatures[];
  readonly netSpeechSeconds: number;
  /** The samples after the point where the requested net speech was reached; `null` when all were read. */
  readonly rest: Float32Array<ArrayBuffer> | null;
  /** The limit of net speech is reached: nothing more is read. */
  readonly ended: boolean;
}

export interface StreamPeek {
  /** The unchanged state, handed back to the caller. */
  readonly state: StreamState | null;
  readonly measures: Measures;
  /** The unfinished window; `null` if it has too little speech. */
  readonly tail: WindowFeatures | null;
}

/** Features of a frame: 80 bins of log-mel, the finer spectrum of assembly/dsp/detail.ts, or log-mel with a Hamming window. */
export type FrameRows = "mel" | "detail" | "hamming";

/** What a stream starts with. */
export interface StreamFormat {
  readonly rateHz: number;
  /** 0: no limit. */
  readonly maxSpeechSeconds: number;
  /** Frames per window; by default those of the speaker network. */
  readonly windowFrames?: number;
  /** By default those of the speaker network. */
  readonly rows?: FrameRows;
  /** By how much the voice-activity threshold is lowered; 0 by default. */
  readonly lowered?: number;
}

const rowsOfKernels: Readonly<Record<FrameRows, number>> = {
  mel: MEL_ROWS,
  detail: DETAIL_ROWS,
  hamming: HAMMING_ROWS,
};

/** Frames are 10 ms apart. */
const framesPerSecond = 100;

/** The fewest frames that last this long. A product alone may be rounded down: 100 · (1.1 · 1.5) is 165, and 165 frames are shorter. */
function framesReaching(seconds: number): number {
  const frames = Math.round(seconds * framesPerSecond);
  return frames / framesPerSecond >= seconds ? frames : frames + 1;
}

/** How much longer than the others the last window may be: the end of a recording adds frames to it (assembly/dsp/stream.ts). */
export const windowSlackFrames = 64;

/** Two people in one channel are told apart by pieces of half a second; three neighbors form a window, because one is too short to identify a voice. */
export const pieceFrames = 50;
export const windowPieces = 3;

export class StreamKernel {
  /** The features that the speaker network takes. */
  constructor(
    private readonly kernels: Kernels,
    private readonly windowFrames: number,
    private readonly rows: FrameRows,
  ) {}

  /** Continues from `state` (overwritten), or starts new. Stops where net speech reaches `untilSpeechSeconds`: the same place in any chunking. */
  advance(
    state: StreamState | null,
    format: StreamFormat,
    samples: Float32Array,
    untilSpeechSeconds = Number.MAX_VALUE,
  ): StreamStep {
    const { kernels } = this;
    const { run } = kernels;
    checkSamples(samples);
    try {
      this.#resume(state, format);
      const windows: WindowFeatures[] = [];
      const capacity = run.inputCapacity();
      const untilFrames = framesReaching(untilSpeechSeconds);
      const stops = () => this.#ended() || run.streamSpeechFrames() >= untilFrames;
      let read = 0;
      for (let first = 0; first < samples.length && !stops(); first += capacity) {
        const chunk = samples.subarray(first, first + capacity);
        kernels.writeFloats(run.inputPtr(), chunk);
        for (let at = 0, full = 0; (at < chunk.length || full) && !stops(); read = first + at) {
          at += run.streamPushUntil(at, chunk.length - at, untilFrames);
          full = run.streamStatus() & WINDOW_FULL;
          // A full window holds up decisions: after the last sample, they follow once it is taken.
          if (!full) continue;
          windows.push(this.#window());
          run.streamTake();
        }
      }
      return {
        state: kernels.readInto(state, run.streamStatePtr(), run.streamStateBytes()),
        windows,
        netSpeechSeconds: run.streamSpeechFrames() / framesPerSecond,
        rest: read < samples.length && !this.#ended() ? samples.slice(read) : null,
        ended: this.#ended(),
      };
    } finally {
      run.streamWipe();
    }
  }

  /** The result if the recording ended here. */
  peek(state: StreamState | null, format: StreamFormat): StreamPeek {
    const { run } = this.kernels;
    try {
      this.#resume(state, format);
      run.streamPeek();
      const last = this.#window();
      const enough = last.speechSeconds * framesPerSecond >= run.speakerMinFrames();
      return { state, measures: this.#measures(), tail: enough ? last : null };
    } finally {
      run.streamWipe();
    }
  }

  #resume(state: StreamState | null, format: StreamFormat): void {
    const { run } = this.kernels;
    if (state !== null) {
      if (state.length > run.streamStateCapacity()) throw badArgument("the bytes are not the saved state of a stream");
      this.kernels.write(run.streamStatePtr(), state);
      return;
    }
    const limitFrames = framesReaching(format.maxSpeechSeconds);
    const windowFrames = format.windowFrames ?? this.windowFrames;
    const rows = rowsOfKernels[format.rows ?? this.rows];
    const refused = run.streamStart(format.rateHz, windowFrames, limitFrames, rows, format.lowered ?? 0);
    if (refused === 0) return;
    if (refused === BAD_WINDOW) throw badArgument(`windows of ${windowFrames} frames are not supported`);
    throw new EngineError("BAD_RATE", `the sampling rate must be 4,000 to 192,000 Hz, got ${format.rateHz}`);
  }

  #ended(): boolean {
    return (this.kernels.run.streamStatus() & LIMIT_REACHED) !== 0;
  }

  #window(): WindowFeatures {
    const { run } = this.kernels;
    const [speechSeconds, startSeconds, endSeconds] = this.kernels.readDoubles(run.windowTimesPtr(), 3);
    return {
      features: this.kernels.readFloats(run.windowPtr(), run.windowFrames() * run.windowBins()),
      speechSeconds: speechSeconds!,
      startSeconds: startSeconds!,
      endSeconds: endSeconds!,
    };
  }

  #measures(): Measures {
    const { run } = this.kernels;
    const values = this.kernels.readDoubles(run.measuresPtr(), run.measuresLength());
    const [rateHz, grossSeconds, netSpeechSeconds, level, snr, , bandwidth, , saturated, , there, samples] = values;
    const audible = values[14]!;
    return {
      rateHz: rateHz!,
      grossSeconds: grossSeconds!,
      netSpeechSeconds: netSpeechSeconds!,
      speechLevelDb: there! & 1 ? level! : null,
      snrDb: there! & 2 ? snr! : null,
      saturatedPerMinute: samples! > 0 ? (60 * saturated!) / grossSeconds! : 0,
      saturationRatio: audible > 0 ? saturated! / audible : 0,
      bandwidthHz: there! & 8 ? bandwidth! : null,
    };
  }
}

function checkSamples(samples: Float32Array): void {
  for (let i = 0; i < samples.length; i++) {
    // 0 for every finite number, otherwise NaN.
    if (samples[i]! * 0 !== 0)
      throw new EngineError("BAD_SAMPLES", `sample ${i} is ${samples[i]}, not a finite number`);
  }
}
