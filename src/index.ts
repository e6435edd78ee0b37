/**
 * vivavoce: voice biometrics on this machine. In Node and in browsers alike.
 *
 *   const voice = await openVoiceprints();
 *   await voice.enroll("alice", [wav1, wav2, wav3]);
 *   const { decision, score } = await voice.verify("alice", wav4);
 */
import { readRecording } from "./audio/index.js";
import { toWav } from "./audio/to-wav.js";
import { type EngineOptions, openEngine } from "./engine/index.js";
import type { Engine } from "./engine/port.js";
import { localAccess } from "./local-access.js";
import { VoiceprintsProcessor, type VoiceprintsProcessorOptions } from "./processor/voiceprints-processor.js";
import { createMemoryStore } from "./store/memory.js";
import type { Store } from "./store/port.js";
import { ConfigurationError, configurationSets, defaultConfigurationSetId } from "./voiceprint/configuration-set.js";
import { Voiceprints } from "./voiceprints.js";

export * from "./audio/index.js";
export * from "./contract/index.js";
export {
  EngineError,
  type EngineErrorCode,
  type EngineOptions,
  ModelFileError,
  NotSupportedError,
  openEngine,
} from "./engine/index.js";
export type * from "./engine/port.js";
export type { Clock, Ids, Limits, Retention } from "./processor/dependencies.js";
export type { ExportedProfile } from "./processor/export-profile.js";
export type { LiveCheck, LiveRequest, LiveState } from "./processor/live/live-check.js";
export { VoiceprintsProcessor, type VoiceprintsProcessorOptions } from "./processor/voiceprints-processor.js";
export { SealError, StoreError } from "./store/errors.js";
export { type IndexedDbStore, type IndexedDbStoreOptions, openIndexedDbStore } from "./store/indexeddb/store.js";
export { createMemoryStore } from "./store/memory.js";
export type { Store } from "./store/port.js";
export {
  builtInConfigurationSets,
  ConfigurationError,
  type ConfigurationOverrides,
  type ConfigurationSet,
  configurationSet,
} from "./voiceprint/configuration-set.js";
export type * from "./voiceprints.js";

type WithoutReader = Omit<VoiceprintsProcessorOptions, "readRecording" | "toWav" | "engine" | "store">;

/** What a processor is made of; what is left out is made for it. */
export interface CreateProcessorOptions extends WithoutReader {
  /** The engine with its worker pool by default. */
  readonly engine?: Engine;
  /** In memory by default. */
  readonly store?: Store;
}

/** A processor that is ready, and works on jobs. Its `close` also closes the engine and the store that it was not given. */
export async function createVoiceprintsProcessor(options: CreateProcessorOptions = {}): Promise<VoiceprintsProcessor> {
  return openProcessor(options, undefined);
}

/** What it opens it closes: with the processor, or at once when there will be none. */
async function openProcessor(
  options: CreateProcessorOptions,
  engineOptions: EngineOptions | undefined,
): Promise<VoiceprintsProcessor> {
  const engine = options.engine ?? (await openEngine(engineOptions));
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
        await options.onClose?.();
        await closeOwn();
      },
    });
    await processor.workOnJobs();
    return processor;
  } catch (error) {
    await closeOwn();
    throw error;
  }
}

/** What `openVoiceprints` takes. */
export interface OpenOptions extends CreateProcessorOptions {
  /** Which model and how many workers (`workers: 0` works in the calling thread), where no engine is given. */
  readonly engineOptions?: EngineOptions;
  /** Voices of one scope know nothing of those of another; `default` by default. */
  readonly scope?: string;
  /** The configuration set: `ivr-text-dependent` by default. */
  readonly configset?: string;
}

/**
 * Opens the easy door: engine and store as given, or an engine with workers and a store in memory. Its `close` closes what was not
 * given; a store or an engine of yours is closed by you, afterwards. To work on a box, use `connectVoiceprints` of `vivavoce/client`.
 */
export async function openVoiceprints(options: OpenOptions = {}): Promise<Voiceprints> {
  const { engineOptions, scope = "default", configset = defaultConfigurationSetId, ...rest } = options;
  if (!configurationSets(options.configurationSets).has(configset))
    throw new ConfigurationError(`unknown configuration set "${configset}"`);
  const processor = await openProcessor(rest, engineOptions);
  return new Voiceprints(processor, { scope, configset }, localAccess(processor));
}
