/** Plain RTP, as Asterisk's `externalMedia` sends it: G.711 or L16, keys by RFC 4733, comfort noise by RFC 3389. */
import {
  bytesOf,
  type CallEvent,
  type CallFields,
  type CallFormat,
  DialectSession,
  type Frame,
  nothing,
  type Received,
} from "../port.js";
import { JitterBuffer, type Ordered } from "./jitter-buffer.js";
import { keyOf, type RtpPacket, rtpPacketOf } from "./packet.js";

export type RtpFormat = "ulaw" | "alaw" | "slin" | "slin16" | "slin48";

/** Payload types as Asterisk numbers them; L16 at a rate without a static number may use any dynamic one. */
const FORMATS: Readonly<Record<RtpFormat, CallFormat & { readonly payloadType: number | null }>> = {
  ulaw: { encoding: "mulaw", rate: 8_000, channels: 1, payloadType: 0 },
  alaw: { encoding: "alaw", rate: 8_000, channels: 1, payloadType: 8 },
  slin: { encoding: "l16", rate: 8_000, channels: 1, payloadType: null },
  slin16: { encoding: "l16", rate: 16_000, channels: 1, payloadType: null },
  slin48: { encoding: "l16", rate: 48_000, channels: 1, payloadType: null },
};
export const rtpFormats = Object.keys(FORMATS) as readonly RtpFormat[];
export const isRtpFormat = (name: string): name is RtpFormat => Object.hasOwn(FORMATS, name);

const COMFORT_NOISE = 13;
const FIRST_DYNAMIC = 96;
/** RTCP packets on the port of RTP have their types here (RFC 5761 §4). */
const isRtcp = (payloadType: number): boolean => payloadType >= 64 && payloadType < FIRST_DYNAMIC;
/** The customary payload type of telephone events, and the only one that Asterisk sends. */
const TELEPHONE_EVENT = 101;
const PATIENCE_PACKETS = 3;
/** A source that has sent nothing for this long may be replaced: longer than the jitter of a call, shorter than what ends it. */
const SILENT_MS = 200;

export class RtpSession extends DialectSession {
  readonly #format: (typeof FORMATS)[RtpFormat];
  #buffer: JitterBuffer;
  #source: number | null = null;
  #receivedAtMs = 0;
  #isStarted = false;
  readonly #bytesPerSample: number;
  readonly #ignoredTypes = new Set<number>();
  #packets = 0;
  #lastKeyAt = -1;

  constructor(
    private readonly name: RtpFormat,
    private readonly fields: CallFields,
    /** A clock that is never set. */
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    super();
    this.#format = FORMATS[name];
    this.#bytesPerSample = this.#format.encoding === "l16" ? 2 : 1;
    this.#buffer = this.#newBuffer();
  }

  /** Packets that were part of the call. */
  get packets(): number {
    return this.#packets;
  }

  /** Why packets were not part of the call, as after a change of the codec; `null` if none were left out. */
  get ignored(): string | null {
    if (this.#ignoredTypes.size === 0) return null;
    const due = this.#format.payloadType ?? "96 to 127";
    return `packets of payload type ${[...this.#ignoredTypes].join(", ")} were ignored; ${this.name} has ${due}`;
  }

  receive(frame: Frame): Received {
    const packet = rtpPacketOf(bytesOf(frame));
    // Packets that are invalid or of an unknown payload type are not part of the call (RFC 3550 §A.1).
    if (!packet) return nothing;
    if (
      !this.#isAudio(packet.payloadType) &&
      packet.payloadType !== TELEPHONE_EVENT &&
      packet.payloadType !== COMFORT_NOISE
    ) {
      if (!isRtcp(packet.payloadType)) this.#ignoredTypes.add(packet.payloadType);
      return nothing;
    }
    // Half a sample would shift the bytes of all samples after it.
    if (this.#isAudio(packet.payloadType) && packet.payload.length % this.#bytesPerSample !== 0) return nothing;
    const events: CallEvent[] = [];
    const nowMs = this.nowMs();
    if (this.#source !== null && packet.source !== this.#source) {
      // A transfer or a re-INVITE may change the source (RFC 3550 §8.2), but nobody can cut in on one that is sending.
      if (nowMs - this.#receivedAtMs < SILENT_MS) return nothing;
      events.push(...this.hungUp());
      this.#buffer = this.#newBuffer();
      this.#lastKeyAt = -1;
    }
    this.#packets++;
    this.#source = packet.source;
    this.#receivedAtMs = nowMs;
    if (!this.#isStarted) {
      this.#isStarted = true;
      const { payloadType: _, ...format } = this.#format;
      events.push({ kind: "start", fields: this.fields, format });
    }
    for (const ordered of this.#buffer.push(packet)) events.push(...this.#eventsOf(ordered));
    return { events, replies: [] };
  }

  /** Packets that wait for an earlier one, which will not come. */
  override hungUp(): CallEvent[] {
    return this.#buffer.flush().flatMap((ordered) => this.#eventsOf(ordered));
  }

  /** Numbers and times of each source begin anywhere. */
  #newBuffer(): JitterBuffer {
    return new JitterBuffer(PATIENCE_PACKETS, ({ payloadType, payload }) =>
      this.#isAudio(payloadType) ? payload.length / this.#bytesPerSample : 0,
    );
  }

  #isAudio(payloadType: number): boolean {
    const own = this.#format.payloadType;
    if (payloadType === TELEPHONE_EVENT) return false;
    return own === null ? payloadType >= FIRST_DYNAMIC || payloadType === 11 : payloadType === own;
  }

  #eventsOf(ordered: Ordered): CallEvent[] {
    if (ordered.kind === "gap") return ordered.samples > 0 ? [{ kind: "lost", samples: ordered.samples }] : [];
    if (ordered.kind === "pause") return [{ kind: "silence", samples: ordered.samples }];
    const { packet } = ordered;
    if (packet.payloadType === COMFORT_NOISE) return [];
    return packet.payloadType === TELEPHONE_EVENT ? this.#key(packet) : [{ kind: "audio", bytes: packet.payload }];
  }

  /** The end of an event is sent three times with the same timestamp. */
  #key({ payload, timestamp }: RtpPacket): CallEvent[] {
    const digit = keyOf(payload);
    if (digit === null || timestamp === this.#lastKeyAt) return [];
    this.#lastKeyAt = timestamp;
    return [{ kind: "key", digit }];
  }
}
