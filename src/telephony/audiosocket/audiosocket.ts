/**
 * Asterisk AudioSocket over TCP: packets of kind (1 byte), length (2 bytes, big-endian) and payload.
 * https://docs.asterisk.org/Configuration/Channel-Drivers/AudioSocket/
 */
import { joinedBytes } from "../../audio/joined.js";
import {
  bytesOf,
  type CallEvent,
  type CallFields,
  DialectError,
  DialectSession,
  type Frame,
  type Received,
} from "../port.js";

const HANGUP = 0x00;
const UUID = 0x01;
const DTMF = 0x03;
const ERROR = 0xff;
/** Sampling rate of 16-bit little-endian audio, by packet kind. */
const RATES: ReadonlyMap<number, number> = new Map([
  [0x10, 8_000],
  [0x11, 12_000],
  [0x12, 16_000],
  [0x13, 24_000],
  [0x14, 32_000],
  [0x15, 44_100],
  [0x16, 48_000],
]);
const HEAD_BYTES = 3;

export class AudioSocketSession extends DialectSession {
  #rest: Uint8Array = new Uint8Array();
  #uuid: string | null = null;
  #rate: number | null = null;
  #hasEnded = false;

  /** Returns the fields of the announced call with this UUID; `null` refuses the call. */
  constructor(private readonly announced: (uuid: string) => CallFields | null) {
    super();
  }

  receive(frame: Frame): Received {
    const events: CallEvent[] = [];
    this.#rest = joinedBytes([this.#rest, bytesOf(frame)]);
    for (let at = 0; ; ) {
      const left = this.#rest.subarray(at);
      const length = left.length < HEAD_BYTES ? Number.POSITIVE_INFINITY : (left[1]! << 8) | left[2]!;
      if (this.#uuid === null && left.length >= HEAD_BYTES) checkFirst(left[0]!, length);
      if (left.length < HEAD_BYTES + length) {
        this.#rest = left.slice();
        return { events, replies: [] };
      }
      this.#packet(left[0]!, left.slice(HEAD_BYTES, HEAD_BYTES + length), events);
      at += HEAD_BYTES + length;
    }
  }

  #packet(kind: number, payload: Uint8Array, events: CallEvent[]): void {
    if (kind === UUID) this.#identify(payload);
    else if (this.#hasEnded) return;
    else if (kind === HANGUP || kind === ERROR) events.push({ kind: "end" });
    else if (kind === DTMF) {
      if (payload.length !== 1) throw new DialectError(`a DTMF packet must have 1 byte, got ${payload.length}`);
      events.push({ kind: "key", digit: String.fromCharCode(payload[0]!) });
    } else this.#audio(kind, payload, events);
  }

  #identify(payload: Uint8Array): void {
    if (this.#uuid !== null) throw new DialectError("the UUID was sent twice");
    const hex = Buffer.from(payload).toString("hex");
    this.#uuid = [0, 8, 12, 16, 20].map((from, i) => hex.slice(from, [8, 12, 16, 20, 32][i])).join("-");
    if (this.announced(this.#uuid) === null)
      throw new DialectError(`the call ${this.#uuid} was not announced; POST it to /telephony/LINE/calls first`);
  }

  #audio(kind: number, payload: Uint8Array, events: CallEvent[]): void {
    const rate = RATES.get(kind);
    // Other kinds, such as 0x02 for silence, say nothing that a call needs.
    if (rate === undefined) return;
    if (this.#rate === null) {
      this.#rate = rate;
      const uuid = this.#uuid!;
      const fields = { ...this.announced(uuid), callId: uuid };
      events.push({ kind: "start", fields, format: { encoding: "pcm16", rate, channels: 1 } });
    }
    if (rate === this.#rate) events.push({ kind: "audio", bytes: payload });
    else {
      // As after a transfer to another device. What was heard before is still worth a result.
      this.#hasEnded = true;
      events.push({ kind: "end", reason: `the sampling rate changed from ${this.#rate} to ${rate} Hz` });
    }
  }

  /** Also of a call that is refused: after an error packet, Asterisk would hang up on the caller instead of going on in its dialplan. */
  override leave(): readonly Frame[] {
    return [Uint8Array.of(HANGUP, 0, 0)];
  }
}

/** Anybody can connect: before a call is known, nothing is kept, and no flood of other packets is read. */
function checkFirst(kind: number, length: number): void {
  if (kind !== UUID)
    throw new DialectError(
      `the first packet must be the UUID (kind 0x01), got kind 0x${kind.toString(16).padStart(2, "0")}`,
    );
  if (length !== 16) throw new DialectError(`a UUID packet must have 16 bytes, got ${length}`);
}
