/** The speaker network (assembly/speaker): loaded once, then turns one window of features at a time into an embedding. */
import { badArgument, badModel } from "./engine-error.js";
import type { FrontEnd } from "./front-end.js";
import { CAMPPLUS, EMBEDDED, NOT_FINITE, RESNET34, TDNN, TOO_FEW_FRAMES } from "./gen/kernel-exports.js";
import type { Kernels } from "./kernels.js";
import type { SpeakerArchitecture } from "./speaker-tensors.js";
import { pieceFrames, windowPieces, windowSlackFrames } from "./stream-kernel.js";

const architectures: Readonly<Record<SpeakerArchitecture, number>> = {
  "campplus-1": CAMPPLUS,
  "resnet34-1": RESNET34,
  "tdnn-1": TDNN,
};

const refusals = new Map<number, string>([
  [TOO_FEW_FRAMES, "it is too short"],
  [NOT_FINITE, "it contains values that are not finite"],
]);

/** The tensors of the network, in the order that the kernels expect. Crosses threads. */
export interface NetworkWeights {
  readonly bytes: Uint8Array;
  readonly tensors: readonly { readonly offset: number; readonly bytes: number }[];
}

/** The speaker network as the model carries it. Crosses threads. */
export interface SpeakerModel {
  readonly architecture: SpeakerArchitecture;
  readonly frontEnd: FrontEnd;
  /** Only for an architecture whose layers are in the model file; otherwise empty. */
  readonly program: Int32Array;
  readonly weights: NetworkWeights;
}

/** All tensors in one buffer, which `room` allocates for a given number of bytes. */
export function weightsOf(
  tensors: readonly { readonly bytes: Uint8Array }[],
  room: (bytes: number) => Uint8Array,
): NetworkWeights {
  const places: { offset: number; bytes: number }[] = [];
  let total = 0;
  for (const { bytes } of tensors) {
    places.push({ offset: total, bytes: bytes.length });
    total += bytes.length;
  }
  const bytes = room(total);
  for (const [i, tensor] of tensors.entries()) bytes.set(tensor.bytes, places[i]!.offset);
  return { bytes, tensors: places };
}

export class Network {
  readonly #kernels: Kernels;

  /** Reserves its slots. The kernels must not be sealed yet. */
  constructor(kernels: Kernels, { architecture, frontEnd, program, weights }: SpeakerModel, windowFrames: number) {
    const { run } = kernels;
    if (program.length > run.speakerProgramCapacity())
      throw badModel(`the network has a program of ${program.length} words, which is too long`);
    kernels.write(run.speakerProgram(), new Uint8Array(program.buffer, program.byteOffset, program.byteLength));
    const kind = architectures[architecture];
    const longest = Math.max(windowFrames + windowSlackFrames, windowPieces * pieceFrames);
    if (run.speakerReserve(kind, longest, frontEnd.floor) !== 1)
      throw badModel(`the kernels cannot run windows of ${windowFrames} frames`);
    for (const [i, { offset, bytes }] of weights.tensors.entries()) {
      if (bytes !== run.speakerTensorBytes(i))
        throw badModel(`tensor ${i} has ${bytes} bytes, expected ${run.speakerTensorBytes(i)}`);
      kernels.write(run.speakerStaging(), weights.bytes.subarray(offset, offset + bytes));
      run.speakerTake(i);
    }
    if (run.speakerReady() !== 1) throw badModel("the network is incomplete");
    this.#kernels = kernels;
  }

  /** The embedding has unit length. */
  embed(features: Float32Array): Float32Array<ArrayBuffer> {
    const { run } = this.#kernels;
    const frames = features.length / run.speakerBins();
    try {
      if (frames > run.speakerMaxFrames()) throw badArgument(`a window of ${frames} frames is too long`);
      this.#kernels.writeFloats(run.speakerFeatures(), features);
      const refused = run.speakerEmbed(frames);
      if (refused !== EMBEDDED)
        throw badArgument(
          `a window of ${frames} frames gives no embedding: ${refusals.get(refused) ?? `status ${refused}`}`,
        );
      return this.#kernels.readFloats(run.speakerEmbedding(), run.speakerDimensions());
    } finally {
      run.speakerWipe();
    }
  }
}
