import { type NamesOf, optionsFault } from "../contract/options-fault.js";
import { attackModelsOf } from "./attack-network.js";
import { calibrationOf } from "./calibration.js";
import { attacksUnder, readCalibrationFile } from "./calibration-file.js";
import { badArgument, badModel, EngineError } from "./engine-error.js";
import { InThread } from "./in-thread.js";
import { type ModelFile, readModelFile } from "./model-file.js";
import { ModelFileError } from "./model-file-error.js";
import { weightsOf } from "./network.js";
import { bytesAt, calibrationSetting, compileKernels, parallelism, readModel, shared } from "./platform.js";
import { Pool } from "./pool.js";
import type { PoolOptions } from "./pool-options.js";
import type { Engine } from "./port.js";
import type { ThreadModel } from "./thread-work.js";
import { mostWorkers } from "./threads.js";
import { VoiceEngine } from "./voice-engine.js";

/** The model, its calibration and the number of threads. */
export interface EngineOptions extends Partial<PoolOptions> {
  /** A path, a URL (in Node only `file:`) or the bytes of a model file; the package's own by default. */
  readonly model?: string | URL | Uint8Array;
  /** The same for a calibration file; in Node $VIVAVOCE_CALIBRATION by default. If neither is set, or `null`: the model's own. */
  readonly calibration?: string | URL | Uint8Array | null;
  /** Number of workers, at most 256; 0 runs everything in the calling thread. By default the number of cores, at most 8. */
  readonly workers?: number;
}

export const engineOptionNames: NamesOf<EngineOptions> = {
  model: true,
  calibration: true,
  workers: true,
  maxCalls: true,
  workLimitMs: true,
  graceMs: true,
};

function count(value: number | undefined, fallback: number, least: number, most: number, what: string): number {
  if (value === undefined) return fallback;
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw badArgument(`${what} must be a whole number from ${least} to ${most}, got ${value}`);
}

/** The last tensor is a bias, as long as the embedding. */
function dimensionsOf({ network }: ModelFile): number {
  const { dimensions } = network.description;
  const given = network.tensors.at(-1)!.shape[0]!;
  if (dimensions === given) return given;
  throw badModel(`dimensions of the model must be ${given}, the length of its embeddings, got ${String(dimensions)}`);
}

function windowSecondsOf(model: ModelFile): number {
  const { windowSeconds } = model.network.description;
  if (typeof windowSeconds === "number" && windowSeconds >= 0.5 && windowSeconds <= 9) return windowSeconds;
  throw badModel(`windowSeconds of the model must be 0.5 to 9, got ${String(windowSeconds)}`);
}

function checkSource(from: unknown, what: string): void {
  if (from === undefined || from === null || typeof from === "string") return;
  if (from instanceof URL || from instanceof Uint8Array) return;
  throw badArgument(`${what} must be a path, a URL or the bytes of a file (Uint8Array), got ${nameOf(from)}`);
}

const nameOf = (value: unknown): string =>
  typeof value === "object" ? Object.prototype.toString.call(value).slice(8, -1) : typeof value;

/** An error about the contents of a file names the file. */
async function naming<T>(file: unknown, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (typeof file !== "string" && !(file instanceof URL)) throw error;
    if (error instanceof ModelFileError) throw new ModelFileError(error.code, `${file}: ${error.message}`);
    if (error instanceof EngineError && error.code === "BAD_CALIBRATION")
      throw new EngineError(error.code, `${file}: ${error.message}`);
    throw error;
  }
}

/** Everything in the file that can be wrong is found here, so that the error names the file. */
async function ownCalibration(from: string | URL | Uint8Array, model: ModelFile) {
  const bytes = from instanceof Uint8Array ? from : await bytesAt(from);
  const own = await readCalibrationFile(bytes, model.revision);
  return { ...own, attacks: attacksUnder(own.attacks, attackModelsOf(model)) };
}

/** An engine of this package. */
export interface OpenedEngine extends Engine {
  /** The WebAssembly memory of its threads. */
  memoryBytes(): Promise<number>;
}

/** Opens an engine: kernels compiled, model checked, workers loaded. Close it when done. */
export async function openEngine(options: EngineOptions = {}): Promise<OpenedEngine> {
  const fault = optionsFault(options, engineOptionNames);
  if (fault !== null) throw badArgument(fault);
  const workers = count(options.workers, Math.min(8, parallelism()), 0, mostWorkers, "workers");
  checkSource(options.model, "model");
  checkSource(options.calibration, "calibration");
  const [module, model] = await Promise.all([
    compileKernels(),
    options.model instanceof Uint8Array
      ? readModelFile(options.model)
      : naming(options.model, readModel(options.model).then(readModelFile)),
  ]);
  const own = options.calibration === undefined ? calibrationSetting() : options.calibration;
  const calibrated = own
    ? await naming(own, ownCalibration(own, model))
    : {
        calibration: calibrationOf(model.calibration),
        attacks: attackModelsOf(model),
        revision: model.calibrationRevision,
      };
  const dimensions = dimensionsOf(model);
  const windowSeconds = windowSecondsOf(model);
  const threadModel: ThreadModel = {
    scoring: {
      dimensions,
      revision: model.revision,
      voiceClass: model.voiceClass,
      calibration: calibrated.calibration,
    },
    speaker: {
      architecture: model.architecture,
      frontEnd: model.frontEnd,
      program: model.program,
      weights: weightsOf(model.network.tensors, shared),
    },
    windowFrames: Math.round(windowSeconds * 100),
    attacks: calibrated.attacks,
  };
  const threads =
    workers === 0
      ? new InThread(module, threadModel)
      : await Pool.start(module, threadModel, {
          workers,
          maxCalls: count(options.maxCalls, 64 * workers, 1, 1e6, "maxCalls"),
          workLimitMs: count(options.workLimitMs, 60_000, 1, 2 ** 31 - 1, "workLimitMs"),
          graceMs: count(options.graceMs, 500, 0, 2 ** 31 - 1, "graceMs"),
        });
  const info = {
    calibrationModelId: own ? `${model.family}+${calibrated.revision.slice(0, 8)}` : model.family,
    calibrationRevision: calibrated.revision,
    revision: model.revision,
    dimensions,
    windowSeconds,
    attacks: threadModel.attacks.map(({ kind }) => kind),
  };
  return new VoiceEngine(info, threadModel, module, threads);
}
