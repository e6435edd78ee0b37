/** WebSockets on the box's port: paths, admission, and what all of them share. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { StatusCode, type StatusError } from "../../contract/index.js";
import { isLoopbackOrigin, LOOPBACK } from "../http/local-callers.js";
import { failureAnswer, type HttpAnswer, requestIdOf } from "../http/transcoder.js";
import { headerOf, pathOf, type UpgradeHandler } from "../listen.js";
import type { Log } from "../log.js";
import { Refusal } from "../refusal.js";
import type { OpenSocket } from "./open-socket.js";

export interface SocketRequest {
  readonly request: IncomingMessage;
  readonly address: string;
  readonly requestId: string;
}

export interface SocketRoute {
  /** Returns the handler for the open socket. If the peer is not admitted, throws a `StatusError` or returns what it is told. */
  open(request: SocketRequest): Promise<((socket: OpenSocket) => void) | ToldRefusal>;
  /** Chooses one of the offered subprotocols. */
  readonly protocol?: (offered: ReadonlySet<string>) => string | false;
}

/** A refusal that the peer is told in its subprotocol: the last message, and the code with which the connection closes. */
export interface ToldRefusal {
  readonly refused: StatusError;
  readonly protocol: string;
  readonly text: string;
  readonly code: number;
}

export interface SocketParts {
  readonly log: Log;
  readonly messageBytes: number;
  readonly addressOf: (request: IncomingMessage) => string;
  /** Pages of other origins that may connect. */
  readonly origins: readonly string[];
  readonly publicUrl: () => string;
  /** Tokens are off: as over HTTP, pages on this machine may connect from any port. */
  readonly localOnly: boolean;
  /** A peer is disconnected if it has sent nothing, not even the answer to a ping, before the next ping is due. */
  readonly pingEveryMs?: number;
}

const PING_EVERY_MS = 15_000;
/** A peer that does not read is disconnected, too. */
const MOST_UNSENT_BYTES = 1 << 20;

export class Sockets {
  readonly #routes = new Map<string, SocketRoute>();
  readonly #server: WebSocketServer;
  readonly #open = new Set<WebSocket>();

  constructor(private readonly parts: SocketParts) {
    this.#server = new WebSocketServer({
      noServer: true,
      maxPayload: parts.messageBytes,
      perMessageDeflate: false,
      clientTracking: false,
      handleProtocols: (offered, request) => {
        const route = this.#routes.get(pathOf(request));
        return route?.protocol ? route.protocol(offered) : (offered.values().next().value ?? false);
      },
    });
  }

  route(path: string, route: SocketRoute): void {
    this.#routes.set(path, route);
  }

  has(path: string): boolean {
    return this.#routes.has(path);
  }

  readonly upgrade: UpgradeHandler = (request, socket, head) => {
    endOnError(socket);
    this.#upgrade(request, socket, head).catch((error: unknown) =>
      refuse(socket, failureAnswer(this.parts.log, error, requestIdOf(headerOf(request, "x-request-id")))),
    );
  };

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const path = pathOf(request);
    const route = this.#routes.get(path);
    if (!route) throw new Refusal(StatusCode.NOT_FOUND, `there is no WebSocket at ${path}`);
    const { origin, host = "" } = request.headers;
    // A page of another origin must not reach a box without tokens through the browser of somebody who can.
    if (origin !== undefined && !this.#isAllowed(origin, host))
      throw new Refusal(
        StatusCode.PERMISSION_DENIED,
        `pages from ${origin} may not connect; add the origin to cors.origins to allow it`,
      );
    const requestId = requestIdOf(headerOf(request, "x-request-id"));
    const use = await route.open({ request, address: this.parts.addressOf(request), requestId });
    if (socket.destroyed) return;
    if (typeof use !== "function") return tell(request, socket, use);
    const received = bytesReadOf(request.socket);
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      this.#watch(webSocket, received);
      use(webSocket);
    });
  }

  #isAllowed(origin: string, host: string): boolean {
    const { origins, localOnly } = this.parts;
    if (this.#isOwn(origin, host) || origins.includes(origin)) return true;
    return localOnly && LOOPBACK.test(host) && isLoopbackOrigin(origin);
  }

  /** Also if the page was loaded as `localhost`. Not by a name that was pointed to this machine. */
  #isOwn(origin: string, host: string): boolean {
    return origin === this.parts.publicUrl() || (LOOPBACK.test(host) && origin.endsWith(`://${host}`));
  }

  #watch(socket: WebSocket, received: () => number): void {
    this.#open.add(socket);
    let before = -1;
    const ping = setInterval(() => {
      // Not only the answer to a ping counts: it may wait behind audio that the peer has not sent yet, or that we have
      // not read because the call is faster than its limit.
      const isAlive = received() !== before || socket.isPaused;
      if (!isAlive || socket.bufferedAmount > MOST_UNSENT_BYTES) return socket.terminate();
      before = received();
      socket.ping();
    }, this.parts.pingEveryMs ?? PING_EVERY_MS);
    socket.on("close", () => {
      clearInterval(ping);
      this.#open.delete(socket);
    });
    socket.on("error", (error) => {
      this.parts.log.debug("a WebSocket connection failed", { reason: error.message });
    });
  }

  destroy(): void {
    for (const socket of this.#open) socket.terminate();
  }
}

/*
 * Separate functions: in a shared scope, the listeners would keep the request and its token in memory for the whole
 * call.
 */

function bytesReadOf(connection: Socket): () => number {
  return () => connection.bytesRead;
}

function endOnError(socket: Duplex): void {
  socket.on("error", () => socket.destroy());
}

/** Before the upgrade, a refusal is an HTTP response. */
function refuse(socket: Duplex, answer: HttpAnswer): void {
  if (socket.destroyed) return;
  const body = Buffer.from(answer.body);
  const headers = Object.entries({ ...answer.headers, "content-length": body.length, connection: "close" });
  const head = [`HTTP/1.1 ${answer.status} Refused`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  // Node no longer watches a connection that asked for an upgrade: a client that left its side open would keep it.
  socket.once("finish", () => socket.destroy());
  socket.end(Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]));
}

const KEY = /^[+/0-9A-Za-z]{22}==$/;
/** RFC 6455 §1.3, §5.2. */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const [TEXT, CLOSE] = [0x81, 0x88];
/** How long a peer that was refused may take to close the connection. */
const REFUSED_MS = 1000;

/** Handshake, message and close in one piece: anybody can cause it, and an open WebSocket costs twice as much. */
function tell({ method, headers }: IncomingMessage, socket: Duplex, told: ToldRefusal): void {
  const { refused, protocol, text, code } = told;
  const key = headers["sec-websocket-key"] ?? "";
  if (method !== "GET" || headers["sec-websocket-version"] !== "13" || !KEY.test(key)) throw refused;
  const accept = createHash("sha1").update(`${key}${GUID}`).digest("base64");
  const head = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${accept}`,
    `Sec-WebSocket-Protocol: ${protocol}`,
  ];
  const message = Buffer.from(text);
  const length = message.length < 126 ? [message.length] : [126, message.length >> 8, message.length & 0xff];
  const frames = [Buffer.from([TEXT, ...length]), message, Buffer.from([CLOSE, 2, code >> 8, code & 0xff])];
  // Strangers must not hold a connection by leaving their side open.
  const held = setTimeout(() => socket.destroy(), REFUSED_MS);
  socket.once("close", () => clearTimeout(held));
  socket.resume();
  socket.end(Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), ...frames]));
}
