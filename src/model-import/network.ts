/** A network that was found in a graph. */
import type { SpeakerArchitecture } from "../engine/speaker-tensors.js";
import type { FrameRows } from "../engine/stream-kernel.js";
import type { TdnnNetwork } from "../engine/tdnn-layers.js";
import type { Moments, Reading } from "./moments.js";
import type { NamedTensor } from "./quantize.js";

/** The largest values of each channel that speech gave, by the name of the tensor in the graph. */
export type Peaks = (tensor: string) => Float64Array;

export type MomentsOf = (reading: Reading) => Moments;

export interface RecognizedNetwork {
  readonly architecture: SpeakerArchitecture;
  /** What it was trained to hear. */
  readonly rows: FrameRows;
  readonly window: string;
  /** One natural logarithm of power in the units of its features. */
  readonly unit: number;
  /** Whether every bin of its features is divided by its deviation. */
  readonly standardized: boolean;
  /** Numbers that the published network makes. */
  readonly outputs: number;
  /** Names of the tensors whose peaks are asked for. */
  readonly observed: readonly string[];
  /** What layers read whose weights are rounded together. */
  readonly readings?: readonly Reading[];
  quantize(peaks: Peaks, moments: MomentsOf): QuantizedNetwork;
}

export interface QuantizedNetwork {
  /** In the kernels' order. */
  readonly tensors: readonly NamedTensor[];
  /** Of an architecture whose layers the model file describes. */
  readonly layers?: TdnnNetwork;
}
