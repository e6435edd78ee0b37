/**
 * Asterisk's WebSocket channel (chan_websocket): binary frames are media, text frames are events, as JSON or as a line of text.
 * https://docs.asterisk.org/Configuration/Channel-Drivers/WebSocket/
 */
import {
  type CallFields,
  type CallFormat,
  DialectError,
  DialectSession,
  events,
  type Frame,
  fieldsOf,
  type Json,
  jsonOf,
  nothing,
  type Received,
  shown,
} from "../port.js";

/** Asterisk's names for uncompressed and G.711 audio. */
const FORMATS: Readonly<Record<string, CallFormat>> = {
  ulaw: { encoding: "mulaw", rate: 8_000, channels: 1 },
  alaw: { encoding: "alaw", rate: 8_000, channels: 1 },
  slin: { encoding: "pcm16", rate: 8_000, channels: 1 },
  slin12: { encoding: "pcm16", rate: 12_000, channels: 1 },
  slin16: { encoding: "pcm16", rate: 16_000, channels: 1 },
  slin24: { encoding: "pcm16", rate: 24_000, channels: 1 },
  slin32: { encoding: "pcm16", rate: 32_000, channels: 1 },
  slin44: { encoding: "pcm16", rate: 44_100, channels: 1 },
  slin48: { encoding: "pcm16", rate: 48_000, channels: 1 },
};

/** The channel has commands for media only, so results are not sent on the socket. */
export class AsteriskWebSocketSession extends DialectSession {
  #isStarted = false;
  /** Commands are sent in the format in which the events came. */
  #isJson = false;

  /** `query`: what the dialplan adds to the address with `v(from=…)`. */
  constructor(private readonly query: CallFields) {
    super();
  }

  receive(frame: Frame): Received {
    if (typeof frame !== "string") {
      if (!this.#isStarted) throw new DialectError("media came before MEDIA_START");
      return events({ kind: "audio", bytes: frame });
    }
    this.#isJson = frame.trimStart().startsWith("{");
    const { event, ...fields } = this.#isJson ? jsonOf(frame) : lineOf(frame);
    switch (event) {
      case "MEDIA_START":
        return this.#start(fields);
      case "DTMF_END":
        return typeof fields.digit === "string" ? events({ kind: "key", digit: fields.digit }) : nothing;
      default:
        // STATUS, MEDIA_XON, MEDIA_XOFF, QUEUE_DRAINED and future events concern media that we do not send.
        return nothing;
    }
  }

  #start(fields: Json): Received {
    if (this.#isStarted) throw new DialectError("MEDIA_START was sent twice");
    const name = fields.format ?? this.query.format ?? "";
    const format = typeof name === "string" && Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
    if (!format)
      throw new DialectError(`the format must be one of ${Object.keys(FORMATS).join(", ")}, got ${shown(name)}`);
    this.#isStarted = true;
    const given = { ...fieldsOf(fields), ...this.query };
    const callId = given.callId ?? given.channel_id ?? given.connection_id ?? given.channel ?? "";
    return events({ kind: "start", fields: { ...given, callId }, format });
  }

  override leave(): readonly Frame[] {
    return [this.#isJson ? '{"command":"HANGUP"}' : "HANGUP"];
  }
}

/** `MEDIA_START connection_id:media1 channel:WebSocket/media1/0x51 format:ulaw`. */
function lineOf(line: string): Json & { event: string } {
  const [event = "", ...pairs] = line.trim().split(/\s+/);
  const fields = pairs.map((pair) => {
    const at = pair.indexOf(":");
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  return { ...Object.fromEntries(fields), event };
}
