/** A network that was found in a graph. */
import type { SpeakerArchitecture } from "../engine/speaker-tensors.js";
import type { FrameRows } from "../engine/stream-kernel.js";
import type { TdnnNetwork } from "../engine/tdnn-layers.js";
import type { Moments, Reading } from "./moments.js";
import type { NamedTensor } from "./quantize.js";

/** Peak of each channel on the given speech, by the name of the tensor in the graph. */
export type Peaks = (tensor: string) => Float64Array;

export type MomentsOf = (reading: Reading) => Moments;

export interface RecognizedNetwork {
  readonly architecture: SpeakerArchitecture;
  /** The front end that it was trained with. */
  readonly rows: FrameRows;
  /** One natural logarithm of power, in the units of its features; 1 by default. */
  readonly unit?: number;
  /** Whether every bin of its features is divided by its deviation. */
  readonly standardized?: boolean;
  /** Length of the published network's output. */
  readonly outputs: number;
  /** Names of the tensors whose peaks are needed. */
  readonly observed: readonly string[];
  /** Inputs of layers whose weights are rounded jointly. */
  readonly readings?: readonly Reading[];
  quantize(peaks: Peaks, moments: MomentsOf): QuantizedNetwork;
}

export interface QuantizedNetwork {
  /** In the kernels' order. */
  readonly tensors: readonly NamedTensor[];
  /** Only for an architecture whose layers the model file describes. */
  readonly layers?: TdnnNetwork;
}
