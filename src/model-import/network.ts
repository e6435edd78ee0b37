/** A network that was found in a graph. */
import type { SpeakerArchitecture } from "../engine/speaker-tensors.js";
import type { FrameRows } from "../engine/stream-kernel.js";
import type { NamedTensor } from "./quantize.js";

/** The largest values of each channel that speech gave, by the name of the tensor in the graph. */
export type Peaks = (tensor: string) => Float64Array;

export interface RecognizedNetwork {
  readonly architecture: SpeakerArchitecture;
  /** What it was trained to hear. */
  readonly rows: FrameRows;
  readonly window: string;
  /** Numbers that the published network makes. */
  readonly outputs: number;
  /** Names of the tensors whose peaks are asked for. */
  readonly observed: readonly string[];
  /** The tensors in the kernels' order. */
  quantize(peaks: Peaks): NamedTensor[];
}
