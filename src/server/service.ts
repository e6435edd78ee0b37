import { createPeerAddress, type PeerAddress } from "../token/peer-address.js";
import { type AppParts, createApp, createNodeHandler } from "./app.js";
import type { ServerConfig } from "./config.js";
import { Dispatcher } from "./dispatch.js";
import { reasonOf } from "./file-fault.js";
import type { Guard } from "./guard.js";
import { createTranscoder, type Transcoder } from "./http/transcoder.js";
import { CallRates } from "./limits/call-rates.js";
import { UploadBudget } from "./limits/upload-budget.js";
import { WorkQueue } from "./limits/work-queue.js";
import { type Listener, listen, type NodeRequest } from "./listen.js";
import type { Log } from "./log.js";
import { ServerMetrics } from "./metrics.js";
import { missingOperations, type Operations } from "./operations.js";

export interface ServiceParts {
  readonly operations: Operations;
  readonly guard: Guard;
  readonly log: Log;
  readonly version: string;
  readonly ready: () => Promise<void>;
  readonly tokens?: AppParts["tokens"];
  readonly page?: AppParts["page"];
  readonly operator?: AppParts["operator"];
}

/** Operations behind every transport, not yet listening. */
export class Service {
  readonly dispatcher: Dispatcher;
  readonly queue: WorkQueue;
  readonly metrics: ServerMetrics;
  readonly app: ReturnType<typeof createApp>;
  readonly #config: ServerConfig;
  readonly #parts: ServiceParts;
  readonly #peerAddress: PeerAddress;
  readonly #transcode: Transcoder;
  #listener: Listener | null = null;

  constructor(config: ServerConfig, parts: ServiceParts) {
    const missing = missingOperations(parts.operations);
    if (missing.length > 0) throw new TypeError(`operations are missing: ${missing.join(", ")}`);
    this.#config = config;
    this.#parts = parts;
    this.#peerAddress = createPeerAddress(config.trustProxy);
    const { limits } = config;
    const queue = new WorkQueue(limits.concurrentAudio, limits.queuedAudio);
    const metrics = new ServerMetrics(queue);
    this.queue = queue;
    this.metrics = metrics;
    this.dispatcher = new Dispatcher({
      operations: parts.operations,
      guard: parts.guard,
      queue,
      rates: new CallRates(limits.callsPerSecond, limits.callBurst),
      uploads: new UploadBudget(limits.uploadingBytes),
      metrics,
      log: parts.log,
      limits,
    });
    this.#transcode = createTranscoder(this.dispatcher, limits);
    this.app = createApp({
      dispatcher: this.dispatcher,
      guard: parts.guard,
      metrics,
      metricsAccess: config.metrics.access,
      transcode: this.#transcode,
      version: parts.version,
      peerAddress: this.#peerAddress,
      publicUrl: () => this.url,
      ready: parts.ready,
      ...(parts.tokens ? { tokens: parts.tokens } : {}),
      ...(parts.page ? { page: parts.page } : {}),
      ...(parts.operator ? { operator: parts.operator } : {}),
    });
  }

  /** Where callers reach it. */
  get url(): string {
    const { publicUrl, host, tls } = this.#config;
    if (publicUrl) return new URL(publicUrl).origin;
    const port = this.#listener?.port ?? this.#config.port;
    // Listening on every address is none that a caller could use.
    const address = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
    return `${tls ? "https" : "http"}://${address.includes(":") ? `[${address}]` : address}:${port}`;
  }

  async listen(): Promise<void> {
    const { limits, host, port, tls } = this.#config;
    this.#listener = await listen({
      host,
      port,
      tls,
      headerSeconds: limits.headerSeconds,
      readSeconds: (request) => (isUpload(request) ? limits.mediaReadSeconds : limits.readSeconds),
      handler: createNodeHandler(this.app, {
        dispatcher: this.dispatcher,
        transcode: this.#transcode,
        messageBytes: limits.messageBytes,
        peerAddress: this.#peerAddress,
        log: this.#parts.log,
        origins: this.#config.cors.origins,
      }),
    });
  }

  /** Takes up a new certificate; one that cannot be used leaves the old one in place. */
  reloadTls(): void {
    try {
      this.#listener?.reloadTls();
    } catch (error) {
      this.#parts.log.error("the certificate was not taken up", { reason: reasonOf(error) });
    }
  }

  /** Answers what was accepted, refuses what is new, then closes. True when all was answered in time. */
  async stop(): Promise<boolean> {
    const { stopSeconds } = this.#config.limits;
    this.#parts.log.info("stopping", { running: this.dispatcher.running });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), stopSeconds * 1000);
    });
    const answered = (async () => {
      await Promise.all([this.dispatcher.stop(), this.#listener?.close()]);
      return true as const;
    })();
    const inTime = await Promise.race([answered, late]);
    clearTimeout(timer);
    if (!inTime) this.#parts.log.warn("not all was answered in time", { running: this.dispatcher.running });
    this.#listener?.destroy();
    return inTime;
  }
}

function isUpload(request: NodeRequest): boolean {
  const path = (request.url ?? "").split("?")[0]!;
  return path === "/v1/audios" || path.endsWith(".MediaProcessor/AddMediaSegment");
}
