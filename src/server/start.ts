import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readRecording } from "../audio/index.js";
import { toWav } from "../audio/to-wav.js";
import { messagesOf, stackOf } from "../contract/error-causes.js";
import { EngineError } from "../engine/index.js";
import type { Engine } from "../engine/port.js";
import { VoiceprintsProcessor } from "../processor/voiceprints-processor.js";
import type { Store } from "../store/port.js";
import type { LostKeys } from "../store/sql/lost-keys.js";
import type { SealedStore } from "../store/sql/store.js";
import { createTokenApp, type TokenApp } from "../token/app.js";
import { auditTo } from "../token/audit.js";
import { OPERATOR_PAGE } from "../token/own-pages.js";
import { createPeerAddress } from "../token/peer-address.js";
import { createTokenService, type TokenService } from "../token/service.js";
import { createVerifier, type TrustedIssuer } from "../token/verify.js";
import { ConfigError, isFolder, ofSetting, type ServerConfig } from "./config.js";
import { doneWithin } from "./done-within.js";
import { endFirstRun, FIRST_SCOPE, type FirstApplication, type FirstOwner, firstOwner, firstRun } from "./first-run.js";
import { closedGuard, type Guard, openGuard, tokenGuard } from "./guard.js";
import { type Page, servePage } from "./http/page.js";
import { serveFolder } from "./http/static-files.js";
import { jsonLog, type Log, limitedLog } from "./log.js";
import { OpenModels } from "./open-models.js";
import { openConfiguredStore } from "./open-store.js";
import { createOperatorApp } from "./operator/operator-routes.js";
import { Service } from "./service.js";
import { createTelephony, routeLines } from "./telephony.js";
import { VERSION } from "./version.js";

/** The result of a start. */
export interface FirstStart {
  readonly url: string;
  /**
   * The application created at the first start, with its secret; `null` afterwards or if tokens come from another
   * issuer.
   */
  readonly firstApplication: FirstApplication | null;
  /** The owner created at the first start, with the password for the operator view; `null` afterwards. */
  readonly firstOwner: FirstOwner | null;
  /** `null` if tokens come from another issuer. */
  readonly operatorUrl: string | null;
}

/** A running box. */
export interface Box extends FirstStart {
  /** All plain HTTP routes, callable without a port. */
  readonly app: Service["app"];
  /** Ports of the telephone lines that have their own, by line name. */
  readonly linePorts: ReadonlyMap<string, number>;
  reloadTls(): void;
  /** Finishes accepted calls, then closes everything. True if nothing was cut off. */
  stop(): Promise<boolean>;
}

const EXPIRE_EVERY_MS = 600_000;
const LOOK_AT_QUEUE_EVERY_MS = 1000;
/** For results of telephone calls that were cut off by a stop, and the last attempts of their webhooks. */
const LATE_RESULTS_SECONDS = 5;
/** A replica that began a first start has finished it by then, or is dead. */
const OTHER_REPLICAS_START_MS = 60_000;

/** Parts of a box that a program can replace. */
export interface BoxParts {
  readonly log?: Log;
  /** By default an engine with a worker pool; the caller closes an engine that it passes. */
  readonly engine?: Engine;
  /** Saves the secrets of a first start. The box becomes ready, and the first start is over, when this resolves. */
  readonly keepSecrets?: (first: FirstStart) => Promise<void>;
}

/** Opens store and engine, and serves the contract from them. */
export async function startBox(config: ServerConfig, parts: BoxParts = {}): Promise<Box> {
  if (!config?.limits || !config.log || !config.auth)
    throw new ConfigError("startBox needs a complete configuration: startBox(loadConfig({ flags: { port: 8080 } }))");
  const log = parts.log ?? jsonLog(config.log.level);
  const opened: (() => Promise<unknown> | unknown)[] = [];
  const closeAll = async () => {
    for (const close of opened.splice(0).reverse()) await close();
  };
  try {
    const store = await openConfiguredStore(config);
    opened.push(() => store.close());
    warnOfLostKeys(store, log);
    const calibration = config.calibration === undefined ? undefined : readCalibration(config.calibration);
    const { concurrentAudio, liveCalls } = config.limits;
    const room = {
      workers: concurrentAudio,
      maxCalls: 64 * concurrentAudio + 4 * liveCalls,
      calibration: calibration ?? null,
    };
    const models = await OpenModels.open(config, room, parts.engine, log).catch((error: unknown) => {
      if (!(error instanceof EngineError) || error.code !== "BAD_CALIBRATION") throw error;
      throw new ConfigError(`calibration: ${config.calibration}: ${error.message}`);
    });
    // Closed after the store, which lets the current job finish: a job without an engine would fail.
    opened.unshift(() => models.close());
    const { engine } = models;
    const processor = processorOf(config, models, store);
    opened.push(() => processor.close());

    // The issuer is the public address, which is known only once the service listens if the port is 0. Both are set in
    // the same turn as the listening event, before any request can arrive.
    let guard: Guard = closedGuard;
    let started = false;
    const readiness = loggedChanges(log);
    const storeAnswers = askedOnceASecond(store);
    let tokenApp: TokenApp | null = null;
    let operatorApp: ReturnType<typeof createOperatorApp> | null = null;
    const page = await pageOf(config.page, calibration, log);
    const boxGuard: Guard = { admit: (authorization, address) => guard.admit(authorization, address) };
    const telephony = createTelephony(config, {
      processor,
      dispatcher: () => service.dispatcher,
      guard: boxGuard,
      log,
      publicUrl: () => service.url,
    });
    const service: Service = new Service(config, {
      operations: processor,
      guard: boxGuard,
      announce: telephony.announce,
      log,
      version: VERSION,
      ready: async () => {
        if (!started) throw new Error("still starting");
        await readiness(() => ready(store, models, storeAnswers));
      },
      model: engine.model,
      fieldRates: () => processor.fieldRates(),
      ...(page ? { page } : {}),
      ...(config.auth.ownIssuer
        ? {
            tokens: {
              owns: (path) => tokenApp!.owns(path),
              fetch: (request, env) => tokenApp!.fetch(request, env as never),
            },
            operator: (request) => operatorApp!.fetch(request),
          }
        : {}),
    });
    routeLines(service, telephony.switchboard);
    await service.listen();
    opened.push(() => service.stop());
    const tokens = config.auth.ownIssuer
      ? createTokenService({
          documents: store.documents,
          issuer: service.url,
          // Its warnings are refusals, which strangers can cause.
          audit: auditTo({ ...log, warn: limitedLog(log).warn }),
          pages: [OPERATOR_PAGE],
        })
      : null;
    guard = createGuard(config, tokens);
    tokenApp = tokens && createTokenApp(tokens, { peerAddress: createPeerAddress(config.trustProxy) });
    operatorApp =
      tokens &&
      tokenApp &&
      createOperatorApp({
        store,
        operations: processor,
        queue: service.queue,
        load: service.metrics.load,
        fieldRates: () => processor.fieldRates(),
        liveCalls: service.liveCalls,
        toolingUser: tokenApp.toolingUser,
        applications: tokens.applications,
        openScopes: config.auth.required ? [] : [FIRST_SCOPE],
        version: VERSION,
        modelRevision: engine.model.revision,
        printsByModel: (scope) => processor.printsByModel(scope),
        canBeScored: (revision) => models.has(revision),
        calibrationRevision: engine.model.calibrationRevision,
        evaluationFile: config.evaluation,
        files: operatorFiles(),
        log,
        audit: tokens.audit,
      });

    const abandonedAfterMs = kindOf(config.store) === "postgres" ? OTHER_REPLICAS_START_MS : 0;
    const firstApplication =
      tokens && config.auth.required ? await firstRun(tokens, store.documents, abandonedAfterMs) : null;
    const owner = tokens && (await firstOwner(tokens, store.documents, abandonedAfterMs));

    await processor.workOnJobs();
    const stopLooking = lookRegularly(processor, service, models, log);

    const { switchboard } = telephony;
    opened.push(() => switchboard.destroy());
    await switchboard.start();

    const first: FirstStart = {
      url: service.url,
      firstApplication,
      firstOwner: owner,
      operatorUrl: tokens && `${service.url}${OPERATOR_PAGE.path}`,
    };
    if (firstApplication || owner) {
      await parts.keepSecrets?.(first);
      await endFirstRun(store.documents);
    }
    started = true;
    log.info("listening", {
      address: service.url,
      version: VERSION,
      model: engine.model.revision,
      calibration: engine.model.calibrationRevision,
      store: kindOf(config.store),
    });
    if (!config.auth.required)
      log.warn("tokens are off: anyone on this machine can use the service", { address: service.url });
    return {
      ...first,
      app: service.app,
      linePorts: switchboard.ports,
      reloadTls: () => service.reloadTls(),
      async stop() {
        stopLooking();
        opened.splice(-2); // The lines and the service itself; the outcome of the service is returned.
        const callsOver = switchboard.stop();
        // The results of the last calls may still be on their way to webhooks when the service has stopped.
        const delivered = doneWithin(config.limits.stopSeconds, callsOver);
        const clean = await service.stop();
        await delivered;
        switchboard.destroy();
        await doneWithin(LATE_RESULTS_SECONDS, callsOver);
        await closeAll();
        return clean;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

function processorOf(config: ServerConfig, models: OpenModels, store: Store): VoiceprintsProcessor {
  const { mediaBytes, jobsPerScope, jobBytesPerScope } = config.limits;
  return new VoiceprintsProcessor({
    engine: models.engine,
    models,
    store,
    readRecording,
    ...(config.compressedAudio ? { toWav } : {}),
    configurationSets: config.configsets,
    retention: { audioSeconds: config.mediaRetentionSeconds },
    limits: { mediaBytes, jobsPerScope, jobBytesPerScope },
    allowExport: config.allowExport,
  });
}

/** Deletes expired data, samples the load and logs faults of the engine, until the returned function is called. */
function lookRegularly(processor: VoiceprintsProcessor, service: Service, models: OpenModels, log: Log): () => void {
  const expiry = setInterval(() => {
    processor.expire().catch((error) => log.error("expired data could not be deleted", { stack: stackOf(error) }));
  }, EXPIRE_EVERY_MS);
  expiry.unref();
  let loggedFault: string | null = null;
  const looking = setInterval(() => {
    service.metrics.load.sample();
    const { fault } = models;
    if (fault !== null && fault !== loggedFault) log.error("the engine cannot start its workers", { reason: fault });
    loggedFault = fault;
  }, LOOK_AT_QUEUE_EVERY_MS);
  looking.unref();
  return () => {
    clearInterval(expiry);
    clearInterval(looking);
  };
}

function createGuard(config: ServerConfig, tokens: TokenService | null): Guard {
  if (!config.auth.required) return openGuard;
  const foreign = config.auth.issuers.map(
    ({ jwks: keys, scopesClaim: gkScopesClaim, ...same }): TrustedIssuer => ({ ...same, keys, gkScopesClaim }),
  );
  return tokenGuard(createVerifier({ issuers: [...(tokens ? [tokens.runtimeIssuer] : []), ...foreign] }));
}

const lostKeysOf = (store: Store): LostKeys | undefined => (store as Partial<SealedStore>).keys?.lost;

function warnOfLostKeys(store: Store, log: Log): void {
  const lost = lostKeysOf(store);
  if (!lost) return;
  for (const { reason } of lost.scopes) log.error("a scope cannot be used until its keys are restored", { reason });
  if (lost.profiles === 0) return;
  const examples = lost.examples.map(({ profileId }) => profileId).join(", ");
  log.error("keys are missing: restore them or enroll these profiles again; until then the profiles cannot be used", {
    reason: `${lost.profiles} of ${lost.of} profiles, for example ${examples}`,
  });
}

/** The answer of /readyz says only that the box is not ready: the reason is in the log, once until it changes. */
function loggedChanges(log: Log): (look: () => Promise<void>) => Promise<void> {
  let logged: string | null = null;
  return async (look) => {
    try {
      await look();
    } catch (error) {
      const reason = messagesOf(error);
      if (reason !== logged) log.error("not ready", { reason });
      logged = reason;
      throw error;
    }
    if (logged !== null) log.info("ready again");
    logged = null;
  };
}

/** Anybody may ask for readiness as often as they like. A store that answered is asked again after a second. */
function askedOnceASecond(store: Store): () => Promise<void> {
  let answeredAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - answeredAt < 1000) return;
    await store.documents.get("server", "first-run");
    answeredAt = performance.now();
  };
}

async function ready(store: Store, { engine, fault }: OpenModels, storeAnswers: () => Promise<void>): Promise<void> {
  if (fault) throw new Error(fault);
  const lost = lostKeysOf(store);
  // With some of its profiles a box is of use; with none it would only fail the calls that another could answer.
  if (lost && lost.profiles > 0 && lost.profiles === lost.of) throw new Error("the keys of all profiles are missing");
  await storeAnswers();
  // The loaded model computes a threshold: an engine that has lost the model fails here.
  engine.threshold(0.01, { ratios: { unlike: 0, identical: 1 }, impostors: { center: 0, spread: 1 } });
}

const readCalibration = (path: string): Uint8Array =>
  ofSetting(`calibration: ${path}`, () => new Uint8Array(readFileSync(path)));

/** A page whose model differs from the box's uses that model's own calibration. */
async function pageOf(folder: string | undefined, calibration: Uint8Array | undefined, log: Log): Promise<Page | null> {
  try {
    return await servePage(folder, calibration);
  } catch (error) {
    if (!(error instanceof EngineError && error.code === "BAD_CALIBRATION")) throw error;
    log.warn("the page uses its model's own calibration, because the box's calibration is for another model", {
      reason: error.message,
    });
    return servePage(folder);
  }
}

/** The files of the operator view are in `dist/operator`. Its data can be read even if they were not built. */
function operatorFiles(): (request: Request) => Response | null {
  const folder = fileURLToPath(new URL("../operator/", import.meta.url));
  return existsSync(folder) ? serveFolder(folder, OPERATOR_PAGE.path) : () => null;
}

/** The kind of a store, without the password that its address may contain. */
const kindOf = (store: string) => (store === "memory" ? "memory" : isFolder(store) ? "embedded" : "postgres");
