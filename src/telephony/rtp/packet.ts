/** An RTP packet (RFC 3550 §5.1), and DTMF keys (RFC 4733). */
import { DialectError } from "../port.js";

export interface RtpPacket {
  readonly payloadType: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly source: number;
  readonly payload: Uint8Array;
}

const HEAD_BYTES = 12;

export function rtpPacketOf(bytes: Uint8Array): RtpPacket {
  if (bytes.length < HEAD_BYTES)
    throw new DialectError(`an RTP packet must have at least 12 bytes, got ${bytes.length}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [first, second] = [bytes[0]!, bytes[1]!];
  if (first >> 6 !== 2) throw new DialectError(`expected RTP version 2, got ${first >> 6}`);
  let from = HEAD_BYTES + 4 * (first & 0x0f);
  let to = bytes.length;
  if (first & 0x10) {
    if (from + 4 > to) throw new DialectError("the header extension is cut off");
    from += 4 + 4 * view.getUint16(from + 2);
  }
  if (first & 0x20) {
    const padding = bytes[to - 1]!;
    if (padding === 0) throw new DialectError("the padding of the packet has no length");
    to -= padding;
  }
  if (from > to) throw new DialectError("the packet is cut off");
  return {
    payloadType: second & 0x7f,
    sequence: view.getUint16(2),
    timestamp: view.getUint32(4),
    source: view.getUint32(8),
    payload: bytes.slice(from, to),
  };
}

const KEYS = "0123456789*#ABCD";

/** The key of a telephone event, reported once, at its end. */
export function keyOf(payload: Uint8Array): string | null {
  if (payload.length < 4) throw new DialectError(`a telephone event must have 4 bytes, got ${payload.length}`);
  const hasEnded = (payload[1]! & 0x80) !== 0;
  return hasEnded ? (KEYS[payload[0]!] ?? null) : null;
}
