import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Operations } from "../contract/operations.js";
import { isFolder, loadConfig, type ServerConfig } from "../server/config.js";
import { StoreError } from "../store/errors.js";
import { boxAddress } from "./box-address.js";
import { CommandError } from "./command-error.js";
import type { PlaceOptions } from "./shared-options.js";

interface OpenOperations {
  readonly operations: Operations;
  /** Runs jobs in this process; absent if a box runs them. */
  workOnJobs?(): Promise<void>;
  close(): Promise<void>;
}

/** For commands that add to a store, and may be the first to do so. */
interface StoreUse {
  readonly creates?: boolean;
}

/** Runs `work` on the operations, and closes them afterwards. */
export async function withOperations<T>(
  options: PlaceOptions,
  work: (opened: OpenOperations) => Promise<T>,
  use?: StoreUse,
): Promise<T> {
  const opened = await openOperations(options, use);
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

/** The operations of the box that `--url` names, else of this process on the local store. */
export function openOperations(options: PlaceOptions, use: StoreUse = {}): Promise<OpenOperations> {
  return options.url ? remote(options.url, options) : local(options.store, use);
}

/** A folder without a store would become one, and a mistyped name would look like a store in which nobody is enrolled. */
export function assertStoreExists({ store }: Pick<ServerConfig, "store">, hint?: string): void {
  if (isFolder(store) && !existsSync(join(store, "database")))
    throw new CommandError(`there is no store in ${store}`, hint);
}

async function remote(url: string, { token, clientId, clientSecret }: PlaceOptions): Promise<OpenOperations> {
  boxAddress(url);
  if ((clientId === undefined) !== (clientSecret === undefined))
    throw new CommandError("give both --client-id and --client-secret");
  const credentials = clientId && clientSecret && !token ? { credentials: { clientId, clientSecret } } : {};
  const { connect } = await import("../client/connect.js");
  return { operations: connect({ url, ...(token ? { token } : {}), ...credentials }), async close() {} };
}

async function local(location: string | undefined, { creates = false }: StoreUse): Promise<OpenOperations> {
  const config = loadConfig({ flags: { store: location } });
  if (!creates) assertStoreExists(config, "check --store and VIVAVOCE_STORE; `vivavoce enroll` creates a store");
  // Loaded only here, so that commands that call a box or print help start fast.
  const [{ openConfiguredStore }, { OpenModels }, { VoiceprintsProcessor }, { readRecording }, { toWav }] =
    await Promise.all([
      import("../server/open-store.js"),
      import("../server/open-models.js"),
      import("../processor/voiceprints-processor.js"),
      import("../audio/index.js"),
      import("../audio/to-wav.js"),
    ]);
  const store = await openConfiguredStore(config).catch((error: unknown) => {
    if (error instanceof StoreError && error.code === "locked") {
      throw new CommandError(
        `${config.store} is in use by another process`,
        "if that is a running box, add --url http://127.0.0.1:8080",
      );
    }
    throw error;
  });
  const models = await OpenModels.open(config, { workers: 1 }).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
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
