/**
 * Twilio Media Streams: JSON text frames, audio as base64 of µ-law.
 * https://www.twilio.com/docs/voice/media-streams/websocket-messages
 */
import { createHmac } from "node:crypto";
import {
  DialectError,
  DialectSession,
  events,
  type Frame,
  fieldsOf,
  isObject,
  isSame,
  type Json,
  jsonOf,
  nothing,
  numberOf,
  type Received,
} from "../port.js";

/** What the caller says. */
const TRACK = "inbound";

/** Twilio accepts audio, marks and clears, none of which its application would see, so nothing is sent on the socket. */
export class TwilioSession extends DialectSession {
  #isStarted = false;
  /** Media messages are numbered per track: a gap is lost audio. */
  #chunk = 0;
  #chunkSamples = 0;

  receive(frame: Frame): Received {
    const message = jsonOf(frame);
    switch (message.event) {
      case "start":
        return this.#start(message);
      case "media":
        return this.#media(message);
      case "dtmf":
        return isObject(message.dtmf) && typeof message.dtmf.digit === "string"
          ? events({ kind: "key", digit: message.dtmf.digit })
          : nothing;
      case "stop":
        return events({ kind: "end" });
      default:
        // connected, mark and future events.
        return nothing;
    }
  }

  #start({ start }: Json): Received {
    if (this.#isStarted) throw new DialectError("start was sent twice");
    if (!isObject(start) || !isObject(start.mediaFormat)) throw new DialectError("start has no mediaFormat");
    const { encoding, sampleRate, channels } = start.mediaFormat;
    if (encoding !== "audio/x-mulaw" || numberOf(sampleRate) !== 8_000 || numberOf(channels) !== 1)
      throw new DialectError("the media format must be audio/x-mulaw, 8000 Hz, 1 channel");
    this.#isStarted = true;
    const { customParameters, mediaFormat: _, ...rest } = start;
    const own = fieldsOf(rest);
    const fields = { ...fieldsOf(customParameters), ...own, callId: own.callSid ?? own.streamSid ?? "" };
    return events({ kind: "start", fields, format: { encoding: "mulaw", rate: 8_000, channels: 1 } });
  }

  #media({ media }: Json): Received {
    if (!this.#isStarted) throw new DialectError("media came before start");
    if (!isObject(media) || typeof media.payload !== "string") throw new DialectError("media has no payload");
    if ((media.track ?? TRACK) !== TRACK) return nothing;
    const bytes = new Uint8Array(Buffer.from(media.payload, "base64"));
    const chunk = numberOf(media.chunk);
    const missing = Number.isInteger(chunk) && this.#chunk > 0 ? chunk - this.#chunk - 1 : 0;
    if (missing < 0) return nothing;
    const lost = missing > 0 && missing < 10_000 ? missing * this.#chunkSamples : 0;
    this.#chunk = Number.isInteger(chunk) ? chunk : 0;
    this.#chunkSamples = bytes.length;
    return lost > 0
      ? events({ kind: "lost", samples: lost }, { kind: "audio", bytes })
      : events({ kind: "audio", bytes });
  }
}

/**
 * X-Twilio-Signature of a WebSocket: HMAC-SHA1 of the address as configured at Twilio.
 * https://www.twilio.com/docs/usage/security
 */
export function isSignedByTwilio(authToken: string, signature: string | undefined, url: string): boolean {
  if (signature === undefined) return false;
  const sent = Buffer.from(signature, "base64");
  // Twilio signs the address as configured, with or without the final slash.
  return [url, url.endsWith("/") ? url.slice(0, -1) : `${url}/`].some((address) =>
    isSame(sent, createHmac("sha1", authToken).update(address).digest()),
  );
}
