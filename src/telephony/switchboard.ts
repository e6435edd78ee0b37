/** All lines of a box: their WebSockets on the box's port, their own ports, and announced calls. */
import { randomUUID } from "node:crypto";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import net, { type AddressInfo } from "node:net";
import { StatusCode, StatusError, statusError } from "../contract/index.js";
import { watchQuiet } from "../server/limits/quiet-watch.js";
import type { OpenSocket } from "../server/websocket/open-socket.js";
import { Announcements } from "./announcements.js";
import { AsteriskWebSocketSession } from "./asterisk-websocket/asterisk-websocket.js";
import { AudioForkSession } from "./audio-fork/audio-fork.js";
import { AudioHookSession } from "./audiohook/audiohook.js";
import { signatureFault } from "./audiohook/signature.js";
import { AudioSocketSession } from "./audiosocket/audiosocket.js";
import { Call, type CallParts, type CallSocket } from "./call.js";
import type { Exchange, TelephonyLog } from "./exchange.js";
import { type Line, type LineOf, pathOf } from "./line.js";
import { type CallFields, type DialectSession, isSame } from "./port.js";
import { isRtpFormat, type RtpFormat, RtpSession, rtpFormats } from "./rtp/rtp.js";
import { isSignedByTwilio, TwilioSession } from "./twilio/twilio.js";
import { Webhook } from "./webhook.js";

export interface SwitchboardParts {
  readonly lines: readonly Line[];
  readonly exchangeOf: (line: Line) => Exchange;
  readonly log: TelephonyLog;
  /** The public address of the box; signatures include it. */
  readonly publicUrl: () => string;
  /** A connection ends if nothing arrives for this long, or if it has started no call by then. */
  readonly idleSeconds: number;
}

/** A WebSocket line and its authentication. */
export interface SocketEntry {
  readonly path: string;
  /** Throws a `StatusError` if the peer is not admitted. */
  open(request: IncomingMessage): (socket: OpenSocket) => void;
  readonly protocols: readonly string[];
}

/** A line with announced calls, and its response to an announcement. */
export interface AnnouncingLine {
  readonly path: string;
  readonly scope: string;
  /** `host`: the address of the box as the announcing program knows it. */
  announce(fields: CallFields, host: string): Promise<Readonly<Record<string, string | number>>>;
}

const SUBPROTOCOLS: Partial<Record<Line["dialect"], readonly string[]>> = {
  jambonz: ["audio.jambonz.org", "audio.drachtio.org"],
  freeswitch: ["audio.drachtio.org"],
  "asterisk-websocket": ["media"],
};

type WebSocketLine = Exclude<Line, { dialect: "audiosocket" | "rtp" }>;

export class Switchboard {
  readonly sockets: readonly SocketEntry[];
  readonly announcing: readonly AnnouncingLine[];
  readonly #calls = new Set<Call>();
  readonly #webhooks: Webhook[] = [];
  readonly #servers: net.Server[] = [];
  readonly #tcp = new Set<net.Socket>();
  /** Close the ports of RTP calls. */
  readonly #udp = new Set<() => void>();
  readonly #starts: (() => Promise<void>)[] = [];

  constructor(private readonly parts: SwitchboardParts) {
    const sockets: SocketEntry[] = [];
    const announcing: AnnouncingLine[] = [];
    for (const line of parts.lines) {
      const webhook = new Webhook(line, parts.log);
      this.#webhooks.push(webhook);
      const call = { line, exchange: parts.exchangeOf(line), webhook, log: parts.log };
      if (line.dialect === "audiosocket") announcing.push(this.#audioSocket(line, call));
      else if (line.dialect === "rtp") announcing.push(this.#rtp(line, call));
      else sockets.push(this.#webSocket(line, call));
    }
    this.sockets = sockets;
    this.announcing = announcing;
  }

  /** Opens the lines' own ports. */
  async start(): Promise<void> {
    for (const start of this.#starts) await start();
  }

  /** Ports of the lines that have their own, by name. */
  readonly ports = new Map<string, number>();

  /** Takes no new calls; resolves when the current ones have ended and their results are delivered. */
  async stop(): Promise<void> {
    for (const server of this.#servers) server.close();
    await Promise.all([...this.#calls].map((call) => call.leaveWhenOver()));
    await Promise.all(this.#webhooks.map((webhook) => webhook.delivered()));
  }

  destroy(): void {
    for (const server of this.#servers) server.close();
    for (const call of this.#calls) call.hangUp();
    for (const socket of this.#tcp) socket.destroy();
    for (const close of this.#udp) close();
    for (const webhook of this.#webhooks) webhook.stop();
  }

  #webSocket(line: WebSocketLine, parts: CallParts): SocketEntry {
    return {
      path: pathOf(line),
      protocols: SUBPROTOCOLS[line.dialect] ?? [],
      open: (request) => {
        const fault = this.#fault(line, request);
        if (fault !== null) throw statusError(StatusCode.NOT_AUTHORIZED, fault);
        const session = sessionOf(line, queryOf(request));
        return (socket) => {
          const call = this.#begin(parts, session, {
            send: (frame) => socket.send(frame),
            close: (isBusy) => socket.close(isBusy ? 1013 : 1000),
            flow: socket,
          });
          socket.on("message", (data, isBinary) =>
            call.receive(isBinary ? new Uint8Array(data) : data.toString("utf8")),
          );
          socket.on("close", () => call.hangUp());
          const unstarted = this.#unlessStarted(call, () => socket.terminate());
          socket.once("close", () => clearTimeout(unstarted));
        };
      },
    };
  }

  /** Why the peer is not admitted; `null` if it is. */
  #fault(line: WebSocketLine, { headers, url = "" }: IncomingMessage): string | null {
    switch (line.dialect) {
      case "twilio": {
        const address = `${this.parts.publicUrl().replace(/^http/, "ws")}${url}`;
        const signature = headers["x-twilio-signature"];
        return isSignedByTwilio(line.authToken, String(signature), address)
          ? null
          : "the X-Twilio-Signature does not match; check authToken and publicUrl";
      }
      case "audiohook":
        return signatureFault(
          { target: url, headers },
          Buffer.from(line.clientSecret, "base64"),
          line.apiKey,
          Date.now() / 1000,
        );
      default: {
        const due = `Basic ${Buffer.from(`${line.user}:${line.password}`).toString("base64")}`;
        return isSame(Buffer.from(headers.authorization ?? ""), Buffer.from(due))
          ? null
          : "the line requires its user name and password (HTTP Basic)";
      }
    }
  }

  #audioSocket(line: LineOf<"audiosocket">, parts: CallParts): AnnouncingLine {
    const announced = new Announcements<CallFields>(line.announcedSeconds);
    const server = net.createServer((socket) => {
      this.#tcp.add(socket);
      socket.setNoDelay(true);
      const { idleSeconds } = this.parts;
      const quiet = watchQuiet(
        Math.min(1000, idleSeconds * 250),
        // A call that falls silent is left before that, so that its dialplan continues.
        () => 2 * idleSeconds,
        // A paused sender is not silent: the box is behind.
        () => socket.isPaused() || socket.destroy(),
      );
      socket.on("error", () => socket.destroy());
      let fields: CallFields | null = null;
      const session = new AudioSocketSession((uuid) => {
        fields ??= announced.take(uuid);
        return fields;
      });
      const call = this.#begin(parts, session, {
        send: (frame) => socket.write(frame),
        close: () => socket.destroySoon(),
        flow: socket,
      });
      socket.on("data", (bytes) => {
        quiet.heard();
        call.receive(new Uint8Array(bytes));
      });
      const unstarted = this.#unlessStarted(call, () => socket.destroy());
      socket.on("close", () => {
        clearTimeout(unstarted);
        quiet.stop();
        this.#tcp.delete(socket);
        call.hangUp();
      });
    });
    this.#servers.push(server);
    this.#starts.push(async () => {
      await once(server.listen(line.port, line.host), "listening");
      // A connection that could not be accepted (too many open files, say). The others go on.
      server.on("error", ({ message }) =>
        parts.log.warn("a call could not be accepted", { line: line.name, reason: message }),
      );
      this.ports.set(line.name, (server.address() as AddressInfo).port);
    });
    return {
      path: `${pathOf(line)}/calls`,
      scope: line.scope,
      announce: async (fields) => {
        const uuid = fields.uuid?.toLowerCase() ?? randomUUID();
        if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(uuid))
          throw statusError(StatusCode.INVALID_REQUEST, `uuid must be a UUID, got "${uuid}"`);
        if (!announced.add(uuid, fields)) throw tooMany();
        return { uuid, port: this.ports.get(line.name)! };
      },
    };
  }

  #rtp(line: LineOf<"rtp">, parts: CallParts): AnnouncingLine {
    let next = line.ports[0];
    const [first, last] = line.ports;
    // Ports are opened call by call. An address of another machine must show now, as it does on the other lines.
    this.#starts.push(async () => {
      const probe = udpSocket(line.host);
      await bind(probe, 0, line.host);
      probe.close();
    });
    return {
      path: `${pathOf(line)}/calls`,
      scope: line.scope,
      announce: async (fields, host) => {
        const format = fields.format ?? line.format;
        if (!isRtpFormat(format))
          throw statusError(
            StatusCode.INVALID_REQUEST,
            `format must be one of ${rtpFormats.join(", ")}, got "${format.slice(0, 64)}"`,
          );
        for (let tries = 0; tries <= last - first; tries++) {
          const port = next;
          next = next >= last ? first : next + 1;
          const socket = udpSocket(line.host);
          try {
            await bind(socket, port, line.host);
          } catch {
            continue;
          }
          this.#receiveUdp(line, parts, socket, fields, format);
          return { host: isEverywhere(line.host) ? host : line.host, port: socket.address().port, format };
        }
        throw tooMany();
      },
    };
  }

  #receiveUdp(line: LineOf<"rtp">, parts: CallParts, socket: UdpSocket, fields: CallFields, format: RtpFormat): void {
    let isOpen = true;
    const close = () => {
      if (!isOpen) return;
      isOpen = false;
      quiet.stop();
      this.#udp.delete(close);
      socket.close();
      call.hangUp();
    };
    this.#udp.add(close);
    const callId = fields.callId ?? randomUUID();
    const session = new RtpSession(format, { ...fields, callId });
    const call = this.#begin(parts, session, { send: () => {}, close, flow: null });
    // UDP has no end of connection, so a pause ends the call.
    let hasReceived = false;
    const patience = () => (hasReceived ? Math.min(2, this.parts.idleSeconds) : line.announcedSeconds);
    const quiet = watchQuiet(250, patience, () => {
      const { ignored } = session;
      if (!hasReceived) {
        const reason = ignored ?? `no RTP packet came to its port within ${line.announcedSeconds} s`;
        parts.log.warn("an announced call did not arrive", { line: line.name, reason });
      } else if (ignored !== null) parts.log.warn("a part of a call was ignored", { line: line.name, reason: ignored });
      close();
    });
    let peer: string | null = null;
    socket.on("message", (bytes, { address, port }) => {
      // The first sender of a packet of the call is the only one accepted.
      const sender = `${address}:${port}`;
      if (peer !== null && peer !== sender) return;
      const before = session.packets;
      call.receive(new Uint8Array(bytes));
      if (session.packets === before) return;
      peer = sender;
      quiet.heard();
      hasReceived = true;
    });
    socket.on("error", close);
  }

  /** Ends a connection that starts no call in time, whatever it sends: it takes up a place. */
  #unlessStarted(call: Call, end: () => void): NodeJS.Timeout {
    return setTimeout(() => {
      if (!call.hasStarted) end();
    }, this.parts.idleSeconds * 1000);
  }

  #begin(parts: CallParts, session: DialectSession, socket: CallSocket): Call {
    const call: Call = new Call(parts, session, socket, () => this.#calls.delete(call));
    this.#calls.add(call);
    return call;
  }
}

function sessionOf(line: WebSocketLine, query: CallFields): DialectSession {
  switch (line.dialect) {
    case "twilio":
      return new TwilioSession();
    case "audiohook":
      return new AudioHookSession();
    case "asterisk-websocket":
      return new AsteriskWebSocketSession(query);
    case "jambonz":
      return new AudioForkSession(query, { rate: 8_000, channels: 1 });
    case "freeswitch":
      return new AudioForkSession(query, { rate: line.rate, channels: line.channels });
  }
}

const queryOf = ({ url = "" }: IncomingMessage): CallFields =>
  Object.fromEntries(new URL(url, "http://box").searchParams);

const tooMany = () =>
  new StatusError({
    statusCode: StatusCode.BUSY,
    message: "too many announced calls are waiting; try again later",
    retryAfter: { seconds: 1n, nanos: 0 },
  });

/** Nobody can send to such an address. */
const isEverywhere = (host: string): boolean => host === "0.0.0.0" || host === "::";

const udpSocket = (host: string): UdpSocket => createSocket(host.includes(":") ? "udp6" : "udp4");

async function bind(socket: UdpSocket, port: number, host: string): Promise<void> {
  try {
    await once(socket.bind(port, host), "listening");
  } catch (error) {
    socket.close();
    throw error;
  }
}
