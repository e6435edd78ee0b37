/** What a single call must not do to the box. */
import { expect, it, vi } from "vitest";
import { type ListenRequest, StatusCode, StatusError } from "../../src/contract/index.js";
import { AsteriskWebSocketSession } from "../../src/telephony/asterisk-websocket/asterisk-websocket.js";
import { AudioForkSession } from "../../src/telephony/audio-fork/audio-fork.js";
import { AudioHookSession } from "../../src/telephony/audiohook/audiohook.js";
import { Call, type CallParts } from "../../src/telephony/call.js";
import { DialectSession, events, type Frame, type Received } from "../../src/telephony/port.js";
import { RtpSession } from "../../src/telephony/rtp/rtp.js";

const webhook = { send() {} };

class BrokenSession extends DialectSession {
  receive(): Received {
    throw new TypeError("a mistake in a dialect");
  }
}

it("a mistake in a dialect ends its call and is logged, and nothing is thrown into the connection", () => {
  const failures: (string | undefined)[] = [];
  const log = { info() {}, warn() {}, error: (_: string, fields?: { stack?: string }) => failures.push(fields?.stack) };
  let isClosed = false;
  const socket = {
    send() {},
    close: () => {
      isClosed = true;
    },
    flow: null,
  };
  const refused = vi.fn();
  const parts = { line: { name: "broken" }, log, exchange: { refused } } as unknown as CallParts;
  const call = new Call(parts, new BrokenSession(), socket, () => {});
  for (let n = 0; n < 3; n++) call.receive("frame");
  expect(isClosed).toBe(true);
  expect(failures).toEqual([expect.stringContaining("a mistake in a dialect")]);
  expect(refused.mock.calls).toEqual([[StatusCode.INTERNAL_ERROR]]);
});

it("an unexpected error after the end of a call is logged, once", async () => {
  class LateSession extends AsteriskWebSocketSession {
    override receive(frame: Frame): Received {
      if (frame === "late") throw new TypeError("a mistake in a dialect");
      return super.receive(frame);
    }
  }
  const logged: unknown[] = [];
  const note = (_: string, fields?: { reason?: string; stack?: string }) =>
    logged.push(fields?.reason ?? fields?.stack?.split("\n")[0]);
  const exchange = {
    refused() {},
    startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
    startSession: async () => ({ gkSessionId: { value: "session" } }),
    stopEngagement: async () => {
      throw new StatusError({ statusCode: StatusCode.BUSY, message: "the database does not answer" });
    },
  };
  const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "", agent: "", playback: {} };
  const parts = { line, exchange, webhook, log: { info: note, warn: note, error: note } } as unknown as CallParts;
  const call = new Call(parts, new LateSession({}), { send() {}, close() {}, flow: null }, () => {});
  for (let n = 0; n < 2; n++) call.receive("MEDIA_START connection_id:a format:ulaw");
  await call.leaveWhenOver();
  // The engagement of the refused call stays open.
  expect(logged.splice(0)).toEqual(["MEDIA_START was sent twice", "BUSY: the database does not answer"]);
  for (let n = 0; n < 3; n++) call.receive("late");
  expect(logged).toEqual(["TypeError: a mistake in a dialect"]);
});

it("a call whose session cannot be started leaves no open engagement", async () => {
  const stopped: unknown[] = [];
  const refused = vi.fn();
  const exchange = {
    refused,
    startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
    startSession: async () => {
      throw new StatusError({ statusCode: StatusCode.INVALID_REQUEST, message: "claimed_person_id is too long" });
    },
    stopEngagement: async ({ context }: { context: unknown }) => stopped.push(context),
  };
  const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "{from}" };
  const warned: (string | undefined)[] = [];
  const log = { info() {}, error() {}, warn: (_: string, fields?: { reason?: string }) => warned.push(fields?.reason) };
  const parts = { line, exchange, webhook, log } as unknown as CallParts;
  const socket = { send() {}, close() {}, flow: null };
  const call = new Call(parts, new AudioForkSession({}, { rate: 8000, channels: 1 }), socket, () => {});
  call.receive(JSON.stringify({ callSid: "1", from: "1".repeat(300) }));
  await call.leaveWhenOver();
  expect(stopped).toEqual([{ gkScopeId: { value: "bank" }, gkEngagementId: { value: "engagement" } }]);
  expect(warned).toEqual(["INVALID_REQUEST: claimed_person_id is too long"]);
  expect(refused.mock.calls).toEqual([[StatusCode.INVALID_REQUEST]]);
});

it("an engagement that cannot be stopped hides neither the result of a call nor why it has none", async () => {
  const gone = new StatusError({ statusCode: StatusCode.BUSY, message: "the database does not answer" });
  const tooLong = new StatusError({ statusCode: StatusCode.INVALID_REQUEST, message: "too long" });
  const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "", agent: "", playback: {} };
  const called = async (startSession: () => Promise<unknown>, listen = async function* () {}) => {
    const exchange = {
      refused() {},
      startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
      startSession,
      stopEngagement: () => Promise.reject(gone),
      listen,
    };
    const [warned, sent]: [unknown[], unknown[]] = [[], []];
    const log = { warn: (...given: unknown[]) => warned.push(given) };
    const hook = { send: (_: unknown, message: unknown) => sent.push(message) };
    const parts = { line: { ...line, onResult: "leave" }, exchange, webhook: hook, log } as unknown as CallParts;
    const socket = { send() {}, close() {}, flow: null };
    const call = new Call(parts, new AudioForkSession({}, { rate: 8000, channels: 1 }), socket, () => {});
    call.receive(JSON.stringify({ callSid: "1", from: "+4930" }));
    await call.leaveWhenOver();
    return { warned, sent };
  };
  const unstopped = [
    "the session of a call could not be stopped",
    { line: "line", reason: "BUSY: the database does not answer" },
  ];
  const refused = await called(() => Promise.reject(tooLong));
  expect(refused.warned).toEqual([
    unstopped,
    ["a call ended with an error", { line: "line", reason: "INVALID_REQUEST: too long" }],
  ]);
  expect(refused.sent).toEqual([{ type: "failed", status: "INVALID_REQUEST", reason: "too long" }]);
  const heard = await called(async () => ({ gkSessionId: { value: "session" } }));
  expect(heard).toEqual({ warned: [unstopped], sent: [] });
});

it("an agent's print of another model does not keep the caller from being checked", async () => {
  const started: unknown[] = [];
  const profile = { value: "profile" };
  const isOfScopesModel = vi.fn(async () => false);
  const exchange = {
    startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
    startSession: async () => ({ gkSessionId: { value: "session" } }),
    stopEngagement: async () => {},
    getGkVoiceprintProfileId: async () => ({ gkVoiceprintProfileId: profile }),
    listVoiceprintProfiles: async () => ({ profiles: [{ gkVoiceprintProfileId: profile, printVersion: 1 }] }),
    isOfScopesModel,
    async *listen(requests: AsyncIterable<ListenRequest>) {
      for await (const { content } of requests) if (content.case === "start") started.push(...content.value.parties);
      yield* [];
    },
  };
  const names = { engagement: "", session: "", claimedPerson: "{from}", agent: "anna" };
  const line = { name: "line", scope: "bank", separateVoices: true, onResult: "leave", ...names };
  const warn = vi.fn();
  const call = async () => {
    const parts = { line, exchange, webhook, log: { warn } } as unknown as CallParts;
    const socket = { send() {}, close() {}, flow: null };
    const one = new Call(parts, new AudioForkSession({}, { rate: 8000, channels: 1 }), socket, () => {});
    one.receive(JSON.stringify({ callSid: "1", from: "+4930" }));
    one.hangUp();
    await one.leaveWhenOver();
  };
  await call();
  expect(isOfScopesModel).toHaveBeenCalledWith("bank", "profile");
  expect(warn.mock.calls).toEqual([
    [
      "the agent's voiceprint cannot separate the voices of a call",
      { line: "line", reason: expect.stringContaining("another model") },
    ],
  ]);
  isOfScopesModel.mockResolvedValue(true);
  await call();
  expect(warn).toHaveBeenCalledOnce();
  const voiceSeparation = expect.objectContaining({ gkAgentVoiceprintProfileId: expect.objectContaining(profile) });
  expect(started).toEqual([
    expect.not.objectContaining({ channelSelector: expect.anything() }),
    expect.objectContaining({ channelSelector: expect.objectContaining({ voiceSeparation }) }),
  ]);
});

it("a call whose session was stopped by a program ends like any other", async () => {
  const stopped = new StatusError({
    statusCode: StatusCode.INVALID_REQUEST,
    message: "the engagement has already stopped",
  });
  const exchange = {
    startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
    startSession: async () => ({ gkSessionId: { value: "session" } }),
    stopEngagement: () => Promise.reject(stopped),
    getGkVoiceprintProfileId: async () => ({ gkVoiceprintProfileId: { value: "profile" } }),
    async *listen() {},
  };
  const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "{from}", agent: "" };
  const warned: unknown[] = [];
  const log = { info() {}, error() {}, warn: (...given: unknown[]) => warned.push(given) };
  const parts = { line: { ...line, onResult: "leave" }, exchange, log } as unknown as CallParts;
  const codes: boolean[] = [];
  const socket = { send() {}, close: (isBusy: boolean) => codes.push(isBusy), flow: null };
  const call = new Call(parts, new AudioForkSession({}, { rate: 8000, channels: 1 }), socket, () => {});
  call.receive(JSON.stringify({ callSid: "1", from: "+4930" }));
  await call.leaveWhenOver();
  expect([warned, codes]).toEqual([[], [false]]);
});

it("what a dialect held back when the connection closed is part of the call", async () => {
  class HoldingSession extends DialectSession {
    receive(): Received {
      return events({ kind: "start", fields: {}, format: { encoding: "mulaw", rate: 8000, channels: 1 } });
    }
    override hungUp() {
      return events({ kind: "lost", samples: 160 }, { kind: "audio", bytes: new Uint8Array(160) }).events;
    }
  }
  const heard: (string | undefined)[] = [];
  const exchange = {
    startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
    startSession: async () => ({ gkSessionId: { value: "session" } }),
    stopEngagement: async () => {},
    async *listen(requests: AsyncIterable<ListenRequest>) {
      for await (const { content } of requests) heard.push(content.case);
      yield* [];
    },
  };
  const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "", agent: "", playback: {} };
  const socket = { send() {}, close() {}, flow: null };
  const parts = { line, exchange, log: {} } as unknown as CallParts;
  await new Promise<void>((over) => {
    const call = new Call(parts, new HoldingSession(), socket, over);
    call.receive("frame");
    call.hangUp();
  });
  expect(heard).toEqual(["start", "lostSamples", "audio"]);
});

it("audio that comes faster than the box reads it is reported as lost and logged", async () => {
  const [packets, second] = [4000, 8000];
  let begin = () => {};
  const filled = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const heard = { audio: 0, lost: 0 };
  const exchange = {
    startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
    startSession: async () => ({ gkSessionId: { value: "session" } }),
    stopEngagement: async () => {},
    async *listen(requests: AsyncIterable<ListenRequest>) {
      await filled;
      for await (const { content } of requests)
        if (content.case === "audio") heard.audio += content.value.length;
        else if (content.case === "lostSamples") heard.lost += content.value;
      yield* [];
    },
  };
  const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "", agent: "", playback: {} };
  const warned: unknown[] = [];
  const log = { warn: (message: string, fields: unknown) => warned.push(message, fields) };
  const parts = { line, exchange, log } as unknown as CallParts;
  await new Promise<void>((over) => {
    const call = new Call(parts, new RtpSession("ulaw", {}), { send() {}, close() {}, flow: null }, over);
    for (let i = 0; i < packets; i++) call.receive(rtpPacket(i));
    for (let i = 0; i < 3; i++) call.receive(rtpPacket(packets + i, KEY_ENDS[i]));
    begin();
    call.hangUp();
  });
  // Between the three keys there is no audio.
  const spokenAndKeys = (packets + 2) * 160;
  expect(heard.audio + heard.lost).toBe(spokenAndKeys);
  // 256 messages of 0.1 s wait.
  expect(heard.lost).toBe(spokenAndKeys - 25.6 * second);
  expect(warned).toEqual([
    "audio of a call was dropped",
    { line: "line", reason: "54.4 s came faster than the box could process them" },
    "keys of a call were dropped",
    { line: "line", reason: "3 came faster than the box could process them" },
  ]);
});

it("a caller whose profile was created by another call and erased at once gets a new one", async () => {
  const taken = new StatusError({ statusCode: StatusCode.ALREADY_EXISTS, message: "the person has a profile" });
  const created: unknown[] = [];
  const enrolled: unknown[] = [];
  const exchange = {
    startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
    startSession: async () => ({ gkSessionId: { value: "session" } }),
    stopEngagement: async () => {},
    getGkVoiceprintProfileId: async () => ({}),
    createVoiceprintProfile: async (request: unknown) => {
      created.push(request);
      if (created.length === 1) throw taken;
      return { gkVoiceprintProfileId: { value: "profile" } };
    },
    async *listen(requests: AsyncIterable<ListenRequest>) {
      for await (const { content } of requests)
        if (content.case === "start") enrolled.push(content.value.parties[0]?.task.value);
      yield* [];
    },
  };
  const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "{from}", agent: "" };
  const parts = { line: { ...line, unknownCaller: "enroll" }, exchange, log: { warn() {} } } as unknown as CallParts;
  await new Promise<void>((over) => {
    const session = new AudioForkSession({}, { rate: 8000, channels: 1 });
    const call = new Call(parts, session, { send() {}, close() {}, flow: null }, over);
    call.receive(JSON.stringify({ callSid: "1", from: "ada" }));
    call.hangUp();
  });
  expect(created).toHaveLength(2);
  expect(enrolled).toMatchObject([{ gkVoiceprintProfileId: { value: "profile" } }]);
});

/** The ends of the keys 1, 2 and 3 (RFC 4733). */
const KEY_ENDS = [1, 2, 3].map((key) => Uint8Array.of(key, 0x80, 0, 160));

function rtpPacket(sequence: number, key?: Uint8Array): Uint8Array {
  const packet = Buffer.alloc(12 + (key?.length ?? 160), 0xff);
  packet.writeUInt16BE(key ? 0x8065 : 0x8000);
  if (key) packet.set(key, 12);
  packet.writeUInt16BE(sequence, 2);
  packet.writeUInt32BE(160 * sequence, 4);
  packet.writeUInt32BE(1, 8);
  return packet;
}

it("a call that is refused is logged once, whatever its peer still sends", async () => {
  const logged: (string | undefined)[] = [];
  const note = (_: string, fields?: { reason?: string }) => logged.push(fields?.reason);
  const refused = vi.fn();
  const exchange = {
    refused,
    startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
    startSession: async () => ({ gkSessionId: { value: "session" } }),
    stopEngagement: async () => {},
  };
  const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "", agent: "", playback: {} };
  const parts = { line, exchange, webhook, log: { info: note, warn: note, error: note } } as unknown as CallParts;
  const socket = { send() {}, close() {}, flow: null };
  const [unstarted, started] = [0, 1].map(() => new Call(parts, new AsteriskWebSocketSession({}), socket, () => {}));
  for (let n = 0; n < 3; n++) unstarted!.receive(new Uint8Array(320));
  expect(logged.splice(0)).toEqual(["media came before MEDIA_START"]);
  for (let n = 0; n < 3; n++) started!.receive("MEDIA_START connection_id:a format:ulaw");
  await started!.leaveWhenOver();
  expect(logged).toEqual(["MEDIA_START was sent twice"]);
  expect(refused.mock.calls).toEqual([[StatusCode.BAD_REQUEST], [StatusCode.BAD_REQUEST]]);
});

it("a call that fails after Genesys closed the connection does not wait for that", async () => {
  vi.useFakeTimers();
  try {
    const line = { name: "line", scope: "bank", engagement: "" };
    const startEngagement = async () => {
      throw new StatusError({ statusCode: StatusCode.BUSY, message: "the store is busy" });
    };
    const log = { warn: vi.fn() };
    const parts = { line, exchange: { startEngagement, refused() {} }, webhook, log } as unknown as CallParts;
    await new Promise<void>((over) => {
      const call = new Call(parts, new AudioHookSession(), { send() {}, close() {}, flow: null }, over);
      const media = [{ type: "audio", format: "PCMU", channels: ["external"], rate: 8000 }];
      call.receive(JSON.stringify({ version: "2", type: "open", seq: 1, id: "call", parameters: { media } }));
      call.hangUp();
    });
    expect(log.warn).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

it("a caller without a number or a print is not decided by the agent in the other channel", async () => {
  const called = async (from: string) => {
    const refused = vi.fn();
    const parties: unknown[] = [];
    const exchange = {
      refused,
      startEngagement: async () => ({ gkEngagementId: { value: "engagement" } }),
      startSession: async () => ({ gkSessionId: { value: "session" } }),
      stopEngagement: async () => {},
      getGkVoiceprintProfileId: async ({ owner }: { owner: { value: string } }) =>
        owner.value === "nobody" ? {} : { gkVoiceprintProfileId: { value: "profile" } },
      async *listen(requests: AsyncIterable<ListenRequest>) {
        for await (const { content } of requests)
          if (content.case === "start") parties.push(...content.value.parties.map(({ name }) => name));
        yield* [];
      },
    };
    const line = { name: "line", scope: "bank", engagement: "", session: "", claimedPerson: "{from}", agent: "grace" };
    const parts = { line: { ...line, callerChannel: 1 }, exchange, webhook, log: { warn() {} } };
    await new Promise<void>((over) => {
      const session = new AudioForkSession({}, { rate: 8000, channels: 2 });
      const call = new Call(parts as unknown as CallParts, session, { send() {}, close() {}, flow: null }, over);
      call.receive(JSON.stringify({ callSid: "1", from }));
      call.hangUp();
    });
    return { parties, refused: refused.mock.calls };
  };
  expect(await called("ada")).toEqual({ parties: ["caller", "agent"], refused: [] });
  expect(await called("")).toEqual({ parties: [], refused: [[StatusCode.NOT_FOUND]] });
  expect(await called("nobody")).toEqual({ parties: [], refused: [[StatusCode.NOT_FOUND]] });
});
