/**
 * vivavoce: voice biometrics on your own machine, in Node and in browsers.
 *
 *   const voice = await openVoiceprints();
 *   await voice.enroll("alice", [wav1, wav2, wav3]);
 *   const { decision, score } = await voice.verify("alice", wav4);
 */

import { readRecording } from "./audio/index.js";
import { toWav } from "./audio/to-wav.js";
import { nearest } from "./contract/nearest.js";
import { type NamesOf, optionsFault } from "./contract/options-fault.js";
import { type EngineOptions, openEngine } from "./engine/index.js";
import { engineOptionNames } from "./engine/open-engine.js";
import type { Engine } from "./engine/port.js";
import { localAccess } from "./local-access.js";
import { VoiceprintsProcessor, type VoiceprintsProcessorOptions } from "./processor/voiceprints-processor.js";
import { createMemoryStore } from "./store/memory.js";
import type { Store } from "./store/port.js";
import { typeName } from "./type-name.js";
import { ConfigurationError, configurationSets, defaultConfigurationSetId } from "./voiceprint/configuration-set.js";
import { Voiceprints } from "./voiceprints.js";

export * from "./audio/index.js";
export type { ToWav, ToWavOptions } from "./audio/port.js";
export * from "./contract/index.js";
export type { LiveOperations, LiveOptions } from "./contract/operations.js";
export {
  EngineError,
  type EngineErrorCode,
  type EngineOptions,
  ModelFileError,
  type ModelFileErrorCode,
  NotSupportedError,
  type OpenedEngine,
  openEngine,
} from "./engine/index.js";
export type * from "./engine/port.js";
export type { Clock, Ids, Limits, Retention } from "./processor/dependencies.js";
export type { LeftOut } from "./processor/galleries.js";
export type { LiveCheck, LiveState } from "./processor/live/live-check.js";
export type { LiveEnrollmentResult, LiveResult, LiveTask } from "./processor/live/live-task.js";
export type { Models } from "./processor/models.js";
export type { PrintsOfModel } from "./processor/prints-by-model.js";
export { VoiceprintsProcessor, type VoiceprintsProcessorOptions } from "./processor/voiceprints-processor.js";
export { SealError, type SealErrorCode, StoreError, type StoreErrorCode } from "./store/errors.js";
export { type IndexedDbStore, type IndexedDbStoreOptions, openIndexedDbStore } from "./store/indexeddb/store.js";
export { createMemoryStore, type MemoryStoreOptions } from "./store/memory.js";
export type * from "./store/port.js";
export {
  builtInConfigurationSets,
  ConfigurationError,
  type ConfigurationOverrides,
  type ConfigurationSet,
  configurationSet,
} from "./voiceprint/configuration-set.js";
export type { FieldRate, Verdict } from "./voiceprint/field-rates.js";
export type * from "./voiceprints.js";
export type { Settings } from "./workflow.js";

type WithoutReader = Omit<VoiceprintsProcessorOptions, "readRecording" | "toWav" | "engine" | "store">;

/** The parts of a processor. Defaults are created for those left out. */
export interface CreateProcessorOptions extends WithoutReader {
  /** By default a new engine with a worker pool. */
  readonly engine?: Engine;
  /** By default a store in memory. */
  readonly store?: Store;
}

/** Creates a processor that also works on jobs. Its `close` also closes an engine or store that it created itself. */
export async function createVoiceprintsProcessor(options: CreateProcessorOptions = {}): Promise<VoiceprintsProcessor> {
  checkOptions(options, processorOptions);
  return openProcessor(options, undefined);
}

const processorOptions: NamesOf<CreateProcessorOptions> = {
  engine: true,
  models: true,
  store: true,
  configurationSets: true,
  retention: true,
  limits: true,
  allowExport: true,
  clock: true,
  ids: true,
  onClose: true,
};

const openOptions: NamesOf<OpenOptions> = { ...processorOptions, engineOptions: true, scope: true, configset: true };

function checkOptions(options: object, known: object, place?: string, hint?: (name: string) => string): void {
  const fault = optionsFault(options, known, place, hint);
  if (fault !== null) throw new ConfigurationError(fault);
}

const hintForOpening = (name: string): string =>
  Object.hasOwn(engineOptionNames, name)
    ? ` (did you mean engineOptions.${name}?)`
    : nearest(name, Object.keys(openOptions));

/** Also for a promise that was not awaited: it would fail at the first call, with an error that does not say why. */
function checkParts({ engine, store }: CreateProcessorOptions): void {
  if (engine && typeof engine.stream !== "function")
    throw new ConfigurationError(`engine must be an opened engine: await openEngine(), got ${kindOf(engine)}`);
  if (store && typeof store.profiles !== "object")
    throw new ConfigurationError(`store must be an opened store: await openIndexedDbStore(), got ${kindOf(store)}`);
}

const kindOf = (value: unknown): string => (value instanceof Promise ? "a promise" : typeof value);

/** Closes the engine and store that it opened itself: with the processor, or at once if creating the processor fails. */
async function openProcessor(
  options: CreateProcessorOptions,
  ofEngine: EngineOptions | undefined,
): Promise<VoiceprintsProcessor> {
  checkParts(options);
  const engine = options.engine ?? (await openEngine(ofEngine));
  const store = options.store ?? createMemoryStore();
  const closeOwn = async () => {
    if (!options.store) await store.close();
    if (!options.engine) await engine.close();
  };
  try {
    const processor = new VoiceprintsProcessor({
      ...options,
      engine,
      store,
      readRecording,
      toWav,
      async onClose() {
        try {
          await options.onClose?.();
        } finally {
          await closeOwn();
        }
      },
    });
    await processor.workOnJobs();
    return processor;
  } catch (error) {
    await closeOwn();
    throw error;
  }
}

/** Options of `openVoiceprints`. */
export interface OpenOptions extends CreateProcessorOptions {
  /** Model and number of workers (`workers: 0` runs in the calling thread); ignored if `engine` is given. */
  readonly engineOptions?: EngineOptions;
  /** Voices of different scopes are never compared; `default` by default. */
  readonly scope?: string;
  /** The configuration set: `ivr-text-dependent` by default. */
  readonly configset?: string;
}

/**
 * Opens the easy door, by default with a new engine with workers and a store in memory. `close` closes these defaults; close an engine
 * or a store of your own afterwards. To work on a box, use `connectVoiceprints` of `vivavoce/client`.
 */
export async function openVoiceprints(options: OpenOptions = {}): Promise<Voiceprints> {
  checkOptions(options, openOptions, "", hintForOpening);
  const { engineOptions: ofEngine, scope = "default", configset = defaultConfigurationSetId, ...rest } = options;
  if (typeof scope !== "string" || scope === "")
    throw new ConfigurationError(
      `scope must be a non-empty string, got ${scope === "" ? "an empty one" : typeName(scope)}`,
    );
  if (ofEngine !== undefined) checkOptions(ofEngine, engineOptionNames, "engineOptions");
  const sets = configurationSets(options.configurationSets);
  if (!sets.has(configset))
    throw new ConfigurationError(`unknown configuration set "${configset}"; use one of ${[...sets.keys()].join(", ")}`);
  const processor = await openProcessor(rest, ofEngine);
  return new Voiceprints(processor, { scope, configset }, localAccess(processor));
}
