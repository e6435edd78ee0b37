/**
 * Frames of a call in every telephone dialect: valid ones, and ones with one or all things wrong.
 * `right(n, random, texts)` makes frame number n of a call, as text or bytes, after that many frames of text (AudioHook numbers only these).
 */

const json = (value) => JSON.stringify(value);
const MEDIA = { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 };

/** Silence, noise, or less than a sample. */
function audio(length, silence, random) {
  if (random.chance(0.5)) return new Uint8Array(length).fill(silence);
  return random.bytes(random.pick([length, length, length, 1, 3, 0, 4 * length]));
}

const base64 = (bytes) => Buffer.from(bytes).toString("base64");

/** AudioSocket: kind, length, payload. */
export function audioSocketPacket(kind, payload = new Uint8Array()) {
  return Uint8Array.from([kind, payload.length >> 8, payload.length & 0xff, ...payload]);
}

const hookMessage = (type, texts, parameters) => json({ version: "2", type, id: "i", seq: texts + 1, parameters });

export const DIALECT_FRAMES = {
  audiosocket: (n, random) =>
    n === 0
      ? audioSocketPacket(0x01, new Uint8Array(16).fill(7))
      : random.pick([
          () => audioSocketPacket(0x10, audio(320, 0, random)),
          () => audioSocketPacket(0x10, audio(320, 0, random)),
          () => audioSocketPacket(0x03, new Uint8Array([random.pick([0x31, 0x2a, 0x44])])),
          () => audioSocketPacket(0x10, new Uint8Array(2)),
        ])(),
  "asterisk-websocket": (n, random) =>
    n === 0
      ? random.pick([
          "MEDIA_START connection_id:a format:ulaw",
          json({ event: "MEDIA_START", channel_id: "1", format: "slin16" }),
        ])
      : random.pick([
          () => audio(160, 0xff, random),
          () => audio(160, 0xff, random),
          () => "DTMF_END digit:1",
          () => json({ event: "DTMF_END", digit: "5" }),
          () => "MEDIA_XON",
        ])(),
  twilio: (n, random) =>
    n === 0
      ? json({ event: "start", start: { callSid: "CA", mediaFormat: MEDIA, customParameters: { from: "1" } } })
      : random.pick([
          () =>
            json({
              event: "media",
              media: { track: "inbound", chunk: String(n), payload: base64(audio(160, 0xff, random)) },
            }),
          () =>
            json({ event: "media", media: { track: "inbound", chunk: String(n + random.below(3)), payload: "////" } }),
          () => json({ event: "dtmf", dtmf: { digit: "1" } }),
          () => json({ event: "mark", mark: { name: "x" } }),
          () => json({ event: "connected", protocol: "Call", version: "1.0.0" }),
        ])(),
  jambonz: (n, random) =>
    n === 0
      ? json({ callSid: "a", from: "1", sampleRate: 8000, mixType: random.pick(["mono", "stereo"]) })
      : random.pick([
          () => audio(320, 0, random),
          () => audio(320, 0, random),
          () => json({ event: "dtmf", dtmf: "2" }),
        ])(),
  audiohook: (n, random, texts) =>
    n === 0
      ? hookMessage("open", texts, {
          conversationId: "c",
          participant: { ani: "1" },
          media: [
            { type: "audio", format: random.pick(["PCMU", "L16"]), channels: ["external"], rate: 8000 },
            { type: "audio", format: "PCMU", channels: ["external", "internal"], rate: 8000 },
          ].slice(0, 1 + random.below(2)),
        })
      : random.pick([
          () => audio(800, 0xff, random),
          () => hookMessage("ping", texts, {}),
          () => hookMessage("dtmf", texts, { digit: "7" }),
          () => hookMessage("update", texts, { language: "en-US" }),
          () => hookMessage("discarded", texts, { discarded: "PT1.5S" }),
        ])(),
  rtp: (n, random) => {
    const payload = audio(160, 0xff, random);
    const bytes = new Uint8Array(12 + payload.length);
    const view = new DataView(bytes.buffer);
    bytes.set(payload, 12);
    bytes[0] = random.pick([0x80, 0x80, 0x80, 0x90, 0xa0, 0x82]);
    bytes[1] = random.pick([0, 0, 0, 0x80, 101, 13]);
    view.setUint16(2, (n + random.below(5)) & 0xffff);
    view.setUint32(4, n * 160);
    return bytes;
  },
};

/** Makes one thing, or everything, wrong with it. */
export function spoiledFrame(frame, random) {
  if (random.chance(0.1)) return typeof frame === "string" ? Uint8Array.from(Buffer.from(frame)) : latin1(frame);
  if (typeof frame === "string") return spoiledText(frame, random);
  if (random.chance(0.3)) return frame.slice(0, random.below(frame.length + 1));
  const bytes = frame.slice();
  for (let changes = 1 + random.below(8); changes > 0 && bytes.length > 0; changes--)
    bytes[random.below(Math.min(bytes.length, 24))] = random.below(256);
  return bytes;
}

const latin1 = (bytes) => Buffer.from(bytes).toString("latin1");

const VALUES = [null, -1, 1e308, "", "\u0000", [], {}, true, "9".repeat(5000), { a: { b: { c: { d: 1 } } } }];

function spoiledText(text, random) {
  if (random.chance(0.3)) {
    const at = random.below(text.length);
    return text.slice(0, at) + String.fromCharCode(random.below(0x2fff)) + text.slice(at + 1);
  }
  if (random.chance(0.3) || !text.startsWith("{")) return text.slice(0, random.below(text.length));
  const value = JSON.parse(text);
  for (let at = value; ; ) {
    const key = random.pick(Object.keys(at));
    if (key === undefined) return json(value);
    const inner = at[key];
    if (typeof inner === "object" && inner !== null && !random.chance(0.3)) {
      at = inner;
      continue;
    }
    at[key] = random.pick(VALUES);
    return json(value);
  }
}
