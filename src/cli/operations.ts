import type { Operations } from "../contract/operations.js";
import { loadConfig } from "../server/config.js";
import { boxAddress } from "./box-address.js";
import { CommandError } from "./command-error.js";
import { openLocalStore, type StoreUse } from "./local-store.js";
import type { PlaceOptions } from "./shared-options.js";

interface OpenOperations {
  readonly operations: Operations;
  /** Runs jobs in this process; absent if a box runs them. */
  workOnJobs?(): Promise<void>;
  close(): Promise<void>;
}

/** Runs `work` on the operations of the box that `--url` names, else of this process on the local store, and closes them afterwards. */
export async function withOperations<T>(
  options: PlaceOptions & StoreUse,
  work: (opened: OpenOperations) => Promise<T>,
): Promise<T> {
  const opened = await (options.url ? remote(options.url, options) : local(options));
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

async function remote(url: string, { token, clientId, clientSecret }: PlaceOptions): Promise<OpenOperations> {
  boxAddress(url);
  if ((clientId === undefined) !== (clientSecret === undefined))
    throw new CommandError("give both --client-id and --client-secret");
  const credentials = clientId && clientSecret && !token ? { credentials: { clientId, clientSecret } } : {};
  const { connect } = await import("../client/connect.js");
  return { operations: connect({ url, ...(token ? { token } : {}), ...credentials }), async close() {} };
}

async function local({ store: location, creates }: PlaceOptions & StoreUse): Promise<OpenOperations> {
  const config = loadConfig({ flags: { store: location } });
  const store = await openLocalStore(config, {
    creates,
    ifMissing: "check --store and VIVAVOCE_STORE; `vivavoce enroll` creates a store",
    ifInUse: "if that is a running box, add --url http://127.0.0.1:8080",
  });
  // Loaded only here, so that commands that call a box or print help start fast.
  const [{ OpenModels }, { VoiceprintsProcessor }, { readRecording }, { toWav }] = await Promise.all([
    import("../server/open-models.js"),
    import("../processor/voiceprints-processor.js"),
    import("../audio/index.js"),
    import("../audio/to-wav.js"),
  ]);
  const models = await OpenModels.open(config, { workers: 1, calibration: config.calibration ?? null }).catch(
    async (error: unknown) => {
      await store.close();
      throw error;
    },
  );
  const processor = new VoiceprintsProcessor({
    engine: models.engine,
    models,
    store,
    readRecording,
    toWav,
    configurationSets: config.configsets,
    retention: { audioSeconds: config.mediaRetentionSeconds },
  });
  return {
    operations: processor,
    workOnJobs: () => processor.workOnJobs(),
    async close() {
      await processor.close();
      await models.close();
      await store.close();
    },
  };
}
