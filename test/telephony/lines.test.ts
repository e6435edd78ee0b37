/** Calls on every line of a running box: processed, decided, reported to a webhook, and deleted afterwards. */
import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { encodeFrame, FrameType } from "asterisk-audiosocket";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { mulaw } from "../../src/audio/g711.js";
import { Decision } from "../../src/contract/index.js";
import type { SessionContext } from "../../src/telephony/line-message.js";
import { SIGNATURE_HEADER, signatureOf } from "../../src/telephony/webhook.js";
import { run } from "../cli/run.js";
import { bytesOf, type LiveBox, pieces, scope, startLiveBox, stopLiveBoxes } from "../live/live-box.js";
import { rateHz, take } from "../processor/fixture-engine.js";
import { wav } from "../voice.js";
import { apiKey, audioHookHeaders, authToken, basic, basicHeader, clientSecret, twilioHeaders } from "./credentials.js";

/** A voice of the fixture engine that µ-law carries unchanged. */
const code = mulaw.findIndex((value) => value > 0.1 && value < 0.9 && (value * 1000) % 1 < 0.15);
const speaker = Math.floor(mulaw[code]! * 1000);
const spoken = (seconds: number) => new Uint8Array(Math.round(seconds * rateHz)).fill(code);
const samples = (seconds: number) => new Float32Array(Math.round(seconds * rateHz)).fill(mulaw[code]!);

const secret = "a webhook's secret";
interface Heard {
  readonly line: string;
  readonly type: string;
  readonly decision?: string;
  readonly enrollStatus?: string;
  readonly call: Record<string, string>;
  readonly context: SessionContext;
  readonly status?: string;
  readonly reason?: string;
}
const heard: Heard[] = [];
const hook = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString();
    const signature = String(request.headers[SIGNATURE_HEADER]);
    const seconds = Number(/^t=(\d+),/.exec(signature)?.[1]);
    if (signature !== signatureOf(secret, seconds, body)) response.statusCode = 403;
    else if (failures-- > 0) response.statusCode = 503;
    else heard.push(JSON.parse(body));
    response.end();
  });
});
let failures = 0;
let live: LiveBox;

beforeAll(async () => {
  hook.listen(0);
  await once(hook, "listening");
  const webhook = { url: `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`, secret };
  const line = { scope, configset: "ivr-text-dependent", webhook };
  live = await startLiveBox({
    limits: { liveCalls: 4, liveIdleSeconds: 2, stopSeconds: 3 },
    telephony: [
      { ...line, name: "audiosocket", dialect: "audiosocket", port: 0, onResult: "leave" },
      { ...line, name: "rtp", dialect: "rtp", ports: [0, 0], format: "ulaw" },
      { ...line, name: "channel", dialect: "asterisk-websocket", ...basic, onResult: "leave" },
      { ...line, name: "twilio", dialect: "twilio", authToken },
      { ...line, name: "jambonz", dialect: "jambonz", ...basic },
      { ...line, name: "enrolling", dialect: "freeswitch", ...basic, unknownCaller: "enroll" },
      {
        ...line,
        name: "audiohook",
        dialect: "audiohook",
        apiKey,
        clientSecret,
        agent: "anna",
      },
      { ...line, name: "mixed", dialect: "jambonz", ...basic, separateVoices: true, agent: "anna" },
      { ...line, name: "new-agent", dialect: "jambonz", ...basic, separateVoices: true, agent: "berta" },
    ],
  });
  await live.enroll("+4930", speaker);
  await live.enroll("anna", 700);
  await live.enroll("berta", 800, false);
});
afterAll(async () => {
  await stopLiveBoxes();
  hook.close();
});

/** What the webhook receives for this call. */
async function told(line: string, callId: string): Promise<Heard> {
  for (let i = 0; i < 100; i++) {
    const found = heard.find((one) => one.line === line && one.call.callId === callId);
    if (found) return found;
    await wait(50);
  }
  throw new Error(`nothing was told of ${callId}; heard ${JSON.stringify(heard)}`);
}

const socketTo = async (line: string, headers: Record<string, string>, query = "", protocol?: string) => {
  const socket = new WebSocket(
    `${live.box.url.replace("http", "ws")}/telephony/${line}${query}`,
    protocol ? [protocol] : [],
    { headers },
  );
  await once(socket, "open");
  return socket;
};
const announce = async (line: string, fields: object) => {
  const response = await fetch(`${live.box.url}/telephony/${line}/calls`, {
    method: "POST",
    body: JSON.stringify(fields),
  });
  const announced = (await response.json()) as { uuid?: string; port?: number };
  return { status: response.status, ...announced };
};
const refusedWith = async (line: string, headers: Record<string, string>) => {
  const socket = new WebSocket(`${live.box.url.replace("http", "ws")}/telephony/${line}`, { headers });
  const [, response] = await once(socket, "unexpected-response");
  socket.on("error", () => {});
  socket.terminate();
  return response.statusCode;
};

describe("AudioSocket", () => {
  const idBytes = (uuid: string) => Buffer.from(uuid.replaceAll("-", ""), "hex");
  it("an announced call is decided, and its dialplan continues", async () => {
    const { uuid, port } = await announce("audiosocket", { from: "+4930" });
    const socket = net.connect(Number(port), "127.0.0.1");
    const answered: Buffer[] = [];
    socket.on("data", (chunk) => answered.push(chunk));
    socket.write(encodeFrame(FrameType.UUID, idBytes(String(uuid))));
    for (const piece of pieces(bytesOf(samples(4)), 320))
      socket.write(encodeFrame(FrameType.AUDIO, Buffer.from(piece)));
    await once(socket, "close");
    expect(Buffer.concat(answered)).toEqual(Buffer.from([0, 0, 0]));
    expect(await told("audiosocket", String(uuid))).toMatchObject({ type: "result", decision: "AUTHENTIC" });
  });

  it.each([
    ["too long", JSON.stringify({ from: "x".repeat(70_000) }), 413],
    ["not an object", "[]", 400],
    ["not JSON", "{", 400],
  ])("an announcement that is %s is refused", async (_, body, status) => {
    const response = await fetch(`${live.box.url}/telephony/audiosocket/calls`, { method: "POST", body });
    expect(response.status).toBe(status);
  });

  it("an unannounced call, or a second one with the same UUID, is refused with a hang-up, after which the dialplan continues", async () => {
    const socket = net.connect(live.box.linePorts.get("audiosocket")!, "127.0.0.1");
    const answered: Buffer[] = [];
    socket.on("data", (chunk) => answered.push(chunk));
    socket.write(encodeFrame(FrameType.UUID, idBytes("40325ec2-5efd-4bd3-805f-53576e581d13")));
    await once(socket, "close");
    expect(Buffer.concat(answered)).toEqual(Buffer.from([0, 0, 0]));
  });

  it("a call whose sampling rate changes gets a result from what was heard before", async () => {
    const { uuid, port } = await announce("audiosocket", { from: "+4930" });
    const socket = net.connect(Number(port), "127.0.0.1");
    socket.resume();
    socket.write(encodeFrame(FrameType.UUID, idBytes(String(uuid))));
    for (const piece of pieces(bytesOf(samples(1.5)), 320))
      socket.write(encodeFrame(FrameType.AUDIO, Buffer.from(piece)));
    const wideband = 0x12;
    for (let n = 0; n < 3; n++) socket.write(Buffer.from([wideband, 0, 2, 0, 0]));
    await once(socket, "close");
    expect(await told("audiosocket", String(uuid))).toMatchObject({ type: "result", decision: "AUTHENTIC" });
    expect(live.logged.filter(({ message }) => message === "the rest of a call was not heard")).toEqual([
      expect.objectContaining({ line: "audiosocket", reason: "the sampling rate changed from 8000 to 16000 Hz" }),
    ]);
  });

  it("the dialplan continues after a call that falls silent, as on hold", async () => {
    const { uuid, port } = await announce("audiosocket", { from: "+4930" });
    const socket = net.connect(Number(port), "127.0.0.1");
    const answered: Buffer[] = [];
    socket.on("data", (chunk) => answered.push(chunk));
    socket.write(encodeFrame(FrameType.UUID, idBytes(String(uuid))));
    socket.write(encodeFrame(FrameType.AUDIO, Buffer.from(bytesOf(samples(1.5)))));
    await once(socket, "close");
    expect(Buffer.concat(answered)).toEqual(Buffer.from([0, 0, 0]));
    expect(await told("audiosocket", String(uuid))).toMatchObject({ type: "result", decision: "AUTHENTIC" });
  });

  it("a peer that sends nothing is disconnected", async () => {
    const socket = net.connect(live.box.linePorts.get("audiosocket")!, "127.0.0.1");
    await once(socket, "connect");
    await once(socket, "close");
  });
});

describe("RTP", () => {
  it("a call from ffmpeg is processed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-rtp-"));
    try {
      const file = join(folder, "call.wav");
      await writeFile(file, wav(samples(4), rateHz));
      const { port } = await announce("rtp", { from: "+4930", callId: "ffmpeg-call" });
      const args = [
        "-nostdin",
        "-loglevel",
        "error",
        "-re",
        "-i",
        file,
        "-c:a",
        "pcm_mulaw",
        "-f",
        "rtp",
        `rtp://127.0.0.1:${port}`,
      ];
      await promisify(execFile)("ffmpeg", args);
      expect(await told("rtp", "ffmpeg-call")).toMatchObject({ decision: "AUTHENTIC" });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("ports of RTP calls", () => {
  it("bytes that are not RTP, from the caller or from somebody else before it, do not disturb the call", async () => {
    const { port } = await announce("rtp", { from: "+4930", callId: "disturbed-call" });
    const [stranger, caller] = [createSocket("udp4"), createSocket("udp4")];
    const send = (from: typeof caller, bytes: Uint8Array) =>
      new Promise<void>((sent) => {
        from.send(bytes, Number(port), "127.0.0.1", () => sent());
      });
    await send(stranger, Buffer.from("OPTIONS sip:box SIP/2.0"));
    for (const [n, piece] of pieces(spoken(4), 160).entries()) {
      const head = Buffer.from([0x80, 0, n >> 8, n & 0xff, 0, 0, 0, 0, 0, 0, 0, 7]);
      head.writeUInt32BE(160 * n, 4);
      await send(caller, Buffer.concat([head, piece]));
      if (n % 20 === 0) await send(caller, Buffer.alloc(n % 30));
      if (n % 20 === 0) await wait(5);
    }
    expect(await told("rtp", "disturbed-call")).toMatchObject({ decision: "AUTHENTIC" });
    stranger.close();
    caller.close();
  });

  it("a change of the system's clock does not end the call", async () => {
    const { port } = await announce("rtp", { from: "+4930", callId: "clock-call" });
    const caller = createSocket("udp4");
    const send = async (from: number, to: number) => {
      for (let n = from; n < to; n++) {
        const head = Buffer.from([0x80, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, 7]);
        head.writeUInt32BE(160 * n, 4);
        caller.send(Buffer.concat([head, spoken(0.02)]), Number(port), "127.0.0.1");
        await wait(1);
      }
    };
    await send(0, 20);
    const now = Date.now;
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now() + 3_600_000);
    // The box looks for calls without packets every quarter of a second.
    await wait(600);
    clock.mockRestore();
    await send(20, 200);
    expect(await told("rtp", "clock-call")).toMatchObject({ decision: "AUTHENTIC" });
    caller.close();
  });

  it("a box that stood still does not end the calls whose audio came meanwhile", async () => {
    const rtp = await announce("rtp", { from: "+4930", callId: "still-rtp" });
    const tcp = await announce("audiosocket", { from: "+4930" });
    const [caller, socket] = [createSocket("udp4"), net.connect(Number(tcp.port), "127.0.0.1")];
    // The box hangs up after its decision.
    socket.on("error", () => {});
    socket.write(encodeFrame(FrameType.UUID, Buffer.from(tcp.uuid!.replaceAll("-", ""), "hex")));
    const send = (from: number, to: number) => {
      for (let n = from; n < to; n++) {
        const head = Buffer.from([0x80, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, 7]);
        head.writeUInt32BE(160 * n, 4);
        caller.send(Buffer.concat([head, spoken(0.02)]), Number(rtp.port), "127.0.0.1");
        socket.write(encodeFrame(FrameType.AUDIO, Buffer.from(bytesOf(samples(0.02)))));
      }
    };
    send(0, 40);
    await wait(300);
    // Longer than the idle time. What was just sent is read after the timers have run.
    await new Promise<void>((resume) => {
      setImmediate(() => send(40, 80));
      setImmediate(() => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_600);
        resume();
      });
    });
    await wait(300);
    send(80, 200);
    expect(await told("rtp", "still-rtp")).toMatchObject({ decision: "AUTHENTIC" });
    expect(await told("audiosocket", tcp.uuid!)).toMatchObject({ decision: "AUTHENTIC" });
    caller.close();
    socket.destroy();
  });

  it("a call goes on with another source of the same sender, as after a transfer, and ignores other senders", async () => {
    const { port } = await announce("rtp", { from: "+4930", callId: "transferred-call" });
    const [stranger, caller] = [createSocket("udp4"), createSocket("udp4")];
    const send = async (from: typeof caller, source: number, packets: number, value: number) => {
      for (let n = 0; n < packets; n++) {
        const head = Buffer.from([0x80, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, source]);
        head.writeUInt32BE(160 * n, 4);
        from.send(Buffer.concat([head, Buffer.alloc(160, value)]), Number(port), "127.0.0.1");
        await wait(1);
      }
    };
    await send(caller, 7, 10, code);
    await wait(300);
    await send(stranger, 8, 200, 0);
    await send(caller, 9, 200, code);
    expect(await told("rtp", "transferred-call")).toMatchObject({ decision: "AUTHENTIC" });
    stranger.close();
    caller.close();
  });

  let box: LiveBox;
  const announceOne = async (fields: object) => {
    const body = JSON.stringify({ from: "+4930", ...fields });
    return fetch(`${box.box.url}/telephony/rtp/calls`, { method: "POST", body });
  };

  it("an unknown format is refused and takes up no port", async () => {
    const free = await freeUdpPort();
    box = await startLiveBox({ telephony: [{ name: "rtp", dialect: "rtp", scope, ports: [free, free] }] });
    for (const format of ["opus", "constructor"]) {
      const refused = await announceOne({ format });
      expect(refused.status).toBe(400);
      expect((await refused.json()).status.message).toContain("format must be one of ulaw, alaw, slin");
    }
    expect((await announceOne({ format: "alaw" })).status).toBe(200);
    expect((await announceOne({})).status).toBe(503);
  });

  it("a line on all addresses answers the host that the announcement was sent to", async () => {
    const line = { dialect: "rtp", scope, ports: [0, 0] as [number, number] } as const;
    const telephony = ["0.0.0.0", "127.0.0.1"].map((host, i) => ({ ...line, name: `rtp${i}`, host }));
    box = await startLiveBox({ telephony });
    const announced = async (host: string, name: string) => {
      const body = JSON.stringify({ from: "+4930" });
      const url = Object.assign(new URL(box.box.url), { hostname: host });
      return (await fetch(`${url.origin}/telephony/${name}/calls`, { method: "POST", body })).json();
    };
    expect(await announced("127.0.0.1", "rtp0")).toMatchObject({ host: "127.0.0.1" });
    expect(await announced("localhost", "rtp0")).toMatchObject({ host: "localhost" });
    expect(await announced("localhost", "rtp1")).toMatchObject({ host: "127.0.0.1" });
  });

  it("the log says why an announced call did not arrive, and that a part of one was ignored", async () => {
    const line = { name: "rtp", dialect: "rtp", scope, configset: "ivr-text-dependent" } as const;
    box = await startLiveBox({ telephony: [{ ...line, ports: [0, 0], announcedSeconds: 2 }] });
    await box.enroll("+4930", speaker);
    const caller = createSocket("udp4");
    const call = async (...payloadTypes: number[]) => {
      const { port } = await (await announceOne({})).json();
      for (const [n, type] of payloadTypes.entries())
        caller.send(Buffer.from([0x80, type, 0, n, 0, 0, 0, n, 0, 0, 0, 7, 0xff]), port, "127.0.0.1");
    };
    // 200 is RTCP, a sender report.
    await Promise.all([call(), call(8, 200), call(0, 0, 8)]);
    const warned = () => box.logged.filter(({ reason }) => /payload type|its port/.test(String(reason)));
    while (warned().length < 3) await wait(50);
    const said = warned().map(({ message, reason }) => `${message}: ${reason}`);
    expect(said.sort()).toEqual([
      "a part of a call was ignored: packets of payload type 8 were ignored; ulaw has 0",
      "an announced call did not arrive: no RTP packet came to its port within 2 s",
      "an announced call did not arrive: packets of payload type 8 were ignored; ulaw has 0",
    ]);
    caller.close();
  });

  it("a host that is not an address of this machine is an error of the start, not of every call", async () => {
    const elsewhere = {
      name: "rtp",
      dialect: "rtp" as const,
      scope,
      ports: [0, 0] as [number, number],
      host: "192.0.2.1",
    };
    await expect(startLiveBox({ telephony: [elsewhere] })).rejects.toMatchObject({ code: "EADDRNOTAVAIL" });
  });

  it("a box can stop while an announced call has not arrived", async () => {
    box = await startLiveBox({
      telephony: [{ name: "rtp", dialect: "rtp", scope, ports: [0, 0], announcedSeconds: 0.1 }],
    });
    expect((await announceOne({})).status).toBe(200);
    await box.box.stop();
    // An uncaught error of a timer that was left would fail this test.
    await wait(600);
  });
});

async function freeUdpPort(): Promise<number> {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address();
  socket.close();
  return port;
}

describe("WebSocket lines", () => {
  it("Twilio: a call signed by its library is decided, and the webhook is retried", async () => {
    failures = 2;
    const url = `${live.box.url.replace("http", "ws")}/telephony/twilio`;
    const socket = await socketTo("twilio", twilioHeaders(url));
    const send = (message: object) => socket.send(JSON.stringify(message));
    send({ event: "connected", protocol: "Call", version: "1.0.0" });
    const mediaFormat = { encoding: "audio/x-mulaw", sampleRate: 8000, channels: 1 };
    send({
      event: "start",
      start: { callSid: "CA1", streamSid: "MZ1", mediaFormat, customParameters: { from: "+4930" } },
    });
    for (const [i, piece] of pieces(spoken(4), 160).entries())
      send({
        event: "media",
        media: { track: "inbound", chunk: String(i + 1), payload: Buffer.from(piece).toString("base64") },
      });
    expect(await told("twilio", "CA1")).toMatchObject({ decision: "AUTHENTIC" });
    expect(socket.readyState).toBe(socket.OPEN);
    send({ event: "stop", stop: { callSid: "CA1" } });
    socket.close();
  });

  it("the messages of a call name its session, whose decision can be asked for", async () => {
    const socket = await socketTo("jambonz", { authorization: basicHeader });
    const onSocket = new Promise<object>((resolve) =>
      socket.on("message", (message) => {
        const { data } = JSON.parse(String(message));
        if (data?.type === "result") resolve(data.context);
      }),
    );
    socket.send(JSON.stringify({ callSid: "decided", from: "+4930", sampleRate: 8000 }));
    for (const piece of pieces(bytesOf(samples(4)), 3200)) socket.send(piece);
    const { context } = await told("jambonz", "decided");
    expect(await onSocket).toEqual(context);
    const { result } = await live.operations.getSessionDecision({ context });
    expect(result).toMatchObject({ decision: Decision.AUTHENTIC, personId: "+4930" });
    socket.close();
  });

  it("jambonz: messages on the same socket", async () => {
    const socket = await socketTo("jambonz", { authorization: basicHeader }, "", "audio.jambonz.org");
    expect(socket.protocol).toBe("audio.jambonz.org");
    const messages: Record<string, never>[] = [];
    socket.on("message", (data) => messages.push(JSON.parse(String(data))));
    socket.send(JSON.stringify({ callSid: "jb1", from: "+4930", sampleRate: 8000, mixType: "mono" }));
    const checkpoint = once(socket, "message");
    for (const piece of pieces(bytesOf(take(700, 4)), 320)) socket.send(piece);
    // Nothing is sent to a caller who has hung up.
    await checkpoint;
    socket.close();
    expect(await told("jambonz", "jb1")).toMatchObject({ decision: "NO_MATCH" });
    expect(messages[0]).toMatchObject({
      type: "json",
      data: { type: "checkpoint", decision: "NO_MATCH", isFinal: false },
    });
  });

  it("jambonz: a key that no telephone has does not end the call", async () => {
    const socket = await socketTo("jambonz", { authorization: basicHeader });
    socket.send(JSON.stringify({ callSid: "flash", from: "+4930", sampleRate: 8000 }));
    socket.send(JSON.stringify({ event: "dtmf", dtmf: "!" }));
    for (const piece of pieces(bytesOf(samples(4)), 320)) socket.send(piece);
    expect(await told("jambonz", "flash")).toMatchObject({ decision: "AUTHENTIC" });
    socket.close();
  });

  it("the test caller plays a recording and prints what the box sent as JSON", async () => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-call-"));
    const recording = join(folder, "call.wav");
    await writeFile(recording, wav(take(700, 8), rateHz));
    const to = ["--url", live.box.url, "--line", "jambonz", "--dialect", "jambonz", "--from", "+4930"];
    const ran = await run(
      ...["call", "--wav", recording, ...to, "--user", basic.user, "--password", basic.password],
      ...["--speed", "2", "--json"],
    );
    await rm(folder, { recursive: true });
    expect(ran).toMatchObject({ code: 0, err: "" });
    expect(ran.json).toMatchObject({ line: "jambonz", from: "+4930" });
    expect(ran.json.messages[0]).toMatchObject({ type: "json", data: { type: "checkpoint", decision: "NO_MATCH" } });
  });

  it("the test caller says where to look if the recording was over before the box had a result", async () => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-call-"));
    const recording = join(folder, "call.wav");
    await writeFile(recording, wav(take(700, 0.5), rateHz));
    const call = (dialect: string, ...credentials: string[]) =>
      run("call", "--wav", recording, "--url", live.box.url, "--line", dialect, "--dialect", dialect, ...credentials);
    for (const [dialect, ...credentials] of [
      ["jambonz", "--from", "+4930", "--user", basic.user, "--password", basic.password],
      ["twilio", "--from", "+4930", "--secret", authToken],
    ])
      expect(await call(dialect!, ...credentials)).toMatchObject({
        code: 0,
        out: "",
        err: expect.stringMatching(
          /^calling line .*\nthe box sent no result on this line during the call; look in the operator view/,
        ),
      });
    await writeFile(recording, wav(samples(5), rateHz));
    const decided = await call("jambonz", "--from", "+4930", "--user", basic.user, "--password", basic.password);
    await rm(folder, { recursive: true });
    expect(decided).toMatchObject({
      out: expect.stringContaining("AUTHENTIC"),
      err: "calling line jambonz as +4930 …\n",
    });
  });

  it("the test caller calls an AudioSocket line at an IPv6 address", async () => {
    const there = await startLiveBox({
      host: "::1",
      telephony: [{ name: "six", dialect: "audiosocket", host: "::1", port: 0, scope }],
    });
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-call-"));
    const recording = join(folder, "call.wav");
    await writeFile(recording, wav(samples(0.5), rateHz));
    const url = there.box.url;
    expect(url).toContain("[::1]");
    const ran = await run("call", "--wav", recording, "--url", url, "--line", "six", "--dialect", "audiosocket");
    await rm(folder, { recursive: true });
    expect(ran).toMatchObject({ code: 0, err: expect.stringContaining("calling line six") });
  });

  it("the test caller says why a call failed", async () => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-call-"));
    const [recording, text] = [join(folder, "call.wav"), join(folder, "text.wav")];
    await writeFile(recording, wav(take(700, 1), rateHz));
    await writeFile(text, "this is not audio");
    const call = (line: string, dialect: string, ...more: string[]) =>
      run("call", "--wav", recording, "--url", live.box.url, "--line", line, "--dialect", dialect, ...more);
    const basicly = ["--user", basic.user, "--password"];
    expect(await call("jambonz", "jambonz", ...basicly, "wrong")).toMatchObject({
      code: 4,
      err: expect.stringMatching(
        /^error: the line "jambonz" refused the call \(HTTP 401\)\nhint: check --user and --pass/,
      ),
    });
    expect(await call("nope", "jambonz", ...basicly, basic.password)).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^error: the box at .* has no jambonz line "nope"\n/),
    });
    expect((await call("jambonz", "audiosocket")).err).toMatch(
      /^error: the box at .* has no audiosocket line "jambonz"\n/,
    );
    // The box hangs up on a caller without a print.
    expect(await call("audiosocket", "audiosocket", "--from", "+0")).toMatchObject({
      code: 0,
      err: expect.stringMatching(
        /\nthe box ended the call before the recording was over: it has its result \(.*\), or its log says why\n$/,
      ),
    });
    const nowhere = ["--url", "http://127.0.0.1:9"];
    for (const [dialect, ...credentials] of [
      ["twilio", "--secret", "x"],
      ["jambonz", ...basicly, "x"],
    ])
      expect(await call("a", dialect!, ...credentials, ...nowhere)).toMatchObject({
        code: 4,
        err: "error: cannot connect to http://127.0.0.1:9: connection refused\n",
      });
    expect((await call("a", "twilio", "--secret", "x", "--url", "box")).err).toMatch(
      /^error: --url must be an address/,
    );
    expect((await call("a", "twilio", "--secret", "x", "--wav", text)).err).toBe(
      `error: ${text}: not a WAV file; for headerless audio give encoding, rate and channels\n`,
    );
    await rm(folder, { recursive: true });
  });

  it("the test caller's help does not print a token", async () => {
    vi.stubEnv("VIVAVOCE_TOKEN", "sesame");
    const { out } = await run("call", "--help");
    vi.unstubAllEnvs();
    expect(out).toContain("VIVAVOCE_TOKEN");
    expect(out).not.toContain("sesame");
  });

  /** Enough for a print: four stretches with pauses. */
  const monologue = (value: number) => {
    const speech = new Float32Array(20 * rateHz);
    for (const [at, length] of [
      [0, 3],
      [3.5, 4],
      [8, 3],
      [12, 7],
    ] as const)
      speech.fill(value, at * rateHz, (at + length) * rateHz);
    return bytesOf(speech);
  };

  it("FreeSWITCH: a caller without a print is enrolled during the call", async () => {
    const socket = await socketTo("enrolling", { authorization: basicHeader }, "?from=%2B4931&uuid=fs1");
    for (const piece of pieces(monologue(mulaw[code]!), 3200)) socket.send(piece);
    expect(await told("enrolling", "fs1")).toMatchObject({ enrollStatus: "TRAIN_SUGGESTED" });
    socket.close();
  });

  it("FreeSWITCH: a caller who hung up too early, or calls twice at the same moment, is enrolled all the same", async () => {
    const call = async (uuid: string, bytes: Uint8Array) => {
      const socket = await socketTo("enrolling", { authorization: basicHeader }, `?from=%2B4932&uuid=${uuid}`);
      for (const piece of pieces(bytes, 3200)) socket.send(piece);
      socket.close();
      return told("enrolling", uuid);
    };
    const short = bytesOf(samples(0.5));
    for (const first of await Promise.all(["early1", "early2"].map((uuid) => call(uuid, short))))
      expect(first).toMatchObject({ enrollStatus: "TRAIN_NOT_POSSIBLE" });
    expect(await call("again", monologue(mulaw[code]!))).toMatchObject({ enrollStatus: "TRAIN_SUGGESTED" });
    expect(await call("known", bytesOf(samples(4)))).toMatchObject({ decision: "AUTHENTIC" });
  });

  it("Asterisk's channel: the box hangs up after the decision", async () => {
    const socket = await socketTo("channel", { authorization: basicHeader }, "?from=%2B4930", "media");
    const commands: string[] = [];
    socket.on("message", (data) => commands.push(String(data)));
    socket.send(
      "MEDIA_START connection_id:m1 channel:WebSocket/m1 channel_id:17.1 format:ulaw optimal_frame_size:160 ptime:20",
    );
    for (const piece of pieces(spoken(4), 160)) socket.send(piece);
    expect((await once(socket, "close"))[0]).toBe(1000);
    expect(commands).toEqual(["HANGUP"]);
    expect(await told("channel", "17.1")).toMatchObject({ decision: "AUTHENTIC" });
  });

  it("jambonz, agent and caller in one channel: only the caller is verified", async () => {
    const call = async (callSid: string, caller: Float32Array) => {
      const socket = await socketTo("mixed", { authorization: basicHeader });
      socket.send(JSON.stringify({ callSid, from: "+4930", sampleRate: 8000, mixType: "mono" }));
      for (const turn of [take(700, 2), caller.slice(0, rateHz), take(700, 1), caller])
        for (const piece of pieces(bytesOf(turn), 3200)) socket.send(piece);
      socket.close();
      return told("mixed", callSid);
    };
    expect(await call("mixed1", samples(2))).toMatchObject({ decision: "AUTHENTIC" });
    expect(await call("mixed2", take(500, 2))).toMatchObject({ decision: "NO_MATCH" });
  });

  it("a call that ends without a result is reported to the webhook, with the reason", async () => {
    const socket = await socketTo("jambonz", { authorization: basicHeader });
    socket.send(JSON.stringify({ callSid: "unknown-caller", from: "+4999", sampleRate: 8000, mixType: "mono" }));
    const { context, ...failed } = await told("jambonz", "unknown-caller");
    expect(failed).toMatchObject({
      type: "failed",
      call: { from: "+4999" },
      status: "NOT_FOUND",
      reason: "the claimed person has no voiceprint and the line has no other check",
    });
    const { result } = await live.operations.getSessionDecision({ context });
    expect(result!.checks).toEqual([]);
    socket.close();
  });

  it("jambonz, agent and caller in one channel: an agent who is not enrolled yet does not keep the caller from being checked", async () => {
    const socket = await socketTo("new-agent", { authorization: basicHeader });
    socket.send(JSON.stringify({ callSid: "new-agent", from: "+4930", sampleRate: 8000, mixType: "mono" }));
    for (const piece of pieces(bytesOf(samples(4)), 3200)) socket.send(piece);
    expect(await told("new-agent", "new-agent")).toMatchObject({ decision: "AUTHENTIC" });
    socket.close();
  });

  it("AudioHook: a signed connection opens, delivers both channels, gets events and closes", async () => {
    const id = "30b0e395-84d3-4570-ac13-9a62d8f514c0";
    const socket = await socketTo("audiohook", audioHookHeaders(new URL(live.box.url).host, id));
    const messages: { type: string; parameters: { entities?: { data: object }[] } }[] = [];
    const answered = (type: string) =>
      new Promise<void>((resolve) =>
        socket.on("message", (data) => JSON.parse(String(data)).type === type && resolve()),
      );
    socket.on("message", (data) => messages.push(JSON.parse(String(data))));
    let seq = 0;
    const send = (type: string, parameters: object) =>
      socket.send(JSON.stringify({ version: "2", type, seq: ++seq, serverseq: 0, id, position: "PT0S", parameters }));
    const opened = answered("opened");
    send("open", {
      organizationId: "d7934305-0972-4844-938e-9060eef73d05",
      conversationId: "090eaa2f-72fa-480a-83e0-8667ff89c0ec",
      participant: { id: "883efee8-3d6c-4537-b500-6d7ca4b92fa0", ani: "+4930", dnis: "+1-800-555-6789" },
      media: [{ type: "audio", format: "PCMU", channels: ["external", "internal"], rate: 8000 }],
    });
    await opened;
    const both = Uint8Array.from({ length: 2 * 4 * rateHz }, (_, i) => (i % 2 === 0 ? code : 0xff));
    for (const piece of pieces(both, 3200)) socket.send(piece);
    send("ping", {});
    expect(await told("audiohook", "090eaa2f-72fa-480a-83e0-8667ff89c0ec")).toMatchObject({ decision: "AUTHENTIC" });
    const closed = answered("closed");
    send("close", { reason: "end" });
    await closed;
    expect(messages.map(({ type }) => type)).toEqual(expect.arrayContaining(["opened", "pong", "event", "closed"]));
    const events = messages
      .filter(({ type }) => type === "event")
      .map(({ parameters }) => parameters.entities![0]!.data);
    expect(events).toContainEqual(expect.objectContaining({ party: "caller", type: "result", decision: "AUTHENTIC" }));
    socket.close();
  });

  it("AudioHook: a caller who hangs up gets the result before the session is closed, and Genesys closes the connection", async () => {
    const id = "30b0e395-84d3-4570-ac13-9a62d8f514c0";
    const socket = await socketTo("audiohook", audioHookHeaders(new URL(live.box.url).host, id));
    const messages: string[] = [];
    socket.on("message", (data) => messages.push(JSON.parse(String(data)).type));
    let seq = 0;
    const send = (type: string, parameters: object = {}) =>
      socket.send(JSON.stringify({ version: "2", type, seq: ++seq, serverseq: 0, id, position: "PT0S", parameters }));
    const media = [{ type: "audio", format: "PCMU", channels: ["external"], rate: 8000 }];
    send("open", { conversationId: "290eaa2f-72fa-480a-83e0-8667ff89c0ec", participant: { ani: "+4930" }, media });
    await once(socket, "message");
    socket.send(spoken(0.5));
    send("close", { reason: "end" });
    while (!messages.includes("closed")) await wait(20);
    expect(messages).toEqual(["opened", "event", "closed"]);
    expect(socket.readyState).toBe(socket.OPEN);
    socket.close();
  });

  it("AudioHook: a pause that is longer than the idle time does not end the call", async () => {
    const id = "30b0e395-84d3-4570-ac13-9a62d8f514c0";
    const conversationId = "190eaa2f-72fa-480a-83e0-8667ff89c0ec";
    const socket = await socketTo("audiohook", audioHookHeaders(new URL(live.box.url).host, id));
    let seq = 0;
    const send = (type: string, parameters: object = {}) =>
      socket.send(JSON.stringify({ version: "2", type, seq: ++seq, serverseq: 0, id, position: "PT0S", parameters }));
    const media = [{ type: "audio", format: "PCMU", channels: ["external"], rate: 8000 }];
    send("open", { conversationId, participant: { ani: "+4930" }, media });
    await once(socket, "message");
    socket.send(spoken(0.5));
    send("paused");
    for (let i = 0; i < 6; i++) {
      await wait(500);
      send("ping");
    }
    send("resumed");
    socket.send(spoken(4));
    expect(await told("audiohook", conversationId)).toMatchObject({ decision: "AUTHENTIC" });
    socket.close();
  });

  it("a connection without the dialect's credentials is refused", async () => {
    expect(await refusedWith("twilio", { "x-twilio-signature": "AAAA" })).toBe(401);
    expect(await refusedWith("jambonz", {})).toBe(401);
    expect(await refusedWith("channel", { authorization: `${basicHeader}x` })).toBe(401);
    expect(await refusedWith("audiohook", { "x-api-key": apiKey })).toBe(401);
    expect(await refusedWith("nowhere", {})).toBe(404);
  });

  it("calls that are refused before the box listens are counted", async () => {
    const counts = async () => {
      const metrics = await (await fetch(`${live.box.url}/metrics`)).text();
      return ["NOT_AUTHORIZED", "BAD_REQUEST", "NOT_FOUND", "INVALID_REQUEST"].map((status) => {
        const labels = `operation="Listen",protocol="telephony",status="${status}"`;
        return Number(new RegExp(`^vivavoce_call_seconds_count{${labels}} (\\d+)`, "m").exec(metrics)?.[1] ?? 0);
      });
    };
    const before = await counts();
    await refusedWith("jambonz", {});
    const invalid = await socketTo("jambonz", { authorization: basicHeader });
    invalid.send("not JSON");
    await once(invalid, "close");
    const unknown = await socketTo("jambonz", { authorization: basicHeader });
    unknown.send(JSON.stringify({ callSid: "unknown", from: "nobody", sampleRate: 8000 }));
    await once(unknown, "close");
    await announce("rtp", { format: "opus" });
    // Metrics are written once a second.
    await wait(1000);
    expect((await counts()).map((count, i) => count - before[i]!)).toEqual([1, 1, 1, 1]);
  });

  it("an invalid frame ends the call, and the box keeps running", async () => {
    const socket = await socketTo("jambonz", { authorization: basicHeader });
    socket.send("not JSON");
    await once(socket, "close");
    expect((await fetch(`${live.box.url}/healthz`)).status).toBe(200);
  });
});

describe("limits", () => {
  it("a full box answers BUSY in the dialect; a call that ends frees its place", async () => {
    const open = await Promise.all(
      [1, 2, 3, 4].map(async (n) => {
        const socket = await socketTo("jambonz", { authorization: basicHeader });
        socket.send(JSON.stringify({ callSid: `full${n}`, from: "+4930", sampleRate: 8000 }));
        socket.send(new Uint8Array(320));
        return socket;
      }),
    );
    await wait(300);
    const fifth = await socketTo("jambonz", { authorization: basicHeader });
    fifth.send(JSON.stringify({ callSid: "full5", from: "+4930", sampleRate: 8000 }));
    const [message] = await once(fifth, "message");
    expect(JSON.parse(String(message))).toEqual({ type: "disconnect" });
    expect((await once(fifth, "close"))[0]).toBe(1013);
    for (const socket of open) socket.terminate();
    await wait(300);
    const sixth = await socketTo("jambonz", { authorization: basicHeader });
    sixth.send(JSON.stringify({ callSid: "full6", from: "+4930", sampleRate: 8000 }));
    for (const piece of pieces(bytesOf(samples(4)), 320)) sixth.send(piece);
    expect(await told("jambonz", "full6")).toMatchObject({ decision: "AUTHENTIC" });
    sixth.close();
  });

  it("a connection that sends messages and starts no call is disconnected", async () => {
    const url = `${live.box.url.replace("http", "ws")}/telephony/twilio`;
    const socket = await socketTo("twilio", twilioHeaders(url));
    const sending = setInterval(() => socket.send(JSON.stringify({ event: "connected" })), 500);
    const closed = await Promise.race([once(socket, "close"), wait(10_000)]);
    clearInterval(sending);
    expect(closed?.[0]).toBe(1006);
    const tcp = net.connect(live.box.linePorts.get("audiosocket")!, "127.0.0.1");
    // A packet that announces 65,535 bytes, and never has them.
    const trickling = setInterval(() => tcp.write(Buffer.from([0x10, 0xff, 0xff])), 500);
    tcp.on("error", () => {});
    // Not `once` of node:events: it rejects if a write meets the closed connection.
    const closedFirst = await Promise.race([
      new Promise((closed) => tcp.once("close", () => closed(true))),
      wait(10_000),
    ]);
    clearInterval(trickling);
    expect(closedFirst).toBe(true);
  });

  it("a call that stops sending is ended, and what was heard is its result", async () => {
    const socket = await socketTo("jambonz", { authorization: basicHeader });
    socket.send(JSON.stringify({ callSid: "idle", from: "+4930", sampleRate: 8000 }));
    socket.send(bytesOf(samples(1.5)));
    await once(socket, "close");
    expect(await told("jambonz", "idle")).toMatchObject({ type: "result", decision: "AUTHENTIC" });
  });
});
