/** What every dialect of a telephone system comes down to. A dialect knows framing, and nothing of voices. */
import type { ListenResponse, StatusError } from "../contract/index.js";

/** What a call is known by: the dialect's own names, `callId` in all of them, `from` and `to` where it tells them. */
export type CallFields = Readonly<Record<string, string>>;

export interface CallFormat {
  readonly encoding: "pcm16" | "l16" | "alaw" | "mulaw";
  readonly rate: number;
  readonly channels: 1 | 2;
}

export type CallEvent =
  | { readonly kind: "start"; readonly fields: CallFields; readonly format: CallFormat }
  | { readonly kind: "audio"; readonly bytes: Uint8Array }
  /** Samples of each channel that the network lost, and those that the sender left out because nobody spoke. */
  | { readonly kind: "lost"; readonly samples: number }
  | { readonly kind: "silence"; readonly samples: number }
  | { readonly kind: "key"; readonly digit: string }
  | { readonly kind: "end" };

/** A text frame or a binary one; where the transport knows no text, all are binary. */
export type Frame = string | Uint8Array;

export interface Received {
  readonly events: readonly CallEvent[];
  /** What the dialect itself answers at once. */
  readonly replies: readonly Frame[];
}

/** One connection, as its dialect reads and writes it. */
export interface DialectSession {
  /** Throws a `DialectError` for what the dialect does not know. */
  receive(frame: Frame): Received;
  /** The box listens. */
  accepted(): readonly Frame[];
  /** What happened, in a form that the other side can use; nothing where the dialect has none. */
  tell(response: ListenResponse): readonly Frame[];
  /** Why the box does not listen, BUSY among the reasons. The connection closes afterwards. */
  refuse(error: StatusError): readonly Frame[];
  /** The box has heard enough and leaves the call. The connection closes afterwards. */
  leave(): readonly Frame[];
}

/** Of a dialect that carries nothing but audio to the box: what is found goes to the webhook and to the session. */
export abstract class OneWaySession implements DialectSession {
  abstract receive(frame: Frame): Received;
  accepted(): readonly Frame[] {
    return [];
  }
  tell(): readonly Frame[] {
    return [];
  }
  refuse(): readonly Frame[] {
    return [];
  }
  leave(): readonly Frame[] {
    return [];
  }
}

/** The other side does not speak the dialect. */
export class DialectError extends Error {
  override readonly name = "DialectError";
}

export const nothing: Received = { events: [], replies: [] };
export const events = (...found: readonly CallEvent[]): Received => ({ events: found, replies: [] });

export type Json = { readonly [key: string]: unknown };

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A frame of a transport that knows no text. */
export function bytesOf(frame: Frame): Uint8Array {
  if (typeof frame === "string") throw new DialectError("expected bytes, got a text frame");
  return frame;
}

/** A text frame that must be a JSON object. */
export function jsonOf(frame: Frame): Json {
  if (typeof frame !== "string") throw new DialectError("expected a text frame, got a binary one");
  let value: unknown;
  try {
    value = JSON.parse(frame);
  } catch {
    throw new DialectError("expected a JSON object, got text that is not JSON");
  }
  if (!isObject(value)) throw new DialectError("expected a JSON object");
  return value;
}

const MOST_FIELDS = 64;
const LONGEST_FIELD = 1024;

/** Texts and numbers of an object, nested ones by dotted names; the rest of it is nobody's business. */
export function fieldsOf(value: unknown, prefix = "", into: Record<string, string> = {}): Record<string, string> {
  if (!isObject(value)) return into;
  for (const [name, inner] of Object.entries(value)) {
    if (Object.keys(into).length >= MOST_FIELDS) break;
    if (typeof inner === "string" || typeof inner === "number" || typeof inner === "boolean")
      into[`${prefix}${name}`] = String(inner).slice(0, LONGEST_FIELD);
    else if (isObject(inner) && prefix.split(".").length < 3) fieldsOf(inner, `${prefix}${name}.`, into);
  }
  return into;
}

export const isRate = (rate: unknown): rate is number =>
  typeof rate === "number" && Number.isInteger(rate) && rate >= 8_000 && rate <= 48_000;
