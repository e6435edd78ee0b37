/** An RTP packet (RFC 3550 §5.1), and DTMF keys (RFC 4733). */
import { KEYS } from "../port.js";

export interface RtpPacket {
  readonly payloadType: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly source: number;
  readonly payload: Uint8Array;
}

const VERSION = 2;
const HEAD_BYTES = 12;

/** `null` for bytes that are not an RTP packet: anybody can send them to an open port, and a network can damage them. */
export function rtpPacketOf(bytes: Uint8Array): RtpPacket | null {
  if (bytes.length < HEAD_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [first, second] = [bytes[0]!, bytes[1]!];
  if (first >> 6 !== VERSION) return null;
  let from = HEAD_BYTES + 4 * (first & 0x0f);
  let to = bytes.length;
  if (first & 0x10) {
    if (from + 4 > to) return null;
    from += 4 + 4 * view.getUint16(from + 2);
  }
  if (first & 0x20) {
    const padding = bytes[to - 1]!;
    if (padding === 0) return null;
    to -= padding;
  }
  if (from > to) return null;
  return {
    payloadType: second & 0x7f,
    sequence: view.getUint16(2),
    timestamp: view.getUint32(4),
    source: view.getUint32(8),
    payload: bytes.slice(from, to),
  };
}

/** The key of a telephone event, reported once, at its end; `null` also for bytes that are not an event. */
export function keyOf(payload: Uint8Array): string | null {
  if (payload.length < 4) return null;
  const hasEnded = (payload[1]! & 0x80) !== 0;
  return hasEnded ? (KEYS[payload[0]!] ?? null) : null;
}
