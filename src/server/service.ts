import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { LiveOperations, Operations } from "../contract/operations.js";
import type { ModelInfo } from "../engine/port.js";
import { CallRates } from "../token/call-rates.js";
import { createPeerAddress, type PeerAddress } from "../token/peer-address.js";
import { networkOf } from "../token/throttle.js";
import type { FieldRate } from "../voiceprint/field-rates.js";
import { createApp, createNodeHandler } from "./app.js";
import type { AppParts, WebApp } from "./app-parts.js";
import { ownUrl, type ServerConfig } from "./config.js";
import { Dispatcher } from "./dispatch.js";
import { doneWithin } from "./done-within.js";
import { reasonOf } from "./file-fault.js";
import { createTranscoder, type Transcoder } from "./http/transcoder.js";
import { LiveCalls } from "./limits/live-calls.js";
import { UploadBudget } from "./limits/upload-budget.js";
import { WorkQueue } from "./limits/work-queue.js";
import { headerOf, listen, type NodeRequest, type OpenPort, pathOf } from "./listen.js";
import { type Log, limitedLog } from "./log.js";
import { ServerMetrics } from "./metrics.js";
import { LIVE_PATH, liveSocketRoute } from "./websocket/live-socket.js";
import { Sockets } from "./websocket/sockets.js";

/** The parts of a service. */
export interface ServiceParts
  extends Pick<AppParts, "guard" | "version" | "ready" | "tokens" | "page" | "operator" | "announce"> {
  readonly operations: Operations & LiveOperations;
  readonly log: Log;
  /** Named in the metrics. */
  readonly model?: Pick<ModelInfo, "revision" | "calibrationRevision">;
  readonly fieldRates?: () => Promise<readonly FieldRate[]>;
}

/** The operations behind every transport, before the port is open. */
export class Service {
  /** @internal */
  readonly dispatcher: Dispatcher;
  /** @internal */
  readonly queue: WorkQueue;
  /** @internal */
  readonly liveCalls: LiveCalls;
  /** @internal */
  readonly metrics: ServerMetrics;
  /** @internal */
  readonly sockets: Sockets;
  readonly app: WebApp;
  readonly #peerAddress: PeerAddress;
  readonly #transcode: Transcoder;
  #openPort: OpenPort | null = null;

  constructor(
    private readonly config: ServerConfig,
    private readonly parts: ServiceParts,
  ) {
    this.#peerAddress = createPeerAddress(config.trustProxy);
    const { limits } = config;
    const queue = new WorkQueue(limits.concurrentAudio, limits.queuedAudio);
    this.queue = queue;
    this.liveCalls = new LiveCalls(limits.liveCalls, limits.liveCallsPerScope);
    const metrics = new ServerMetrics(queue, this.liveCalls, parts.fieldRates ?? (async () => []), parts.model);
    this.metrics = metrics;
    this.dispatcher = new Dispatcher({
      operations: parts.operations,
      guard: parts.guard,
      queue,
      rates: new CallRates(limits.callsPerSecond, limits.callBurst),
      uploads: new UploadBudget(limits.uploadingBytes),
      liveCalls: this.liveCalls,
      metrics,
      log: parts.log,
      limits,
    });
    this.sockets = new Sockets({
      log: parts.log,
      messageBytes: limits.messageBytes,
      addressOf: (request) => this.#peerAddress(request.socket.remoteAddress, headerOf(request, "x-forwarded-for")),
      origins: config.cors.origins,
      publicUrl: () => this.url,
      localOnly: !config.auth.required,
    });
    this.sockets.route(LIVE_PATH, liveSocketRoute(this.dispatcher, parts.guard));
    this.#transcode = createTranscoder(this.dispatcher, limits);
    this.app = createApp({
      ...parts,
      dispatcher: this.dispatcher,
      metrics,
      metricsAccess: config.metrics.access,
      transcode: this.#transcode,
      peerAddress: this.#peerAddress,
      publicUrl: () => this.url,
      isSocket: (path) => this.sockets.has(path),
    });
  }

  /** The address for callers. */
  get url(): string {
    return ownUrl(this.config, this.#openPort?.port);
  }

  /** Opens the port. */
  async listen(): Promise<void> {
    const { limits, host, port, tls } = this.config;
    const handshakes = new CallRates(limits.callsPerSecond, limits.callBurst);
    const log = limitedLog(this.parts.log);
    this.#openPort = await listen({
      host,
      port,
      tls,
      mayHandshake: (address) => {
        if (handshakes.take(networkOf(address)) === null) return true;
        log.warn("a TLS connection was refused: its address opens more than limits.callsPerSecond", { address });
        return false;
      },
      headerSeconds: limits.headerSeconds,
      readSeconds: (request) => readSeconds(request, limits),
      upgrade: this.sockets.upgrade,
      refused: (error) => this.parts.log.error("a connection could not be accepted", { reason: reasonOf(error) }),
      handler: createNodeHandler(this.app, {
        dispatcher: this.dispatcher,
        transcode: this.#transcode,
        ready: this.parts.ready,
        messageBytes: limits.messageBytes,
        liveIdleSeconds: limits.liveIdleSeconds,
        peerAddress: this.#peerAddress,
        log: this.parts.log,
        origins: this.config.cors.origins,
        ...(this.config.auth.required ? {} : { localOnly: () => this.url }),
      }),
    });
    this.#showCertificate();
  }

  /** Clients refuse an expired certificate, but the box serves it: only log and metric show it. */
  #showCertificate(): void {
    const { tls } = this.config;
    if (!tls) return;
    const expires = new Date(new X509Certificate(readFileSync(tls.cert)).validTo);
    this.metrics.certificate(expires.getTime());
    if (expires.getTime() < Date.now())
      this.parts.log.error("the certificate has expired", { expires: expires.toISOString() });
    else this.parts.log.info("certificate loaded", { expires: expires.toISOString() });
  }

  /** Loads a new certificate. If it cannot be used, the old one stays. */
  reloadTls(): void {
    try {
      this.#openPort?.reloadTls();
      this.#showCertificate();
    } catch (error) {
      this.parts.log.error("the new certificate was not loaded; the old one stays in use", {
        ...this.config.tls,
        reason: reasonOf(error),
      });
    }
  }

  /** Answers accepted calls, refuses new ones, then closes. True if all were answered in time. */
  async stop(): Promise<boolean> {
    const { stopSeconds } = this.config.limits;
    this.parts.log.info("stopping", { running: this.dispatcher.running });
    const answered = Promise.all([this.dispatcher.stop(stopSeconds * LIVE_SHARE_OF_STOP), this.#openPort?.close()]);
    const inTime = await doneWithin(stopSeconds, answered);
    if (!inTime)
      this.parts.log.warn("shutdown took too long; the calls still running were cut off", {
        running: this.dispatcher.running,
      });
    this.sockets.destroy();
    this.#openPort?.destroy();
    return inTime;
  }
}

function readSeconds(request: NodeRequest, limits: ServerConfig["limits"]): number {
  const path = pathOf(request);
  // The longest call still gets its results.
  if (path.endsWith(".LiveProcessor/Listen")) return limits.liveCallSeconds + limits.readSeconds;
  const isUpload = path === "/v1/audios" || path.endsWith(".MediaProcessor/AddMediaSegment");
  return isUpload ? limits.mediaReadSeconds : limits.readSeconds;
}

/** The share of the stop time for which live calls may continue; the rest is for their responses. */
const LIVE_SHARE_OF_STOP = 0.8;
