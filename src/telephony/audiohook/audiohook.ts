/**
 * Genesys AudioHook, version 2: JSON text frames control the call, binary frames are µ-law audio, caller first.
 * https://developer.genesys.cloud/devapps/audiohook/
 */
import { StatusCode, type StatusError } from "../../contract/index.js";
import type { LineMessage } from "../line-message.js";
import {
  type CallEvent,
  type CallFormat,
  DialectError,
  DialectSession,
  events,
  type Frame,
  fieldsOf,
  isObject,
  type Json,
  jsonOf,
  nothing,
  type Received,
  shown,
} from "../port.js";

interface Media {
  readonly type: "audio";
  readonly format: "PCMU" | "L16";
  readonly channels: readonly string[];
  readonly rate: 8000;
}

/** Genesys tests a configuration with a conversation of this id and sends no audio. */
const PROBE_ID = "00000000-0000-0000-0000-000000000000";

/** The channel of the customer. Genesys lists it first, or leaves it out if only the agent is to be heard. */
const CUSTOMER = "external";

/** Genesys may pause the audio for minutes and goes on with its pings. Without this, the call would end as if nobody were there. */
const STILL_THERE: CallEvent = { kind: "audio", bytes: new Uint8Array() };

export class AudioHookSession extends DialectSession {
  #id: string | null = null;
  #seq = 0;
  #clientSeq = 0;
  #media: Media | null = null;
  #isPaused = false;
  /** From the start of a call to its last result. */
  #isChecking = false;
  #isClosing = false;
  /** Genesys answers `disconnect` with `close`, and takes a connection that ends without `closed` for a failure. */
  override readonly isClosedByPeer = true;

  receive(frame: Frame): Received {
    if (typeof frame !== "string") {
      if (this.#media === null) throw new DialectError("audio came before open");
      return events({ kind: "audio", bytes: frame });
    }
    const message = jsonOf(frame);
    const { type, id, seq } = message;
    if (message.version !== "2" || typeof type !== "string" || typeof id !== "string")
      throw new DialectError("expected an AudioHook message of version 2, with type and id");
    if (typeof seq !== "number" || seq !== this.#clientSeq + 1)
      throw new DialectError(`expected message ${this.#clientSeq + 1}, got ${shown(seq)}`);
    if (this.#id !== null && id !== this.#id) throw new DialectError("the id changed during the session");
    this.#clientSeq = seq;
    this.#id = id;
    const parameters = isObject(message.parameters) ? message.parameters : {};
    switch (type) {
      case "open":
        return this.#open(parameters);
      case "close":
        this.#isClosing = true;
        // Genesys closes the connection after `closed`, so the results are sent before.
        return { events: [{ kind: "end" }], replies: this.#isChecking ? [] : [this.#message("closed", {})] };
      case "ping":
        return { events: this.#isPaused ? [STILL_THERE] : [], replies: [this.#message("pong", {})] };
      case "dtmf":
        return typeof parameters.digit === "string" ? events({ kind: "key", digit: parameters.digit }) : nothing;
      case "discarded":
        return this.#discarded(parameters);
      case "update":
        return { events: [], replies: [this.#message("updated", {})] };
      case "paused":
      case "resumed":
        this.#isPaused = type === "paused";
        return nothing;
      default:
        // error, playback_… and future messages.
        return nothing;
    }
  }

  #open(parameters: Json): Received {
    if (this.#media !== null) throw new DialectError("open was sent twice");
    const offered = Array.isArray(parameters.media) ? parameters.media.filter(isMedia) : [];
    // Prefers both channels: the channel tells who is speaking.
    const media =
      offered.find(({ channels }) => channels.length === 2) ?? offered.find(({ channels }) => channels.length === 1);
    const fields = fieldsOf({ ...parameters, media: undefined });
    const isProbe = fields.conversationId === PROBE_ID;
    if (isProbe)
      return { events: [], replies: [this.#message("opened", { media: media ? [media] : [], startPaused: false })] };
    if (!media)
      throw new DialectError(
        "none of the offered media is PCMU or L16 at 8000 Hz with the customer's channel (external)",
      );
    this.#media = media;
    this.#isChecking = true;
    const format: CallFormat = {
      encoding: media.format === "PCMU" ? "mulaw" : "pcm16",
      rate: 8_000,
      channels: media.channels.length as 1 | 2,
    };
    const known = {
      ...fields,
      callId: fields.conversationId ?? this.#id ?? "",
      from: fields["participant.ani"] ?? "",
      to: fields["participant.dnis"] ?? "",
    };
    return events({ kind: "start", fields: known, format });
  }

  #discarded({ discarded }: Json): Received {
    const seconds = typeof discarded === "string" ? /^PT(\d+(?:\.\d+)?)S$/.exec(discarded)?.[1] : undefined;
    const samples = Math.round(Number(seconds ?? 0) * 8_000);
    return samples > 0 ? events({ kind: "lost", samples }) : nothing;
  }

  override accepted(): readonly Frame[] {
    if (this.#isClosing) return [];
    return [this.#message("opened", { media: this.#media ? [this.#media] : [], startPaused: false })];
  }

  override report(message: LineMessage): readonly Frame[] {
    return [this.#message("event", { entities: [{ type: "vivavoce", data: message }] })];
  }

  override finished(): readonly Frame[] {
    // After a refusal, `close` is answered at once.
    const isUnanswered = this.#isChecking && this.#isClosing;
    this.#isChecking = false;
    return isUnanswered ? [this.#message("closed", {})] : [];
  }

  override refuse(error: StatusError): readonly Frame[] {
    if (this.#isClosing) return this.finished();
    this.#isChecking = false;
    const isForbidden = error.code === StatusCode.NOT_AUTHORIZED || error.code === StatusCode.PERMISSION_DENIED;
    return [this.#message("disconnect", { reason: isForbidden ? "unauthorized" : "error", info: error.message })];
  }

  override leave(): readonly Frame[] {
    if (this.#isClosing) return [];
    return [this.#message("disconnect", { reason: "completed" })];
  }

  #message(type: string, parameters: object): string {
    this.#seq++;
    return JSON.stringify({ version: "2", type, seq: this.#seq, clientseq: this.#clientSeq, id: this.#id, parameters });
  }
}

function isMedia(value: unknown): value is Media {
  if (!isObject(value) || value.type !== "audio" || value.rate !== 8_000) return false;
  const { format, channels } = value;
  return (
    (format === "PCMU" || format === "L16") &&
    Array.isArray(channels) &&
    channels.every((name) => typeof name === "string") &&
    channels[0] === CUSTOMER
  );
}
