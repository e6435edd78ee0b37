/** Each dialect reads the vendors' documented messages, and packets written by other software. */
import { encodeFrame, FrameType } from "asterisk-audiosocket";
import { packets } from "rtp.js";
import twilio from "twilio";
import { describe, expect, it } from "vitest";
import { StatusCode, StatusError } from "../../src/contract/index.js";
import { AsteriskWebSocketSession } from "../../src/telephony/asterisk-websocket/asterisk-websocket.js";
import { AudioForkSession } from "../../src/telephony/audio-fork/audio-fork.js";
import { AudioHookSession } from "../../src/telephony/audiohook/audiohook.js";
import { signatureFault } from "../../src/telephony/audiohook/signature.js";
import { AudioSocketSession } from "../../src/telephony/audiosocket/audiosocket.js";
import { filled } from "../../src/telephony/line.js";
import { type CallEvent, DialectError, type DialectSession, type Frame } from "../../src/telephony/port.js";
import { RtpSession } from "../../src/telephony/rtp/rtp.js";
import { isSignedByTwilio, TwilioSession } from "../../src/telephony/twilio/twilio.js";

const kinds = (session: DialectSession, ...frames: (string | Uint8Array)[]) =>
  frames.flatMap((frame) => session.receive(frame).events.map(({ kind }) => kind));

it("a text frame of megabytes is refused before it is parsed", () => {
  const frame = `{"event":"connected","x":"${"x".repeat(70_000)}"}`;
  expect(() => new TwilioSession().receive(frame)).toThrow(/at most 65536 characters, got 70/);
});

it("an object in place of a number or a name is refused, even one that cannot be converted", () => {
  const odd = { toString: 1, valueOf: 1 };
  const frame = (message: object) => JSON.stringify(message);
  const started = new TwilioSession();
  const mediaFormat = { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 };
  started.receive(frame({ event: "start", start: { mediaFormat } }));
  expect(kinds(started, frame({ event: "media", media: { chunk: odd, payload: "/w==" } }))).toEqual(["audio"]);
  for (const [session, message] of [
    [new TwilioSession(), { event: "start", start: { mediaFormat: { ...mediaFormat, sampleRate: odd } } }],
    [new AudioForkSession({}, { rate: 8000, channels: 1 }), { sampleRate: odd }],
    [new AsteriskWebSocketSession({}), { event: "MEDIA_START", format: odd }],
    [new AudioHookSession(), { version: "2", type: "open", id: "a", seq: odd }],
  ] as const)
    expect(() => session.receive(frame(message))).toThrow(DialectError);
});

describe("AudioSocket", () => {
  const uuid = "40325ec2-5efd-4bd3-805f-53576e581d13";
  const idBytes = Buffer.from(uuid.replaceAll("-", ""), "hex");
  const slin = Buffer.alloc(320, 1);

  it("reads packets of another implementation, however TCP splits them", () => {
    const wire = Buffer.concat([
      encodeFrame(FrameType.UUID, idBytes),
      encodeFrame(FrameType.AUDIO, slin),
      Buffer.from([0x03, 0, 1, 0x35]),
      encodeFrame(FrameType.AUDIO, slin),
      encodeFrame(FrameType.HANGUP, Buffer.alloc(0)),
    ]);
    for (const size of [1, 2, 7, 323, wire.length]) {
      const session = new AudioSocketSession((id) => (id === uuid ? { from: "+4930" } : null));
      const pieces = Array.from({ length: Math.ceil(wire.length / size) }, (_, i) =>
        wire.subarray(i * size, (i + 1) * size),
      );
      const events = pieces.flatMap((piece) => session.receive(new Uint8Array(piece)).events);
      expect(events.map(({ kind }) => kind)).toEqual(["start", "audio", "key", "audio", "end"]);
      expect(events[0]).toMatchObject({
        fields: { from: "+4930", callId: uuid },
        format: { encoding: "pcm16", rate: 8000, channels: 1 },
      });
      expect(events[2]).toEqual({ kind: "key", digit: "5" });
    }
  });

  it("accepts higher sampling rates, and refuses unannounced calls and invalid packets", () => {
    const wide = new AudioSocketSession(() => ({}));
    wide.receive(encodeFrame(FrameType.UUID, idBytes));
    expect(wide.receive(Buffer.from([0x12, 0, 2, 1, 2])).events[0]).toMatchObject({ format: { rate: 16_000 } });
    expect(() => new AudioSocketSession(() => null).receive(encodeFrame(FrameType.UUID, idBytes))).toThrow(/announced/);
    expect(() => new AudioSocketSession(() => ({})).receive(encodeFrame(FrameType.AUDIO, slin))).toThrow(DialectError);
    // Before a call is known, only the head of the UUID packet is waited for: anybody can connect.
    for (const [head, fault] of [
      [[0x42, 0, 0], /first packet must be the UUID .* got kind 0x42/],
      [[0x00, 0, 0], /first packet must be the UUID .* got kind 0x00/],
      [[0x03, 0, 1], /first packet must be the UUID .* got kind 0x03/],
      [[0x01, 0xff, 0xff], /must have 16 bytes, got 65535/],
    ] as const)
      expect(() => new AudioSocketSession(() => ({})).receive(Uint8Array.from(head))).toThrow(fault);
  });

  it("ignores packets of other kinds during a call, such as silence", () => {
    const session = new AudioSocketSession(() => ({}));
    const sent = [
      encodeFrame(FrameType.UUID, idBytes),
      encodeFrame(FrameType.AUDIO, slin),
      [0x02, 0, 0],
      [0x42, 0, 1, 7],
    ];
    expect(kinds(session, ...sent.map((one) => Uint8Array.from(one)))).toEqual(["start", "audio"]);
  });
});

describe("Twilio", () => {
  // https://www.twilio.com/docs/voice/media-streams/websocket-messages
  const start = {
    event: "start",
    sequenceNumber: "1",
    start: {
      accountSid: "ACXXXX",
      streamSid: "MZXXXX",
      callSid: "CAXXXX",
      tracks: ["inbound"],
      mediaFormat: { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 },
      customParameters: { FirstName: "Jane", from: "+15551234" },
    },
    streamSid: "MZXXXX",
  };
  const media = (chunk: number, track = "inbound") =>
    JSON.stringify({
      event: "media",
      media: { track, chunk: String(chunk), timestamp: "5", payload: Buffer.alloc(160, 0xff).toString("base64") },
    });

  it("reads the documented messages; a gap in the numbers is lost audio", () => {
    const session = new TwilioSession();
    session.receive(JSON.stringify({ event: "connected", protocol: "Call", version: "1.0.0" }));
    expect(session.receive(JSON.stringify(start)).events).toEqual([
      {
        kind: "start",
        fields: expect.objectContaining({
          callId: "CAXXXX",
          from: "+15551234",
          FirstName: "Jane",
          streamSid: "MZXXXX",
        }),
        format: { encoding: "mulaw", rate: 8000, channels: 1 },
      },
    ]);
    expect(kinds(session, media(1), media(2), media(2, "outbound"))).toEqual(["audio", "audio"]);
    expect(session.receive(media(5)).events[0]).toEqual({ kind: "lost", samples: 320 });
    expect(kinds(session, media(4), media(6))).toEqual(["audio"]);
    const dtmf = {
      event: "dtmf",
      streamSid: "MZXXXX",
      sequenceNumber: "5",
      dtmf: { track: "inbound_track", digit: "1" },
    };
    expect(
      kinds(session, JSON.stringify(dtmf), JSON.stringify({ event: "stop", stop: { callSid: "CAXXXX" } })),
    ).toEqual(["key", "end"]);
    expect(kinds(new TwilioSession(), '{"event":"mark"}', '{"event":"of a later version"}')).toEqual([]);
  });

  it("custom parameters cannot replace Twilio's own fields", () => {
    const forged = structuredClone(start);
    Object.assign(forged.start.customParameters, { callSid: "CAother" });
    expect(new TwilioSession().receive(JSON.stringify(forged)).events[0]).toMatchObject({
      fields: { callId: "CAXXXX" },
    });
  });

  it("accepts signatures made by Twilio's own library", () => {
    const [token, url] = ["12345678901234567890123456789012", "wss://voice.example.com/telephony/sales"];
    const signature = twilio.getExpectedTwilioSignature(token, url, {});
    expect(isSignedByTwilio(token, signature, url)).toBe(true);
    expect(isSignedByTwilio(token, signature, `${url}/`)).toBe(true);
    expect(isSignedByTwilio(token, signature, `${url}2`)).toBe(false);
    expect(isSignedByTwilio(`${token.slice(1)}0`, signature, url)).toBe(false);
    expect(isSignedByTwilio(token, undefined, url)).toBe(false);
    expect(isSignedByTwilio(token, "", url)).toBe(false);
  });
});

describe("Asterisk's WebSocket channel", () => {
  it("reads events as JSON and as lines", () => {
    const json = {
      event: "MEDIA_START",
      connection_id: "media_connection1",
      channel: "WebSocket/media_connection1/0x5140001a0040",
      channel_id: "1761245643.1",
      format: "ulaw",
      optimal_frame_size: 160,
      ptime: 20,
      channel_variables: { DIALEDPEERNUMBER: "media_connection1/c(ulaw)" },
    };
    const session = new AsteriskWebSocketSession({ from: "+4930" });
    expect(session.receive(JSON.stringify(json)).events[0]).toMatchObject({
      fields: {
        callId: "1761245643.1",
        from: "+4930",
        "channel_variables.DIALEDPEERNUMBER": "media_connection1/c(ulaw)",
      },
      format: { encoding: "mulaw", rate: 8000 },
    });
    expect(session.leave()).toEqual(['{"command":"HANGUP"}']);
    const lines = new AsteriskWebSocketSession({});
    const line = "MEDIA_START connection_id:m1 channel:WebSocket/m1/0x51 format:slin16 optimal_frame_size:640";
    expect(lines.receive(line).events[0]).toMatchObject({
      fields: { callId: "m1" },
      format: { encoding: "pcm16", rate: 16_000 },
    });
    expect(kinds(lines, new Uint8Array(640), "DTMF_END digit:7", "MEDIA_XOFF", "QUEUE_DRAINED")).toEqual([
      "audio",
      "key",
    ]);
    expect(lines.leave()).toEqual(["HANGUP"]);
    expect(() => new AsteriskWebSocketSession({}).receive("MEDIA_START format:opus")).toThrow(/got "opus"/);
    expect(() => new AsteriskWebSocketSession({}).receive(new Uint8Array(2))).toThrow(DialectError);
  });
});

describe("jambonz and FreeSWITCH", () => {
  it("read metadata, then samples", () => {
    const metadata = {
      callSid: "c1",
      from: "+4930",
      to: "+4931",
      direction: "inbound",
      sampleRate: 16_000,
      mixType: "stereo",
    };
    const session = new AudioForkSession({}, { rate: 8000, channels: 1 });
    expect(session.receive(JSON.stringify(metadata)).events[0]).toMatchObject({
      fields: { callId: "c1", from: "+4930" },
      format: { encoding: "pcm16", rate: 16_000, channels: 2 },
    });
    expect(kinds(session, new Uint8Array(640), '{"event":"dtmf","dtmf":"2","duration":"1600"}')).toEqual([
      "audio",
      "key",
    ]);
    const bare = new AudioForkSession({ uuid: "u1", from: "100" }, { rate: 8000, channels: 1 });
    expect(bare.receive(new Uint8Array(320)).events).toMatchObject([
      { kind: "start", fields: { callId: "u1", from: "100" } },
      { kind: "audio" },
    ]);
    const wrong = new AudioForkSession({}, { rate: 8000, channels: 1 });
    expect(() => wrong.receive('{"sampleRate":64000}')).toThrow(/64000/);
  });
});

describe("AudioHook", () => {
  const open = (seq: number, parameters: object = {}) =>
    JSON.stringify({
      version: "2",
      type: "open",
      seq,
      serverseq: 0,
      id: "30b0e395-84d3-4570-ac13-9a62d8f514c0",
      position: "PT0S",
      parameters: {
        organizationId: "d7934305-0972-4844-938e-9060eef73d05",
        conversationId: "090eaa2f-72fa-480a-83e0-8667ff89c0ec",
        participant: {
          id: "883efee8-3d6c-4537-b500-6d7ca4b92fa0",
          ani: "+1-555-555-1234",
          aniName: "John Doe",
          dnis: "+1-800-555-6789",
        },
        media: [
          { type: "audio", format: "PCMU", channels: ["external", "internal"], rate: 8000 },
          { type: "audio", format: "PCMU", channels: ["external"], rate: 8000 },
        ],
        ...parameters,
      },
    });
  const message = (type: string, seq: number, parameters = {}) =>
    JSON.stringify({
      version: "2",
      type,
      seq,
      serverseq: 0,
      id: "30b0e395-84d3-4570-ac13-9a62d8f514c0",
      position: "PT1S",
      parameters,
    });

  it("opens, answers pings, counts discarded audio, and closes", () => {
    const session = new AudioHookSession();
    expect(session.receive(open(1)).events[0]).toMatchObject({
      fields: { callId: "090eaa2f-72fa-480a-83e0-8667ff89c0ec", from: "+1-555-555-1234", to: "+1-800-555-6789" },
      format: { encoding: "mulaw", rate: 8000, channels: 2 },
    });
    expect(JSON.parse(session.accepted()[0] as string)).toEqual({
      version: "2",
      type: "opened",
      seq: 1,
      clientseq: 1,
      id: "30b0e395-84d3-4570-ac13-9a62d8f514c0",
      parameters: {
        media: [{ type: "audio", format: "PCMU", channels: ["external", "internal"], rate: 8000 }],
        startPaused: false,
      },
    });
    expect(JSON.parse(session.receive(message("ping", 2)).replies[0] as string)).toMatchObject({
      type: "pong",
      seq: 2,
      clientseq: 2,
    });
    expect(session.receive(new Uint8Array(3200)).events[0]!.kind).toBe("audio");
    expect(session.receive(message("discarded", 3, { start: "PT1S", discarded: "PT0.5S" })).events).toEqual([
      { kind: "lost", samples: 4000 },
    ]);
    expect(session.receive(message("paused", 4)).events).toEqual([]);
    expect(session.receive(message("ping", 5)).events).toEqual([{ kind: "audio", bytes: new Uint8Array() }]);
    expect(session.receive(message("resumed", 6)).events).toEqual([]);
    expect(session.receive(message("ping", 7)).events).toEqual([]);
    const closing = session.receive(message("close", 8, { reason: "end" }));
    expect(closing).toEqual({ events: [{ kind: "end" }], replies: [] });
    expect(JSON.parse(session.finished()[0] as string)).toMatchObject({ type: "closed", seq: 5, clientseq: 8 });
    expect(() => session.receive(message("ping", 19))).toThrow(/expected message 9, got 19/);
  });

  const types = (frames: readonly Frame[]) => frames.map((frame) => JSON.parse(frame as string).type);

  it("closes after the results, once, and opens nothing that is closing", () => {
    const session = new AudioHookSession();
    session.receive(open(1));
    expect(session.receive(message("close", 2)).replies).toEqual([]);
    expect(session.accepted()).toEqual([]);
    expect(types(session.finished())).toEqual(["closed"]);
    expect(session.leave()).toEqual([]);
  });

  it("answers the close that follows its own disconnect, after a result and after a refusal", () => {
    const [decided, refused, failing] = [new AudioHookSession(), new AudioHookSession(), new AudioHookSession()];
    for (const session of [decided, refused, failing]) session.receive(open(1));
    expect(types([...decided.finished(), ...decided.leave()])).toEqual(["disconnect"]);
    expect(types(decided.receive(message("close", 2)).replies)).toEqual(["closed"]);
    const busy = new StatusError({ statusCode: StatusCode.BUSY, message: "all live calls are in use" });
    expect(types(refused.refuse(busy))).toEqual(["disconnect"]);
    expect(types(refused.receive(message("close", 2)).replies)).toEqual(["closed"]);
    expect(refused.finished()).toEqual([]);
    failing.receive(message("close", 2));
    expect(types(failing.refuse(busy))).toEqual(["closed"]);
  });

  it("refuses a call in which only the agent can be heard", () => {
    const media = (...channels: string[]) => ({ type: "audio", format: "PCMU", channels, rate: 8000 });
    expect(() => new AudioHookSession().receive(open(1, { media: [media("internal")] }))).toThrow(
      /none of the offered media .* customer's channel \(external\)/,
    );
    const both = new AudioHookSession().receive(open(1, { media: [media("internal"), media("external")] }));
    expect(both.events).toMatchObject([{ kind: "start", format: { channels: 1 } }]);
  });

  it("answers a configuration probe without starting a call", () => {
    const { events, replies } = new AudioHookSession().receive(
      open(1, { conversationId: "00000000-0000-0000-0000-000000000000" }),
    );
    expect(events).toEqual([]);
    expect(JSON.parse(replies[0] as string)).toMatchObject({ type: "opened" });
  });

  it("accepts the documented example of a signature", () => {
    // https://developer.genesys.cloud/devapps/audiohook/session-walkthrough
    const apiKey = "SGVsbG8sIEkgYW0gdGhlIEFQSSBrZXkh";
    const secret = Buffer.from("TXlTdXBlclNlY3JldEtleVRlbGxOby0xITJAMyM0JDU=", "base64");
    const headers = {
      host: "audiohook.example.com",
      "audiohook-organization-id": "d7934305-0972-4844-938e-9060eef73d05",
      "audiohook-correlation-id": "e160e428-53e2-487c-977d-96989bf5c99d",
      "audiohook-session-id": "30b0e395-84d3-4570-ac13-9a62d8f514c0",
      "x-api-key": apiKey,
      signature: "sig1=:NZBwyBHRRyRoeLqy1IzOa9VYBuI8TgMFt2GRDkDuJh4=:",
      "signature-input":
        'sig1=("@request-target" "@authority" "audiohook-organization-id" "audiohook-session-id" "audiohook-correlation-id" "x-api-key");keyid="SGVsbG8sIEkgYW0gdGhlIEFQSSBrZXkh";nonce="VGhpc0lzQVVuaXF1ZU5vbmNl";alg="hmac-sha256";created=1641013200;expires=3282026430',
    };
    const target = "/api/v1/voicebiometrics/ws";
    const fault = (changes: object = {}, now = 1_700_000_000, at = target) =>
      signatureFault({ target: at, headers: { ...headers, ...changes } }, secret, apiKey, now);
    expect(fault()).toBeNull();
    expect(fault({ "audiohook-session-id": "40b0e395-84d3-4570-ac13-9a62d8f514c0" })).toBe(
      "the signature does not match; check apiKey and clientSecret of the line",
    );
    expect(fault({ host: "other.example.com" })).toBe(
      "the signature does not match; check apiKey and clientSecret of the line",
    );
    expect(fault({}, 1_700_000_000, "/other")).toBe(
      "the signature does not match; check apiKey and clientSecret of the line",
    );
    expect(fault({ "x-api-key": "x" })).toBe("the API key is unknown");
    expect(fault({}, 1_641_013_000)).toBe("the signature was created in the future");
    expect(fault({}, 3_300_000_000)).toBe("the signature has expired");
    expect(fault({ signature: undefined })).toBe(
      "the signature does not match; check apiKey and clientSecret of the line",
    );
    const bare = headers["signature-input"].replace('"@request-target" ', "");
    expect(fault({ "signature-input": bare })).toBe("the signature does not cover @request-target");
    for (const input of ["", "x", "sig1=", "sig1=()", "sig1=(((", 'sig1=("@request-target"'])
      expect(fault({ "signature-input": input })).not.toBeNull();
  });
});

describe("RTP", () => {
  function packet(
    sequence: number,
    timestamp: number,
    payload = Buffer.alloc(160, sequence & 0x7f),
    payloadType = 0,
    source = 7,
  ): Uint8Array {
    const made = new packets.RtpPacket();
    made.setPayloadType(payloadType);
    made.setSequenceNumber(sequence & 0xffff);
    made.setTimestamp(timestamp >>> 0);
    made.setSsrc(source);
    made.setPayload(new DataView(payload.buffer, payload.byteOffset, payload.length));
    const view = made.getView();
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  }

  it("reads packets of another implementation, reorders them and counts lost samples", () => {
    const session = new RtpSession("ulaw", { callId: "c" });
    const numbers = [65_533, 65_535, 65_534, 0, 0, 1, 3, 4, 5, 6, 2, 8, 7];
    const base = 65_533;
    const events = numbers.flatMap((n) => {
      const index = (n - base + 65_536) % 65_536;
      return session.receive(packet(n, 1000 + 160 * index)).events;
    });
    const heard = events.flatMap((event): (number | string | undefined)[] =>
      event.kind === "audio" ? [event.bytes[0]] : event.kind === "lost" ? [`lost ${event.samples}`] : [],
    );
    expect(heard).toEqual([...[65_533, 65_534, 65_535, 0, 1].map((n) => n & 0x7f), "lost 160", 3, 4, 5, 6, 7, 8]);
  });

  it("fills omitted silence, reports each key once, and accepts only one sender", () => {
    const session = new RtpSession("alaw", { callId: "c" });
    expect(kinds(session, packet(1, 0, Buffer.alloc(160), 8))).toEqual(["start", "audio"]);
    expect(session.receive(packet(2, 1760, Buffer.alloc(160), 8)).events).toMatchObject([
      { kind: "silence", samples: 1600 },
      { kind: "audio" },
    ]);
    const key = (end: number) => Buffer.from([11, end | 10, 1, 64]);
    expect(
      kinds(session, packet(3, 1920, key(0), 101), packet(4, 1920, key(0x80), 101), packet(5, 1920, key(0x80), 101)),
    ).toEqual(["key"]);
    const stranger = packet(6, 2000, Buffer.alloc(160), 8);
    stranger[11] = 9;
    expect(kinds(session, stranger, packet(6, 1920, Buffer.alloc(160), 0))).toEqual([]);
    expect(session.packets).toBe(5);
  });

  it("adds no silence for a key that is sent together with audio, or repeated after it", () => {
    const session = new RtpSession("ulaw", { callId: "c" });
    const key = (end: number) => Buffer.from([5, end | 10, 1, 64]);
    const sent = [
      packet(1, 0),
      packet(2, 160, key(0), 101),
      packet(3, 160),
      packet(4, 160, key(0), 101),
      packet(5, 320),
      packet(6, 160, key(0x80), 101),
      packet(7, 480),
      packet(9, 160, key(0x80), 101),
      packet(10, 160, key(0x80), 101),
      packet(11, 800),
      packet(12, 960),
    ];
    const events = sent.flatMap((one) => [...session.receive(one).events]);
    expect(events.map((event) => ("samples" in event ? `${event.kind} ${event.samples}` : event.kind))).toEqual([
      ...["start", "audio", "audio", "audio", "key", "audio"],
      // The packet 8, of 160 samples, was lost before the repetition of the key.
      ...["silence 160", "audio", "audio"],
    ]);
  });

  const heardOf = (events: readonly CallEvent[]) =>
    events.map((event) =>
      event.kind === "audio" ? event.bytes[0] : "samples" in event ? `${event.kind} ${event.samples}` : event.kind,
    );

  it("when the caller hangs up, packets that waited for a lost one are heard", () => {
    const session = new RtpSession("ulaw", { callId: "c" });
    const sent = [packet(1, 0), packet(3, 320), packet(4, 480)];
    expect(heardOf(sent.flatMap((one) => session.receive(one).events))).toEqual(["start", 1]);
    expect(heardOf(session.hungUp())).toEqual(["lost 160", 3, 4]);
    expect(session.hungUp()).toEqual([]);
  });

  it.each([
    ["anywhere", 40_000],
    ["where it began, 600 packets ago", 0],
    ["before that", 65_100],
  ])("hears a sender that restarts with the same source and numbers from %s", (_, from) => {
    const session = new RtpSession("ulaw", { callId: "c" });
    for (let n = 0; n < 600; n++) session.receive(packet(n, 160 * n));
    const again = [0, 1, 2].map((n) => packet(from + n, 3_000_000_000 + 160 * n));
    expect(heardOf(again.flatMap((one) => session.receive(one).events))).toEqual(
      [0, 1, 2].map((n) => (from + n) & 0x7f),
    );
  });

  it("a copy of a packet that comes seconds late is not a restart", () => {
    const session = new RtpSession("ulaw", { callId: "c" });
    for (let n = 0; n < 600; n++) session.receive(packet(n, 160 * n));
    const sent = [100, 600, 601, 102, 602].map((n) => packet(n, 160 * n));
    expect(heardOf(sent.flatMap((one) => session.receive(one).events))).toEqual([600, 601, 602].map((n) => n & 0x7f));
  });

  it("counts as lost what the missing packets can have held, however far the time has moved", () => {
    const session = new RtpSession("ulaw", { callId: "c" });
    const sent = [packet(1, 0), ...[4, 5, 6, 7].map((n) => packet(n, 2_000_000_000 + 160 * n))];
    expect(heardOf(sent.flatMap((one) => session.receive(one).events))).toEqual([
      ...["start", 1, "lost 320", expect.stringMatching(/^silence /)],
      ...[4, 5, 6, 7],
    ]);
  });

  it("goes on with another source when the first is silent, and with none beside a source that sends", () => {
    let nowMs = 0;
    const session = new RtpSession("ulaw", { callId: "c" }, () => nowMs);
    const receive = (atMs: number, bytes: Uint8Array) => {
      nowMs = atMs;
      return heardOf(session.receive(bytes).events);
    };
    const other = (sequence: number, timestamp: number) => packet(sequence, timestamp, undefined, 0, 9);
    expect(receive(0, packet(1, 0))).toEqual(["start", 1]);
    expect(receive(20, packet(3, 320))).toEqual([]);
    for (let n = 0; n < 9; n++) expect(receive(30 + 20 * n, other(70 + n, 5_000_000 + 160 * n))).toEqual([]);
    expect(session.packets).toBe(2);
    // Its numbers are close to those of the first source, and its time is far away.
    expect(receive(220, other(79, 5_001_440))).toEqual(["lost 160", 3, 79]);
    expect(receive(230, packet(4, 480))).toEqual([]);
    expect(receive(240, other(80, 5_001_600))).toEqual([80]);
    expect(receive(500, packet(5, 640))).toEqual([5]);
  });

  it("bytes that are not a packet do not keep a silent source alive", () => {
    let nowMs = 0;
    const session = new RtpSession("ulaw", { callId: "c" }, () => nowMs);
    session.receive(packet(1, 0));
    nowMs = 150;
    session.receive(new Uint8Array(12));
    nowMs = 210;
    expect(heardOf(session.receive(packet(2, 160, undefined, 0, 9)).events)).toEqual([2]);
  });

  it("ignores what is not a valid packet", () => {
    const session = new RtpSession("ulaw", { callId: "c" });
    const changed = (at: number, value: number) => packet(1, 0).map((byte, i) => (i === at ? value : byte));
    const invalid = {
      short: new Uint8Array(11),
      "version 0": changed(0, 0),
      "version 3": changed(0, 0xc0),
      "sources cut off": changed(0, 0x8f).subarray(0, 60),
      "extension cut off": changed(0, 0x90).subarray(0, 14),
      "extension too long": changed(0, 0x90).map((byte, i) => (i === 14 || i === 15 ? 0xff : byte)),
      "padding without a length": changed(0, 0xa0).map((byte, i) => (i === 171 ? 0 : byte)),
      "padding too long": changed(0, 0xa0).map((byte, i) => (i === 171 ? 161 : byte)),
    };
    for (const [name, bytes] of Object.entries(invalid)) expect(kinds(session, bytes), name).toEqual([]);
    expect(session.packets).toBe(0);
    expect(kinds(session, packet(1, 0), ...Object.values(invalid), packet(2, 160))).toEqual([
      "start",
      "audio",
      "audio",
    ]);
    expect(kinds(session, packet(3, 320, Buffer.from([1, 0x80, 0]), 101), packet(4, 320))).toEqual(["audio"]);
    const samples16 = new RtpSession("slin16", { callId: "c" });
    expect(kinds(samples16, packet(1, 0, Buffer.alloc(641), 118))).toEqual([]);
    expect(kinds(samples16, packet(1, 0, Buffer.alloc(640), 118))).toEqual(["start", "audio"]);
  });
});

it("templates are filled with the call's fields and nothing else", () => {
  expect(filled("crm-{from}-{x}", { from: "+49" })).toBe("crm-+49-");
  expect(filled("{constructor}{__proto__}", {})).toBe("");
});
