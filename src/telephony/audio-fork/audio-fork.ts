/**
 * jambonz's `listen` and FreeSWITCH's mod_audio_fork: one text frame with the call's metadata, then binary frames of
 * L16, which both send little-endian. https://docs.jambonz.org/verbs/verbs/listen
 */
import type { LineMessage } from "../line-message.js";
import {
  type CallFields,
  type CallFormat,
  DialectError,
  DialectSession,
  events,
  type Frame,
  fieldsOf,
  isRate,
  type Json,
  jsonOf,
  nothing,
  numberOf,
  type Received,
  shown,
} from "../port.js";

export class AudioForkSession extends DialectSession {
  #isStarted = false;

  /** Defaults for FreeSWITCH, whose metadata is whatever the dialplan wrote. */
  constructor(
    private readonly query: CallFields,
    private readonly presumed: { readonly rate: number; readonly channels: 1 | 2 },
  ) {
    super();
  }

  receive(frame: Frame): Received {
    if (typeof frame !== "string") {
      if (this.#isStarted) return events({ kind: "audio", bytes: frame });
      // If the dialplan sets no metadata, the first frame of FreeSWITCH is audio.
      const started = this.#start({});
      return { events: [...started.events, { kind: "audio", bytes: frame }], replies: [] };
    }
    const message = jsonOf(frame);
    if (!this.#isStarted) return this.#start(message);
    if (message.event === "dtmf" && typeof message.dtmf === "string")
      return events({ kind: "key", digit: message.dtmf });
    return nothing;
  }

  #start(message: Json): Received {
    this.#isStarted = true;
    const rate = message.sampleRate === undefined ? this.presumed.rate : numberOf(message.sampleRate);
    if (!isRate(rate)) throw new DialectError(`sampleRate must be 8000 to 48000, got ${shown(message.sampleRate)}`);
    const channels = message.mixType === undefined ? this.presumed.channels : message.mixType === "stereo" ? 2 : 1;
    const given = { ...fieldsOf(message), ...this.query };
    const format: CallFormat = { encoding: "pcm16", rate, channels };
    return events({
      kind: "start",
      fields: { ...given, callId: given.callSid ?? given.callId ?? given.uuid ?? "" },
      format,
    });
  }

  /** FreeSWITCH raises this as the event mod_audio_fork::json. */
  override report(message: LineMessage): readonly Frame[] {
    return [JSON.stringify({ type: "json", data: message })];
  }

  override leave(): readonly Frame[] {
    return ['{"type":"disconnect"}'];
  }
}
