/** Listen, over every transport that carries it, in every encoding and layout. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { create, toBinary, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  ContextSchema,
  Decision,
  EnrollStatus,
  ListenRequestSchema,
  type ListenResponse,
  LiveProcessor,
} from "../../src/contract/index.js";
import { joined, rateHz, silence, take } from "../processor/fixture-engine.js";
import { pcm16 } from "../processor/world.js";
import { bytesOf, type LiveBox, pieces, startLiveBox, stopLiveBoxes } from "./live-box.js";

type Request = MessageInitShape<typeof ListenRequestSchema>;
type Start = Extract<NonNullable<Request["content"]>, { case: "start" }>["value"];

let live: LiveBox;
let ada: { value: string };

beforeAll(async () => {
  live = await startLiveBox();
  ada = await live.enroll("ada", 100);
});
afterAll(stopLiveBoxes);

const format = { encoding: "pcm16", rate: rateHz, channels: 1 };
const verifyAda = () => ({ name: "caller", task: { case: "verify", value: { gkVoiceprintProfileId: ada } } }) as const;

/** Over Connect. */
async function listened(start: Start, audio: Uint8Array, more: Request[] = []): Promise<ListenResponse[]> {
  const client = createClient(LiveProcessor, createConnectTransport({ baseUrl: live.box.url, httpVersion: "2" }));
  const requests = async function* (): AsyncGenerator<Request> {
    yield { content: { case: "start", value: start } };
    for (const piece of pieces(audio, 333)) yield { content: { case: "audio", value: piece } };
    yield* more;
  };
  const responses: ListenResponse[] = [];
  for await (const response of client.listen(requests())) responses.push(response);
  return responses;
}

const cases = (responses: readonly ListenResponse[]) => responses.map(({ event }) => event.case);
const resultOf = (responses: readonly ListenResponse[], party = "caller") => {
  const found = responses.find((response) => response.party === party && response.event.case === "result")?.event;
  return found?.case === "result" ? found.value.result : undefined;
};

describe("a call", () => {
  it("is decided at the first clear checkpoint, with progress events before", async () => {
    const responses = await listened(
      { context: await live.openSession(), ...format, parties: [verifyAda()] },
      bytesOf(take(100, 8)),
    );
    expect(cases(responses)).toEqual(["started", "progress", "checkpoint", "result"]);
    const [, progress, checkpoint] = responses;
    expect(progress!.event.value).toMatchObject({ grossAudio: { seconds: 1n }, netAudio: { seconds: 1n }, snrDb: 30 });
    expect(checkpoint!.event.value).toMatchObject({ decision: Decision.AUTHENTIC, isFinal: true });
    const result = resultOf(responses);
    expect(result).toMatchObject({ case: "verify", value: { decision: Decision.AUTHENTIC } });
    if (result?.case === "verify") expect(result.value.audioDetails!.grossAudio).toMatchObject({ seconds: 2n });
  });

  it("reports progress at the interval asked for, which batches do not delay", async () => {
    const profile = await live.enroll("cleo", 600, false);
    const task = { case: "enroll", value: { gkVoiceprintProfileId: profile } } as const;
    const start = { ...format, progressInterval: { nanos: 700_000_000 }, parties: [{ name: "caller", task }] };
    const responses = await listened({ context: await live.openSession(), ...start }, bytesOf(take(600, 2.2)));
    const tenths = responses.flatMap(({ event }) =>
      event.case === "progress"
        ? [10 * Number(event.value.grossAudio!.seconds) + Math.floor(event.value.grossAudio!.nanos / 1e8)]
        : [],
    );
    expect(tenths).toEqual([7, 14, 21]);
  });

  it("that ends earlier is answered from the audio so far; a no-match is reported", async () => {
    const context = await live.openSession();
    const other = await listened({ context, ...format, parties: [verifyAda()] }, bytesOf(take(200, 6)));
    expect(cases(other).filter((name) => name !== "progress")).toEqual([
      "started",
      "checkpoint",
      "checkpoint",
      "result",
    ]);
    expect(resultOf(other)).toMatchObject({ value: { decision: Decision.NO_MATCH } });
    const { result } = await live.operations.getSessionDecision({ context });
    expect(result!.checks.map(({ operation }) => operation)).toEqual(["Listen"]);
    const short = await listened({ context, ...format, parties: [verifyAda()] }, bytesOf(take(100, 0.4)), [
      { content: { case: "end", value: {} } },
    ]);
    expect(resultOf(short)).toMatchObject({ value: { decision: Decision.UNCERTAIN } });
  });

  it("can identify and analyze, and has two parties in two channels", async () => {
    const context = await live.openSession();
    const both = pcm16([take(100, 6), take(300, 6)]);
    const responses = await listened(
      {
        context,
        ...format,
        channels: 2,
        parties: [
          {
            name: "caller",
            channelSelector: { channel: 1 },
            task: {
              case: "identify",
              value: { target: { case: "gkVoiceprintProfileIds", value: { uniqueIds: [ada] } } },
            },
          },
          {
            name: "agent",
            channelSelector: { channel: 2 },
            task: { case: "analyze", value: { gkVoiceprintProfileIds: { uniqueIds: [ada] } } },
          },
        ],
      },
      both,
    );
    expect(resultOf(responses, "caller")).toMatchObject({ case: "identify", value: { decision: Decision.AUTHENTIC } });
    const agent = resultOf(responses, "agent");
    expect(agent).toMatchObject({ case: "analyze", value: { decision: Decision.NO_MATCH } });
    if (agent?.case === "analyze")
      expect(agent.value.audioDetails).toMatchObject({ mediaNumberOfChannels: 2, selectedChannel: { channel: 2 } });
  });

  it("enrolls a person once there is enough good speech", async () => {
    const bea = await live.enroll("bea", 500, false);
    const context = await live.openSession();
    const start = {
      context,
      ...format,
      parties: [{ name: "caller", task: { case: "enroll", value: { gkVoiceprintProfileId: bea } } } as const],
    };
    const audio = bytesOf(joined(silence(10), take(500, 2.9), silence(2), take(500, 4), silence(1), take(500, 20)));
    const responses = await listened(start, audio);
    expect(cases(responses).filter((name) => name === "segment")).toHaveLength(3);
    expect(resultOf(responses)).toMatchObject({
      case: "enroll",
      value: { enrollStatus: EnrollStatus.TRAIN_SUGGESTED, enrolledSegments: 3, training: { reason: 1 } },
    });
    const parties = [{ name: "caller", task: { case: "verify", value: { gkVoiceprintProfileId: bea } } } as const];
    const verified = await listened({ context, ...format, parties }, bytesOf(take(500, 4)));
    expect(resultOf(verified)).toMatchObject({ value: { decision: Decision.AUTHENTIC } });
  });

  it("enrolls the same if all audio comes in one message", async () => {
    const dan = await live.enroll("dan", 700, false);
    const audio = bytesOf(joined(take(700, 3), silence(1), take(700, 3), silence(2), take(700, 4)));
    const responses = await listened(
      {
        context: await live.openSession(),
        ...format,
        parties: [{ name: "caller", task: { case: "enroll", value: { gkVoiceprintProfileId: dan } } } as const],
      },
      new Uint8Array(),
      [{ content: { case: "audio", value: audio } }, { content: { case: "end", value: {} } }],
    );
    expect(resultOf(responses)).toMatchObject({
      value: { enrollStatus: EnrollStatus.TRAIN_SUGGESTED, enrolledSegments: 3 },
    });
  });

  it("with too little speech enrolls nobody, and reports what is missing", async () => {
    const cid = await live.enroll("cid", 600, false);
    const start = {
      context: await live.openSession(),
      ...format,
      parties: [{ name: "caller", task: { case: "enroll", value: { gkVoiceprintProfileId: cid } } } as const],
    };
    const responses = await listened(start, bytesOf(take(600, 1.5)));
    expect(resultOf(responses)).toMatchObject({
      value: { enrollStatus: EnrollStatus.TRAIN_NOT_POSSIBLE, enrolledSegments: 1 },
    });
    // Nothing was trained, and no training is reported.
    const segment = responses.find(({ event }) => event.case === "segment")!.event.value;
    expect(segment).toMatchObject({ enrollment: { enrolled: true } });
    expect(segment).not.toHaveProperty("training");
    expect(resultOf(await listened(start, bytesOf(silence(3))))).toMatchObject({ value: { enrolledSegments: 0 } });
  });

  it("reports keys and handles lost audio", async () => {
    const responses = await listened(
      { context: await live.openSession(), ...format, parties: [verifyAda()] },
      // Five seconds are processed; a quarter of a second is still waiting.
      bytesOf(take(200, 5.25)),
      [{ content: { case: "dtmf", value: "7" } }, { content: { case: "lostSamples", value: 800 } }],
    );
    const key = responses.find(({ event }) => event.case === "dtmf")!;
    expect(key.event.value).toMatchObject({ digit: "7", inBand: false, at: { seconds: 5n, nanos: 250_000_000 } });
    const last = responses.at(-1)!.event;
    expect(last.value).toMatchObject({ lostAudio: { nanos: 100_000_000 } });
  });

  it("reports the time of a key even if one of two parties had its result before", async () => {
    const other = { name: "agent", channelSelector: { channel: 2 }, ignoreCheckpoints: true };
    const responses = await listened(
      {
        context: await live.openSession(),
        ...format,
        channels: 2,
        parties: [
          { ...verifyAda(), channelSelector: { channel: 1 } },
          { ...other, task: verifyAda().task },
        ],
      },
      pcm16([take(100, 8), take(300, 8)]),
      [{ content: { case: "dtmf", value: "7" } }],
    );
    expect(cases(responses).indexOf("result")).toBeLessThan(cases(responses).indexOf("dtmf"));
    const key = responses.find(({ event }) => event.case === "dtmf")!;
    expect(key.event.value).toMatchObject({ digit: "7", at: { seconds: 8n, nanos: 0 } });
  });

  it("reports the keys that it hears, with the party and the time", async () => {
    const pressed = Float32Array.from({ length: rateHz / 10 }, (_, i) => {
      const radians = (2 * Math.PI * i) / rateHz;
      return 0.3 * (Math.sin(770 * radians) + Math.sin(1336 * radians));
    });
    const responses = await listened(
      { context: await live.openSession(), ...format, parties: [verifyAda()] },
      bytesOf(joined(silence(0.5), pressed, silence(0.5))),
    );
    const keys = responses.filter(({ event }) => event.case === "dtmf");
    expect(keys).toMatchObject([{ party: "caller", event: { value: { digit: "5", inBand: true } } }]);
    const { at } = keys[0]!.event.value as { at: { seconds: bigint; nanos: number } };
    expect(at.seconds).toBe(0n);
    expect(Math.abs(at.nanos / 1e9 - 0.5)).toBeLessThan(0.0128 /* one block of the detector */);
  });
});

describe("invalid requests are rejected with the name of the field", () => {
  const refused = async (start: object, more: Request[] = []) => {
    const whole = { context: await live.openSession(), ...format, parties: [verifyAda()], ...start };
    return listened(whole as Start, bytesOf(take(200, 1)), more).then(
      () => null,
      (error: Error) => error.message,
    );
  };
  it.each([
    [{ encoding: "opus" }, /encoding must be one of pcm16, l16, alaw, mulaw, float32, got "opus"/],
    [{ rate: 7999 }, /8,000 to 48,000 Hz, got 7999/],
    [{ channels: 3 }, /1 or 2 channels, got 3/],
    [{ parties: [] }, /parties is mandatory/],
    [{ parties: [{ name: "caller" }] }, /verify or identify or analyze or enroll must be set/],
    [{ context: {} }, /context/],
  ])("%j", async (start, message) => {
    expect(await refused(start)).toMatch(message);
  });

  it("a missing channel, two parties with one name, an unknown profile, a second start, an invalid key", async () => {
    expect(await refused({ channels: 2, parties: [{ ...verifyAda(), channelSelector: { channel: 3 } }] })).toMatch(
      /must be 0 to 2, got 3/,
    );
    expect(await refused({ parties: [verifyAda(), verifyAda()] })).toMatch(/different names/);
    const unknown = { value: "01900000-0000-7000-8000-000000000000" };
    const parties = [{ name: "x", task: { case: "verify", value: { gkVoiceprintProfileId: unknown } } }];
    expect(await refused({ parties })).toMatch(/there is no profile "/);
    const start = { context: await live.openSession(), ...format, parties: [verifyAda()] };
    expect(await refused({}, [{ content: { case: "start", value: start } }])).toMatch(/only be in the first message/);
    expect(await refused({}, [{ content: { case: "dtmf", value: "77" } }])).toMatch(/got "77"/);
  });
});

describe("other clients", () => {
  it("grpc-js, from the .proto alone, both directions at once", async () => {
    const proto = join(import.meta.dirname, "..", "..", "proto");
    const options = {
      includeDirs: [proto],
      keepCase: true,
      enums: String,
      longs: Number,
      defaults: false,
      oneofs: true,
    };
    // biome-ignore lint/suspicious/noExplicitAny: a client made from the .proto at run time has no types
    const loaded = grpc.loadPackageDefinition(loadSync(join(proto, "vendor/biosec/v1/live.proto"), options)) as any;
    const client = new loaded.vendor.biosec.v1.LiveProcessor(
      new URL(live.box.url).host,
      grpc.credentials.createInsecure(),
    );
    const call = client.Listen();
    const context = toJson(ContextSchema, create(ContextSchema, await live.openSession())) as Record<string, unknown>;
    const snake = Object.fromEntries(
      Object.entries(context).map(([key, value]) => [key.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), value]),
    );
    call.write({
      start: { context: snake, ...format, parties: [{ name: "caller", verify: { gk_voiceprint_profile_id: ada } }] },
    });
    const [started] = await once(call, "data");
    expect(started.started).toEqual({});
    const answers: { event: string }[] = [];
    call.on("data", (answer: { event: string }) => answers.push(answer));
    for (const piece of pieces(bytesOf(take(100, 4)), 3200)) call.write({ audio: piece });
    await once(call, "end");
    expect(answers.map(({ event }) => event)).toEqual(["progress", "checkpoint", "result"]);
    client.close();
  });

  it("gRPC: a client that does not read frees its place, however long it stays connected", async () => {
    const impatient = await startLiveBox({ limits: { liveIdleSeconds: 1 } });
    const gkVoiceprintProfileId = await impatient.enroll("ada", 100);
    const session = connectHttp2(impatient.box.url);
    const pings = setInterval(() => session.destroyed || session.ping(() => {}), 100);
    const headers = { ":method": "POST", ":path": "/vendor.biosec.v1.LiveProcessor/Listen" };
    const stream = session.request({ ...headers, "content-type": "application/grpc", te: "trailers" });
    stream.on("error", () => {}).on("response", () => {});
    const send = (content: Request["content"]) => {
      const message = toBinary(ListenRequestSchema, create(ListenRequestSchema, { content } as Request));
      const head = Buffer.alloc(5);
      head.writeUInt32BE(message.length, 1);
      stream.write(Buffer.concat([head, message]));
    };
    // Answers of a kilobyte, ten for each second of audio: more than the connection takes for somebody who does not read.
    const task = { case: "verify", value: { gkVoiceprintProfileId } } as const;
    const party = { name: "caller".repeat(170), ignoreCheckpoints: true, task };
    const context = await impatient.openSession();
    send({ case: "start", value: { context, ...format, progressInterval: { nanos: 1 }, parties: [party] } });
    for (let i = 0; i < 1000; i++) send({ case: "audio", value: bytesOf(silence(0.1)) });
    const listened = () => impatient.logged.filter(({ operation }) => operation === "Listen");
    await expect.poll(() => listened()).toHaveLength(1);
    expect(await (await fetch(`${impatient.box.url}/metrics`)).text()).toContain("vivavoce_live_calls 0");
    clearInterval(pings);
    session.destroy();
  });

  it("gRPC: the longest call gets its results", async () => {
    const short = await startLiveBox({ limits: { liveCallSeconds: 1 } });
    const client = createClient(LiveProcessor, createGrpcTransport({ baseUrl: short.box.url }));
    const profile = await short.enroll("ada", 100);
    const party = { name: "caller", task: { case: "verify", value: { gkVoiceprintProfileId: profile } } } as const;
    const start = { context: await short.openSession(), ...format, parties: [party] };
    const requests = async function* (): AsyncGenerator<Request> {
      yield { content: { case: "start", value: start } };
      yield { content: { case: "audio", value: bytesOf(take(100, 1.5)) } };
      await new Promise(() => {});
    };
    const responses: ListenResponse[] = [];
    for await (const response of client.listen(requests())) responses.push(response);
    expect(resultOf(responses)).toMatchObject({ value: { decision: Decision.AUTHENTIC } });
  });

  it("gRPC: what cannot be read is the sender's fault, and no failure in the log", async () => {
    const session = connectHttp2(live.box.url);
    const statusOf = async (message: Uint8Array, headers: Record<string, string> = {}) => {
      const path = `/${LiveProcessor.typeName}/Listen`;
      const fixed = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
      const stream = session.request({ ...fixed, ...headers });
      stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
      stream.resume();
      // A call that fails at once has its status in the headers.
      const answered = Promise.race([once(stream, "trailers"), once(stream, "response")]);
      const [found] = await answered;
      const [trailers] = found["grpc-status"] === undefined ? await once(stream, "trailers") : [found];
      return trailers["grpc-status"];
    };
    expect(await statusOf(new Uint8Array([0xff, 0xff, 0xff]))).toBe("3");
    expect(await statusOf(new Uint8Array(), { "grpc-timeout": "soon" })).toBe("3");
    session.close();
    expect(live.logged.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("a deadline that is as long as the longest call, in gRPC and Connect", async () => {
    const start = { context: await live.openSession(), ...format, parties: [verifyAda()] };
    const requests = async function* (): AsyncGenerator<Request> {
      yield { content: { case: "start", value: start } };
      yield { content: { case: "audio", value: bytesOf(take(100, 4)) } };
    };
    const options = { baseUrl: live.box.url, httpVersion: "2" } as const;
    for (const transport of [createConnectTransport(options), createGrpcTransport({ baseUrl: live.box.url })]) {
      const responses: ListenResponse[] = [];
      const client = createClient(LiveProcessor, transport);
      for await (const response of client.listen(requests(), { timeoutMs: 14_400_000 })) responses.push(response);
      expect(resultOf(responses)).toMatchObject({ value: { decision: Decision.AUTHENTIC } });
    }
  });

  it("WebSocket: JSON and binary frames; an error is sent before it closes", async () => {
    const url = `${live.box.url.replace("http", "ws")}/v1/live`;
    const socket = new WebSocket(url, "vivavoce.live.v1");
    const answers: Record<string, unknown>[] = [];
    socket.on("message", (data) => answers.push(JSON.parse(String(data))));
    await once(socket, "open");
    const context = toJson(ContextSchema, create(ContextSchema, await live.openSession()));
    const parties = [{ name: "caller", verify: { gkVoiceprintProfileId: ada } }];
    socket.send(JSON.stringify({ start: { context, ...format, parties } }));
    for (const piece of pieces(bytesOf(take(100, 4)), 320)) socket.send(piece);
    const [code] = await once(socket, "close");
    expect(code).toBe(1000);
    expect(answers.map((answer) => Object.keys(answer).at(-1))).toEqual([
      "started",
      "progress",
      "checkpoint",
      "result",
    ]);
    expect(answers.at(-1)).toMatchObject({ party: "caller", result: { verify: { decision: "DECISION_AUTHENTIC" } } });

    for (const wrong of ["{", "[]", '{"begin":{}}', '{"end":{}}']) {
      const refused = new WebSocket(url, "vivavoce.live.v1");
      await once(refused, "open");
      const told = once(refused, "message");
      refused.send(wrong);
      expect(JSON.parse(String((await told)[0]))).toMatchObject({ status: { statusCode: "BAD_REQUEST" } });
      expect((await once(refused, "close"))[0]).toBe(1008);
    }
  });
});
