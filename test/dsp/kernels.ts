/** The built kernels alone: these tests check the numbers that wasm computes, not the engine around it. */
import { readFileSync } from "node:fs";
import {
  DETAIL_ROWS,
  HAMMING_ROWS,
  type KernelExports,
  LIMIT_REACHED,
  MEL_ROWS,
  WINDOW_FULL,
} from "../../src/engine/gen/kernel-exports.js";

/** `streamStart` with defaults for rows and threshold. */
export type Kernels = Omit<KernelExports, "streamStart"> & {
  readonly memory: WebAssembly.Memory;
  streamStart(rateHz: number, windowFrames: number, limitFrames: number, rows?: number, lowered?: number): number;
};

const wasm = new WebAssembly.Module(readFileSync(new URL("../../dist/engine/vivavoce.wasm", import.meta.url)));

/** Slots for one conversion: at least the state's bytes, a block, and what a block at 4 kHz becomes. */
export const RESAMPLING = { state: 8192, input: 256 * 4, output: 1040 * 4 } as const;
const resamplers = new WeakMap<Kernels, Record<keyof typeof RESAMPLING, number>>();

/** A new instance, not yet sealed. */
export function instantiate(): Kernels {
  const kernels = new WebAssembly.Instance(wasm, {}).exports as unknown as Kernels;
  const { state, input, output } = RESAMPLING;
  resamplers.set(kernels, {
    state: kernels.reserve(state),
    input: kernels.reserve(input),
    output: kernels.reserve(output),
  });
  return kernels;
}

export function floats(kernels: Kernels, at: number, length: number): Float32Array {
  return new Float32Array(kernels.memory.buffer, at, length);
}

/** All of x at 16 kHz, pushed in chunks of the given sizes, repeated as needed. */
export function resample(
  kernels: Kernels,
  x: Float32Array,
  rateHz: number,
  chunks: readonly number[] = [512],
): Float32Array {
  const { state, input, output } = resamplers.get(kernels)!;
  kernels.resamplerStart(state, rateHz);
  const padded = new Float32Array(x.length + kernels.resamplerWait(state));
  padded.set(x);
  const out: number[] = [];
  for (let at = 0, turn = 0; at < padded.length; turn++) {
    const chunk = padded.subarray(at, at + Math.min(chunks[turn % chunks.length] ?? 1, RESAMPLING.input / 4));
    floats(kernels, input, chunk.length).set(chunk);
    const made = kernels.resamplerPush(state, output, input, chunk.length);
    for (const y of floats(kernels, output, made)) out.push(y);
    at += chunk.length;
  }
  return Float32Array.from(out);
}

/** The measures as measuresPtr() documents them; null where there is nothing to measure. */
export interface Measured {
  readonly grossSeconds: number;
  readonly netSpeechSeconds: number;
  readonly speechLevelDb: number | null;
  readonly snrDb: number | null;
  readonly wadaDb: number | null;
  readonly bandwidthHz: number | null;
  readonly saturatedRuns: number;
  readonly saturatedSamples: number;
  readonly audibleSamples: number;
  readonly invalidSamples: number;
  readonly samples: number;
  readonly frames: number;
}

export interface Window {
  readonly features: Float32Array;
  readonly speechSeconds: number;
  readonly startSeconds: number;
  readonly endSeconds: number;
}

export interface Heard {
  readonly measured: Measured;
  readonly windows: readonly Window[];
  /** 1 for a frame of speech. */
  readonly marks: readonly number[];
}

export interface Listening {
  readonly windowFrames?: number;
  readonly limitFrames?: number;
  readonly chunks?: readonly number[];
  readonly detail?: boolean;
  /** Windows of log-mel with a Hamming window. */
  readonly hamming?: boolean;
  /** By how much the voice-activity threshold is lowered. */
  readonly lowered?: number;
}

export function measured(kernels: Kernels): Measured {
  const m = new Float64Array(kernels.memory.buffer, kernels.measuresPtr(), kernels.measuresLength());
  const at = (i: number) => m[i] ?? Number.NaN;
  const there = (i: number, bit: number) => (at(10) & bit ? at(i) : null);
  return {
    grossSeconds: at(1),
    netSpeechSeconds: at(2),
    speechLevelDb: there(3, 1),
    snrDb: there(4, 2),
    wadaDb: there(5, 4),
    bandwidthHz: there(6, 8),
    saturatedRuns: at(7),
    saturatedSamples: at(8),
    audibleSamples: at(14),
    invalidSamples: at(9),
    samples: at(11),
    frames: at(12),
  };
}

export function windowOf(kernels: Kernels): Window {
  const [speechSeconds = 0, startSeconds = 0, endSeconds = 0] = new Float64Array(
    kernels.memory.buffer,
    kernels.windowTimesPtr(),
    3,
  );
  const features = floats(kernels, kernels.windowPtr(), kernels.windowFrames() * kernels.windowBins()).slice();
  return { features, speechSeconds, startSeconds, endSeconds };
}

/** Pushes x in chunks; passes full windows to `onWindow`. False when the net-speech limit stopped it. */
export function push(
  kernels: Kernels,
  x: Float32Array,
  chunks: readonly number[],
  onWindow: (window: Window) => void,
  onProgress: () => void = () => {},
): boolean {
  for (let from = 0, turn = 0; from < x.length; turn++) {
    const size = Math.max(1, Math.min(chunks[turn % chunks.length] ?? 1, kernels.inputCapacity()));
    const chunk = x.subarray(from, from + size);
    floats(kernels, kernels.inputPtr(), chunk.length).set(chunk);
    for (let at = 0; at < chunk.length; ) {
      at += kernels.streamPush(at, chunk.length - at);
      onProgress();
      if (kernels.streamStatus() & WINDOW_FULL) {
        onWindow(windowOf(kernels));
        kernels.streamTake();
      }
      if (kernels.streamStatus() & LIMIT_REACHED) return false;
    }
    from += chunk.length;
  }
  return true;
}

/** A whole recording through a stream. */
export function listen(kernels: Kernels, x: Float32Array, rateHz: number, options: Listening = {}): Heard {
  const { windowFrames = 0, limitFrames = 0, chunks = [4096], detail = false, hamming = false, lowered } = options;
  const rows = detail ? DETAIL_ROWS : hamming ? HAMMING_ROWS : MEL_ROWS;
  const refusal = kernels.streamStart(rateHz, windowFrames, limitFrames, rows, lowered);
  if (refusal !== 0) throw new RangeError(`refused with ${refusal}`);
  const windows: Window[] = [];
  const marks: number[] = [];
  const note = () => {
    const bytes = new Uint8Array(kernels.memory.buffer, kernels.marksPtr(), kernels.marksCapacity());
    while (marks.length < kernels.streamDecidedFrames()) marks.push(bytes[marks.length % bytes.length] ?? 0);
  };
  push(kernels, x, chunks, (window) => windows.push(window), note);
  if (kernels.streamFinish() > 0) windows.push(windowOf(kernels));
  note();
  return { measured: measured(kernels), windows, marks };
}
