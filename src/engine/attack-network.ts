/** The attack networks (assembly/spoof): was a window of speech made by a machine, or played by a loudspeaker? */
import { badArgument, badModel, NotSupportedError } from "./engine-error.js";
import { PLAYBACK, SYNTHETIC } from "./gen/kernel-exports.js";
import type { Kernels } from "./kernels.js";
import type { ModelFile, ModelSection } from "./model-file.js";
import { type NetworkWeights, weightsOf } from "./network.js";
import type { AttackKind } from "./port.js";
import { type FrameRows, windowSlackFrames } from "./stream-kernel.js";

/** One network as the model carries it. Crosses threads. */
export interface AttackModel {
  readonly kind: AttackKind;
  readonly revision: string;
  /** The features in its windows. */
  readonly rows: FrameRows;
  /** By how much the voice-activity threshold is lowered. */
  readonly lowered: number;
  /** Of the first stage of its residual network, if it has one. */
  readonly channels?: number;
  readonly weights: NetworkWeights;
  /** llr = slope · score + offset. */
  readonly slope: number;
  readonly offset: number;
  readonly genuine: GenuineRatios;
}

/** Upper tail of genuine speech: its ratio, less the margin for low reliability, exceeds location + scale · x at a rate of exp(-x). */
export interface GenuineRatios {
  readonly location: number;
  readonly scale: number;
}

export const isGenuineRatios = (value: unknown): value is GenuineRatios => {
  const { location, scale } = (value ?? {}) as Partial<GenuineRatios>;
  return Number.isFinite(location) && Number.isFinite(scale) && scale! > 0;
};

/** Holds for any calibrated ratio. */
const anyCalibrated: GenuineRatios = { location: 0, scale: 1 };

/** The ratio that genuine speech exceeds at this rate. */
export const reachOf = ({ location, scale }: GenuineRatios, rate: number): number => location - scale * Math.log(rate);

/** Whether attacks can be found: no threshold is more than twice what any calibrated ratio needs. */
export const findsAttacks = (genuine: GenuineRatios): boolean =>
  [1e-2, 1e-4].every((rate) => reachOf(genuine, rate) <= 2 * reachOf(anyCalibrated, rate));

/** What the kernels expect. Speech played into a hall is so blurred that the usual threshold missed a third of it (training/spoof/LOG.md 12). */
const shapes: readonly (Pick<AttackModel, "kind" | "rows" | "lowered" | "channels"> & {
  readonly architecture: string;
  readonly number: number;
})[] = [
  { kind: "synthetic", number: SYNTHETIC, architecture: "attack-7", rows: "detail", lowered: 0, channels: 24 },
  { kind: "synthetic", number: SYNTHETIC, architecture: "attack-5", rows: "detail", lowered: 0, channels: 32 },
  { kind: "playback", number: PLAYBACK, architecture: "attack-1", rows: "mel", lowered: 3 },
];
const numberOf = (kind: AttackKind): number => shapes.find((shape) => shape.kind === kind)!.number;

/** The networks were trained on clips of up to 3.2 s. */
export const attackWindowFrames = 320;

function attackModel(section: ModelSection): AttackModel {
  const { architecture, attack, calibration, genuine = anyCalibrated } = section.description;
  const ofKind = shapes.filter(({ kind }) => kind === attack);
  if (ofKind.length === 0) throw badModel(`unknown kind of attack network: ${String(attack)}`);
  const shape = ofKind.find((one) => one.architecture === architecture);
  if (!shape) {
    const expected = ofKind.map((one) => one.architecture).join(" or ");
    throw badModel(`the ${String(attack)} attack network must be ${expected}, got ${String(architecture)}`);
  }
  const { kind, rows, lowered, channels } = shape;
  const [slope, offset] = Array.isArray(calibration) ? (calibration as unknown[]) : [];
  if (!Number.isFinite(slope) || !Number.isFinite(offset))
    throw badModel(`the ${kind} attack network has no calibration`);
  if ((slope as number) <= 0) throw badModel(`the slope of the ${kind} attack network must be above 0, got ${slope}`);
  if (!isGenuineRatios(genuine)) throw badModel(`the ${kind} attack network has no measure of genuine speech`);
  if (!findsAttacks(genuine))
    throw badModel(`the thresholds of the ${kind} attack network are too high for any attack`);
  return {
    kind,
    revision: section.revision,
    rows,
    lowered,
    ...(channels && { channels }),
    weights: weightsOf(section.tensors, (bytes) => new Uint8Array(bytes)),
    slope: slope as number,
    offset: offset as number,
    genuine,
  };
}

export function attackModelsOf(model: ModelFile): AttackModel[] {
  const known = (section: ModelSection) =>
    shapes.some(({ architecture }) => architecture === section.description.architecture);
  return [...model.sections.values()].filter(known).map(attackModel);
}

export class AttackNetworks {
  readonly #kernels: Kernels;
  readonly #models: readonly AttackModel[];

  /** Reserves its slots if the model has attack networks. The kernels must not be sealed yet. */
  constructor(kernels: Kernels, models: readonly AttackModel[]) {
    this.#kernels = kernels;
    this.#models = models;
    const { run } = kernels;
    if (models.length === 0) return;
    const channels = models.find((model) => model.channels)?.channels ?? 24;
    if (run.attackReserve(attackWindowFrames + windowSlackFrames, channels) !== 1)
      throw badModel("the kernels cannot run the attack networks");
    for (const { kind, weights } of models) {
      const { tensors } = weights;
      const number = numberOf(kind);
      if (tensors.length !== run.attackTensors(number))
        throw badModel(`the ${kind} attack network needs ${run.attackTensors(number)} tensors, got ${tensors.length}`);
      for (const [i, { offset, bytes }] of tensors.entries()) {
        if (bytes !== run.attackTensorBytes(number, i))
          throw badModel(
            `tensor ${i} of the ${kind} attack network has ${bytes} bytes, expected ${run.attackTensorBytes(number, i)}`,
          );
        kernels.write(run.attackStaging(), weights.bytes.subarray(offset, offset + bytes));
        if (run.attackTake(number, i) !== 1) throw badModel(`the kernels cannot run the ${kind} attack network`);
      }
    }
  }

  /** The network's score of one window: higher is more like an attack. `null` when the window is too short to tell. */
  score(kind: AttackKind, features: Float32Array): number | null {
    const { run } = this.#kernels;
    const model = this.#models.find((known) => known.kind === kind);
    if (!model) throw new NotSupportedError(`the model has no network for ${kind} attacks`);
    const frames = features.length / (model.rows === "detail" ? run.detailBins() : run.featureBins());
    if (frames < run.attackMinFrames()) return null;
    if (frames > run.attackMaxFrames()) throw badArgument(`a window of ${frames} frames is too long`);
    try {
      this.#kernels.writeFloats(run.attackFeatures(), features);
      const score = run.attackScore(numberOf(kind), frames);
      if (!Number.isFinite(score)) throw badArgument(`a window of ${frames} frames gives no score`);
      return score;
    } finally {
      run.attackWipe();
    }
  }
}
