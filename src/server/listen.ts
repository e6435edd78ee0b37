import { constants } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import http2, {
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import net, { type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { CallRates } from "../token/call-rates.js";

export type NodeRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;
export type NodeHandler = (request: NodeRequest, response: NodeResponse) => void;

/** Node joins a header that was sent several times to one text; only `set-cookie` is a list. */
export const headerOf = ({ headers }: NodeRequest, name: string) => headers[name] as string | undefined;

/** Without the query. */
export const pathOf = ({ url }: NodeRequest): string => url!.split("?")[0]!;

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** Whether an address may begin another TLS handshake, which costs more than most requests; always if not set. */
  readonly mayHandshake?: (address: string) => boolean;
  readonly headerSeconds: number;
  /** How long a connection without traffic stays open if nobody is working for it; 300 if not set. */
  readonly idleSeconds?: number;
  /** How long a client of HTTP/2 may take to answer a ping, and one of HTTP/1.1 to read while the port closes; 5 if not set. */
  readonly pingSeconds?: number;
  /** How long a request may take to arrive completely. */
  readonly readSeconds: (request: NodeRequest) => number;
  readonly handler: NodeHandler;
  /** A connection that asks for an upgrade to WebSocket (HTTP/1.1). */
  readonly upgrade: UpgradeHandler;
  /** A connection could not be accepted. */
  readonly refused: (error: Error) => void;
}

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** An open port. */
export type OpenPort = Awaited<ReturnType<typeof listen>>;

const HTTP2_OPTIONS: http2.ServerOptions = {
  // A client may send as much before it learns that its request is refused.
  settings: { maxConcurrentStreams: 1000, initialWindowSize: 256 * 1024 },
  maxSessionMemory: 64,
};

const IDLE_SECONDS = 300;
const PING_SECONDS = 5;

/** Serves HTTP/1.1 and HTTP/2 on one port: chosen by ALPN with TLS, by the first bytes without. */
export async function listen(options: ListenOptions) {
  const connections = new Connections(options);
  const dropped = new CallRates(DROPPED_PER_SECOND, DROPPED_AT_ONCE);
  const handler: NodeHandler = (request, response) => {
    const readLimit = limitReading(request, options.readSeconds(request));
    // An HTTP/2 response reports this only when its stream closes, which may never happen. Before Node does, which would
    // read on without a limit.
    ("stream" in request ? request.stream : response).prependOnceListener("finish", () => {
      // A request does not report that its connection closes after the response. The timer would keep both, with what was received.
      clearTimeout(readLimit);
      endUnread(request, dropped);
    });
    if (!("stream" in request)) closeUnlessRead(request, response as ServerResponse);
    if (request.rawHeaders.length <= 2 * MOST_HEADERS) return options.handler(request, response);
    response.writeHead(431, { "content-type": "text/plain" });
    response.end(`a request may have at most ${MOST_HEADERS} headers\n`);
  };
  const http1 = http.createServer({ connectionsCheckingInterval: 1000 }, (request, response) => {
    connections.asked(request, response);
    handler(request, response);
  });
  Object.assign(http1, http1Limits(options));
  answerContinue(http1);
  http1.on("timeout", connections.quiet);
  http1.on("upgrade", (request, socket, head) => {
    if (!connections.mayChange(request.socket)) return;
    if (asksForWebSocket(request)) {
      connections.left(request.socket);
      upgrade(options, request, socket, head);
    } else {
      // Node has left HTTP on this connection: it begins again with the same request.
      socket.removeAllListeners("timeout");
      socket.unshift(Buffer.concat([headWithoutUpgrade(request), head]));
      http1.emit("connection", socket);
    }
  });
  const http2Server = http2.createServer(HTTP2_OPTIONS, handler);
  http2Server.on("session", (session) => connections.began(session));
  answerContinue(http2Server);
  // Node starts its check for slow headers when a server listens; this one only receives connections.
  http1.emit("listening");

  const serve = (socket: Socket, isHttp2: boolean) => {
    if (isHttp2) connections.left(socket);
    (isHttp2 ? http2Server : http1).emit("connection", socket);
  };
  const encrypted = options.tls ? tls.createServer(tlsOptions(options, options.tls)) : null;
  // A handshake failed or took too long.
  encrypted?.on("tlsClientError", (_, socket) => socket.destroy());
  encrypted?.on("secureConnection", (socket) => {
    socket.on("error", () => socket.destroy());
    connections.connected(socket);
    serve(socket, socket.alpnProtocol === "h2");
  });
  const server = net.createServer((socket) => {
    connections.opened(socket);
    socket.on("error", () => socket.destroy());
    socket.setNoDelay(true);
    if (!encrypted) {
      connections.connected(socket);
      routeByFirstBytes(socket, options.headerSeconds, (isHttp2) => serve(socket, isHttp2));
    } else if (options.mayHandshake?.(socket.remoteAddress ?? "") ?? true) encrypted.emit("connection", socket);
    else socket.destroy();
  });
  await listening(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    /** Reads certificate and key again. */
    reloadTls(): void {
      encrypted?.setSecureContext(tlsOptions(options, options.tls!));
    },
    /** Accepts no new connections; idle ones end, busy ones end after their responses. Resolves when all have ended. */
    async close(): Promise<void> {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      connections.close();
      await closed;
      stopChecking(http1);
    },
    /** Cuts off everything that is still open. */
    destroy(): void {
      connections.destroy();
      stopChecking(http1);
    },
  };
}

/** As many as Node takes over HTTP/2. Everything that reads them costs more with each. */
const MOST_HEADERS = 128;

/** Node would answer `Expect: 100-continue` by itself, before anybody knows whether the request is refused. */
function answerContinue(server: http.Server | http2.Http2Server | http2.Http2SecureServer): void {
  (server as http.Server).on("checkContinue", (request: NodeRequest, response: NodeResponse) => {
    if ("stream" in request) {
      // Node throws where nobody can catch it if the client has already given up the request.
      if (request.stream.destroyed || request.stream.closed) return;
      response.writeContinue();
    } else continueWhenRead(request, response as ServerResponse);
    server.emit("request", request as IncomingMessage, response as ServerResponse);
  });
}

/** A client that is refused does not send its body. */
function continueWhenRead(request: IncomingMessage, response: ServerResponse): void {
  const { _read: read } = request;
  request._read = (size) => {
    request._read = read;
    if (!response.headersSent) response.writeContinue();
    request._read(size);
  };
}

/** Over HTTP/1.1, a request without a length comes in chunks, of which nobody knows how many follow. */
const mayBeLong = ({ headers }: NodeRequest) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"]) > DROPPED_BYTES;

/**
 * A response before the end of a long request says that the connection closes: the rest may never be read, and what comes
 * after it could not be answered.
 */
function closeUnlessRead(request: IncomingMessage, response: ServerResponse): void {
  if (!mayBeLong(request) && request.headers.expect === undefined) return;
  const { writeHead } = response;
  response.writeHead = (...head: unknown[]) => {
    if (!request.complete) response.shouldKeepAlive = false;
    return writeHead.apply(response, head as Parameters<typeof writeHead>);
  };
}

/** A sender that trickles single bytes can hold a connection only for a limited time. */
function limitReading(request: NodeRequest, seconds: number): NodeJS.Timeout {
  const source = "stream" in request ? request.stream : request;
  const timer = setTimeout(() => {
    // A request without a body is never read, and its response may take long.
    if ("stream" in request ? request.stream.endAfterHeaders : request.complete) return;
    if ("stream" in request) request.stream.close(http2.constants.NGHTTP2_CANCEL);
    request.destroy();
  }, seconds * 1000);
  const done = () => clearTimeout(timer);
  source.once("end", done);
  source.once("close", done);
  return timer;
}

/**
 * Gives the response time to arrive at a client that is still sending. To cut it off at once could take the response away
 * from it (RFC 9112 §9.6).
 */
const UNREAD_MS = 500;
/** The rest of a request that is read in any case, so that its connection can be used again. */
const DROPPED_BYTES = 65_536;
/**
 * How many pieces (of up to 64 KB) of longer requests are read for all clients together: many of them see a response only when
 * they have sent everything. But anybody may send requests that are refused, and to read 1 MB takes milliseconds.
 */
const DROPPED_AT_ONCE = 256;
const DROPPED_PER_SECOND = 16;

/** After the response the rest of the request is not needed: HTTP/2 ends the stream, HTTP/1.1 the connection. */
function endUnread(request: NodeRequest, dropped: CallRates): void {
  // A handler may have given up the request, but not the stream below it.
  const source = "stream" in request ? request.stream : request;
  if (source.readableEnded || source.destroyed) return;
  const end = () => {
    if ("stream" in request) {
      request.stream.close(http2.constants.NGHTTP2_NO_ERROR);
      // Closed without an error, the stream would wait for somebody to read what has arrived, and block its connection.
      request.stream.destroy();
    } else net.Socket.prototype.destroySoon.call(request.socket);
  };
  const timer = setTimeout(end, UNREAD_MS);
  // Node closes a connection that is not kept at once. Until its client has sent everything, only our side ends.
  if (!("stream" in request)) {
    const { socket } = request;
    socket.destroySoon = () => socket.end();
    source.once("end", () => {
      delete (socket as Partial<Socket>).destroySoon;
      if (socket.writableEnded) socket.destroySoon();
    });
  }
  for (const event of ["end", "error", "close"]) source.once(event, () => clearTimeout(timer));
  // Of a long request every piece counts, from the first.
  let bytes = mayBeLong(request) && !request.complete ? Number.POSITIVE_INFINITY : 0;
  const mayRead = () => bytes <= DROPPED_BYTES || dropped.take("all") === null;
  if (mayRead()) {
    source.on("data", (piece: Buffer) => {
      bytes += piece.length;
      // What is not read keeps the client from sending more.
      if (!mayRead()) source.pause();
    });
    // Node reads a request on its own, to the end, unless somebody else has begun to.
    source.read();
  } else {
    // Neither we nor Node (`_dump`) read on. What has arrived is dropped.
    source._read = () => {};
    (request as { _dump?: () => void })._dump = () => {};
    source.read();
    source.pause();
  }
}

/** Whether a quiet connection waits for no response, or does not read one. A response with no bytes left to send is still being made. */
function isGivenUp(responses: Iterable<{ readonly writableLength: number }>): boolean {
  const unsent = [...responses].map(({ writableLength }) => writableLength);
  return unsent.length === 0 || unsent.some((bytes) => bytes > 0);
}

/** What clients have open. When the port closes, each HTTP/1.1 connection ends after its response instead of waiting for another request. */
class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Map<ServerHttp2Session, Socket>();
  readonly #http1 = new Set<Socket>();
  readonly #unanswered = new Set<ServerResponse>();
  #closing = false;

  constructor(private readonly options: ListenOptions) {}

  opened(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /**
   * An HTTP/2 connection. It is given up when it is idle for too long, does not read its responses, or sends no request
   * in the time that one of HTTP/1.1 has for its headers. `session.close` would wait for a client that does not close
   * its side either.
   */
  began(session: ServerHttp2Session): void {
    const { headerSeconds, idleSeconds = IDLE_SECONDS } = this.options;
    const streams = new Set<ServerHttp2Stream>();
    // `once` returns the socket itself. `session.destroy` would wait until a client has read what it was sent.
    const socket = session.socket.once("close", () => {
      clearTimeout(silent);
      this.#sessions.delete(session);
    });
    this.#sessions.set(session, socket);
    const silent = setTimeout(() => socket.destroy(), headerSeconds * 1000);
    session.on("stream", (stream) => {
      clearTimeout(silent);
      streams.add(stream);
      stream.once("close", () => streams.delete(stream));
    });
    // A callback that is passed to `setTimeout` would be called only once.
    session.setTimeout(idleSeconds * 1000);
    session.on("timeout", () => {
      if (isGivenUp(streams)) socket.destroy();
      else this.#endIfGone(session, socket);
    });
    // A broken connection is reported to its streams.
    session.on("error", () => {});
  }

  /**
   * Ends the connection of a client that does not even answer a ping. After a protocol error Node neither reads nor writes
   * any more: it does not notice that the client has left, and streams never close.
   */
  #endIfGone(session: ServerHttp2Session, socket: Socket): void {
    if (!session.destroyed) session.ping(() => {});
    const { bytesRead } = socket;
    setTimeout(
      () => {
        // The answer may wait behind a request that is still being sent, so every byte counts.
        if (socket.bytesRead === bytesRead) socket.destroy();
        else if (this.#closing && !socket.destroyed) this.#endIfGone(session, socket);
      },
      (this.options.pingSeconds ?? PING_SECONDS) * 1000,
    ).unref();
  }

  /** May be one of HTTP/1.1. */
  connected(socket: Socket): void {
    this.#http1.add(socket);
    socket.once("close", () => this.#http1.delete(socket));
  }

  /** Another protocol has taken over the connection. */
  left(socket: Socket): void {
    this.#http1.delete(socket);
  }

  asked(request: IncomingMessage, response: ServerResponse): void {
    this.#unanswered.add(response);
    response.once("close", () => {
      this.#unanswered.delete(response);
      if (this.#closing) request.socket.destroySoon();
    });
    if (this.#closing) this.#endSoon(response);
  }

  #unansweredOf(connection: unknown): ServerResponse[] {
    return [...this.#unanswered].filter(({ req }) => req.socket === connection);
  }

  /**
   * Whether the connection can change its protocol. It cannot while earlier requests wait for their responses: Node would
   * mix these with what comes next, or never send them. Such a connection is closed, and its client may ask again.
   */
  mayChange(socket: Socket): boolean {
    const waiting = this.#unansweredOf(socket);
    if (waiting.length === 0) return true;
    for (const response of waiting) this.#unanswered.delete(response);
    socket.on("error", () => {});
    socket.destroy();
    return false;
  }

  /** Nothing was sent or taken for a while. Over TLS, HTTP/2 connections report this too; `began` takes care of them. */
  readonly quiet = (connection: unknown): void => {
    if (!(connection instanceof net.Socket)) return;
    if (isGivenUp(this.#unansweredOf(connection))) connection.destroy();
  };

  close(): void {
    this.#closing = true;
    for (const [session, socket] of this.#sessions) {
      session.close();
      this.#endIfGone(session, socket);
    }
    const busy = new Set([...this.#unanswered].map(({ req }) => req.socket));
    for (const socket of this.#http1) if (!busy.has(socket)) socket.destroy();
    for (const response of this.#unanswered) this.#endSoon(response);
  }

  /** After the response; a client that does not read it can ask the next box. */
  #endSoon(response: ServerResponse): void {
    response.shouldKeepAlive = false;
    response.req.socket.setTimeout((this.options.pingSeconds ?? PING_SECONDS) * 1000);
  }

  destroy(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/**
 * Keeps idle connections open for callers that pause between requests. A connection that closes after a few seconds,
 * Node's default, may close just as the next request is sent.
 */
const KEEP_ALIVE_MS = 75_000;

const http1Limits = ({ headerSeconds, idleSeconds = IDLE_SECONDS }: ListenOptions) => ({
  headersTimeout: headerSeconds * 1000,
  timeout: idleSeconds * 1000,
  requestTimeout: 0,
  keepAliveTimeout: KEEP_ALIVE_MS,
});

/** With at most as many headers as any other request. */
function upgrade(options: ListenOptions, ...[request, socket, head]: Parameters<UpgradeHandler>): void {
  if (request.rawHeaders.length <= 2 * MOST_HEADERS) {
    options.upgrade(request, socket, head);
    return;
  }
  socket.on("error", () => socket.destroy());
  // Node no longer watches the connection: a client that left its side open would keep it.
  socket.once("finish", () => socket.destroy());
  socket.end("HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
}

const asksForWebSocket = ({ headers }: IncomingMessage) => /\bwebsocket\b/i.test(headers.upgrade ?? "");

/**
 * Some clients offer HTTP/2 with a request of HTTP/1.1 (h2c: Java's HttpClient, `curl --http2`). A server may ignore the
 * offer (RFC 9110 §7.8).
 */
function headWithoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    const isOffer = /^(upgrade|http2-settings)$/i.test(name);
    const value = /^connection$/i.test(name) ? withoutOffer(rawHeaders[i + 1]!) : rawHeaders[i + 1]!;
    if (!isOffer) lines.push(`${name}: ${value}`);
  }
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

/** `Upgrade, HTTP2-Settings, close` is `close`. */
const withoutOffer = (connection: string): string =>
  connection
    .split(",")
    .filter((option) => !/^\s*(upgrade|http2-settings)\s*$/i.test(option))
    .join(",");

/** A server that never listened reports an error from `close`, but stops its timers first. */
function stopChecking(server: http.Server): void {
  server.close(() => {});
}

/**
 * One deadline for the whole preface: a client that sends its beginning and then nothing holds the connection no longer
 * than one that sends nothing.
 */
const HTTP2_PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

function routeByFirstBytes(socket: Socket, seconds: number, route: (isHttp2: boolean) => void): void {
  const timer = setTimeout(() => socket.destroy(), seconds * 1000);
  socket.once("close", () => clearTimeout(timer));
  let seen: Buffer = Buffer.alloc(0);
  const look = (chunk: Buffer) => {
    // The first piece nearly always has the whole beginning, and may be 64 KB.
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const start = seen.subarray(0, HTTP2_PREFACE.length).toString("latin1");
    if (start.length < HTTP2_PREFACE.length && HTTP2_PREFACE.startsWith(start)) return;
    clearTimeout(timer);
    socket.off("data", look);
    socket.pause();
    socket.unshift(seen);
    seen = Buffer.alloc(0);
    route(start === HTTP2_PREFACE);
    process.nextTick(() => socket.resume());
  };
  socket.on("data", look);
}

type Files = NonNullable<ListenOptions["tls"]>;

const tlsOptions = ({ headerSeconds }: ListenOptions, { cert, key }: Files): tls.TlsOptions => ({
  cert: readFileSync(cert),
  key: readFileSync(key),
  ALPNProtocols: ["h2", "http/1.1"],
  handshakeTimeout: headerSeconds * 1000,
  minVersion: "TLSv1.2",
  // Nearly every client has one of them. Of the others that Node accepts, P-521 costs the server ten times as much.
  ecdhCurve: "X25519:P-256",
  // A client of TLS 1.2 could ask for one handshake after another on its connection.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
});

async function listening(server: net.Server, { host, port, refused }: ListenOptions): Promise<void> {
  await once(server.listen(port, host), "listening");
  // A connection that could not be accepted (too little memory, say). The others go on.
  server.on("error", refused);
}
