/** The interface of every dialect. A dialect handles framing and knows nothing about voices. */
import { timingSafeEqual } from "node:crypto";
import type { StatusError } from "../contract/index.js";
import type { LineMessage } from "./line-message.js";

/** Identifies a call: the dialect's own names, always with `callId`, and `from` and `to` if the dialect has them. */
export type CallFields = Readonly<Record<string, string>>;

export interface CallFormat {
  readonly encoding: "pcm16" | "l16" | "alaw" | "mulaw";
  readonly rate: number;
  readonly channels: 1 | 2;
}

export type CallEvent =
  | { readonly kind: "start"; readonly fields: CallFields; readonly format: CallFormat }
  | { readonly kind: "audio"; readonly bytes: Uint8Array }
  /** Samples per channel that the network lost, or that the sender left out during silence. */
  | { readonly kind: "lost"; readonly samples: number }
  | { readonly kind: "silence"; readonly samples: number }
  | { readonly kind: "key"; readonly digit: string }
  /** `reason`: why the rest of the call cannot be heard. */
  | { readonly kind: "end"; readonly reason?: string };

/** A text or a binary frame; all are binary if the transport has no text frames. */
export type Frame = string | Uint8Array;

export interface Received {
  readonly events: readonly CallEvent[];
  /** Replies that the dialect itself sends at once. */
  readonly replies: readonly Frame[];
}

/** One connection, read and written in its dialect. By default nothing is sent: results go to the webhook and the session. */
export abstract class DialectSession {
  /** Throws a `DialectError` for frames that are not valid in the dialect. */
  abstract receive(frame: Frame): Received;
  /** The connection has closed: what the dialect still held back. */
  hungUp(): readonly CallEvent[] {
    return [];
  }
  /** The box has started to listen. */
  accepted(): readonly Frame[] {
    return [];
  }
  /** What happened, in a form that the other side can use; empty if the dialect has none. */
  report(_message: LineMessage): readonly Frame[] {
    return [];
  }
  /** Everything has been reported. */
  finished(): readonly Frame[] {
    return [];
  }
  /** Why the box does not listen, for example BUSY. The connection closes afterwards. */
  refuse(_error: StatusError): readonly Frame[] {
    return this.leave();
  }
  /** The box needs no more audio and leaves the call. The connection closes afterwards. */
  leave(): readonly Frame[] {
    return [];
  }
  /** Whether the other side closes the connection after `refuse` and `leave`. */
  readonly isClosedByPeer: boolean = false;
}

/** The other side does not follow the dialect. */
export class DialectError extends Error {
  override readonly name = "DialectError";
}

export const nothing: Received = { events: [], replies: [] };
export const events = (...found: readonly CallEvent[]): Received => ({ events: found, replies: [] });

export type Json = { readonly [key: string]: unknown };

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A frame of a transport without text frames. */
export function bytesOf(frame: Frame): Uint8Array {
  if (typeof frame === "string") throw new DialectError("expected bytes, got a text frame");
  return frame;
}

/** Telephone systems send a few hundred characters. Parsing megabytes would stop all other calls. */
const LONGEST_TEXT = 65_536;

/** A text frame that must be a JSON object. */
export function jsonOf(frame: Frame): Json {
  if (typeof frame !== "string") throw new DialectError("expected a text frame, got a binary one");
  if (frame.length > LONGEST_TEXT)
    throw new DialectError(`expected a text frame of at most ${LONGEST_TEXT} characters, got ${frame.length}`);
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

/** Texts and numbers of an object, nested ones by dotted names; everything else is left out. */
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

/** A number, also one written as text; NaN for anything else. `Number` throws for some objects that JSON can hold. */
export const numberOf = (value: unknown): number =>
  typeof value === "number" || typeof value === "string" ? Number(value) : Number.NaN;

const LONGEST_SHOWN = 64;

/** A value of a frame for an error message. `String` throws for some objects that JSON can hold. */
export const shown = (value: unknown): string => `${JSON.stringify(value)}`.slice(0, LONGEST_SHOWN);

/** The keys of a telephone, by their numbers in RFC 4733. Telephone systems report others too, such as a hook flash. */
export const KEYS = "0123456789*#ABCD";

export const isRate = (rate: unknown): rate is number =>
  typeof rate === "number" && Number.isInteger(rate) && rate >= 8_000 && rate <= 48_000;

/** Whether a signature or password is the right one; the time that it takes does not show how much of it is. */
export const isSame = (given: Uint8Array, due: Uint8Array): boolean =>
  given.length === due.length && timingSafeEqual(given, due);
