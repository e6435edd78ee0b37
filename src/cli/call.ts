/** A test caller: plays a recording into a running box in real time, in a dialect of a telephone system. */
import { createHmac, randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { type Command, Option } from "commander";
import { WebSocket } from "ws";
import { openRecording } from "../audio/file.js";
import { joined } from "../audio/joined.js";
import type { Recording } from "../audio/port.js";
import { pcm16Wav, WAV_HEADER_BYTES } from "../audio/wav-writer.js";
import { CommandError } from "./command-error.js";
import { createOutput } from "./output.js";

interface Options {
  readonly wav: string;
  readonly dialect: (typeof DIALECTS)[number];
  readonly url: string;
  readonly line: string;
  readonly from: string;
  readonly token?: string;
  readonly secret?: string;
  readonly user?: string;
  readonly password?: string;
  readonly speed: string;
  readonly json?: boolean;
}

const DIALECTS = ["twilio", "audiosocket", "asterisk-websocket", "jambonz"] as const;
const RATE_HZ = 8_000;
const PACKET_SAMPLES = 160;

export function callCommand(program: Command): void {
  program
    .command("call")
    .description("play a recording to a running box in real time, as a telephone system would")
    .requiredOption("--wav <file>", "WAV file with a sampling rate of 8 kHz")
    .addOption(new Option("--dialect <name>", "protocol of the line").choices(DIALECTS).makeOptionMandatory())
    .option("--url <url>", "address of the box", process.env.VIVAVOCE_URL ?? "http://127.0.0.1:8080")
    .requiredOption("--line <name>", "name of the line in the box's configuration")
    .option("--from <number>", "caller id", "+490000000")
    .option("--token <token>", "access token, for lines with announced calls", process.env.VIVAVOCE_TOKEN)
    .option("--secret <secret>", "auth token of a Twilio line")
    .option("--user <name>", "user name of a jambonz or Asterisk WebSocket line")
    .option("--password <password>", "password of that user")
    .option("--speed <factor>", "playback speed; 1 is real time", "1")
    .option("--json", "when the call has ended, print what the box sent on the line as JSON")
    .action(call);
}

async function call(options: Options): Promise<void> {
  const speed = Number(options.speed);
  if (!(speed > 0)) throw new CommandError(`--speed must be above 0, got ${options.speed}`);
  const recording = openRecording(options.wav);
  if (recording.rateHz !== RATE_HZ)
    throw new CommandError(
      `${options.wav} must have ${RATE_HZ} Hz, got ${recording.rateHz} Hz`,
      `convert it: ffmpeg -i ${options.wav} -ar ${RATE_HZ} call.wav`,
    );
  const { line, from } = options;
  const output = createOutput(options.json ?? false);
  const messages: string[] = [];
  const caller = await callerOf(options, (message) => {
    if (output.json) messages.push(message);
    else process.stdout.write(`${message}\n`);
  });
  output.note(`calling line ${line} as ${from} …`);
  await paced(recording, speed, caller);
  await caller.hangUp();
  if (output.json) output.answer({ line, from, messages: messages.map(parsed) }, () => "");
}

/** Depending on the dialect, the box sends JSON or a line of text. */
function parsed(message: string): unknown {
  try {
    return JSON.parse(message);
  } catch {
    return message;
  }
}

interface Caller {
  /** 20 ms of samples from -1 to 1. */
  send(samples: Float32Array, index: number): void;
  readonly isOpen: () => boolean;
  hangUp(): Promise<void>;
}

async function paced(recording: Recording, speed: number, caller: Caller): Promise<void> {
  const startedAt = performance.now();
  let index = 0;
  let rest = new Float32Array();
  for (const chunk of recording.read(recording.channels === 1 ? 1 : 0)) {
    const samples = joined([rest, chunk]);
    let at = 0;
    for (; at + PACKET_SAMPLES <= samples.length; at += PACKET_SAMPLES) {
      if (!caller.isOpen()) return;
      caller.send(samples.slice(at, at + PACKET_SAMPLES), index++);
      const due = startedAt + (index * PACKET_SAMPLES * 1000) / RATE_HZ / speed;
      if (due > performance.now()) await wait(due - performance.now());
    }
    rest = samples.slice(at);
  }
}

async function callerOf(options: Options, onMessage: (message: string) => void): Promise<Caller> {
  return options.dialect === "audiosocket" ? audioSocketCaller(options) : webSocketCaller(options, onMessage);
}

async function webSocketCaller(options: Options, onMessage: (message: string) => void): Promise<Caller> {
  const { dialect, from } = options;
  const callId = randomUUID();
  const path = `/telephony/${options.line}${dialect === "asterisk-websocket" ? `?from=${encodeURIComponent(from)}` : ""}`;
  const address = `${options.url.replace(/\/+$/, "").replace(/^http/, "ws")}${path}`;
  const socket = new WebSocket(address, { headers: headersOf(options, address) });
  socket.on("message", (data) => onMessage(String(data)));
  await Promise.race([
    once(socket, "open"),
    once(socket, "unexpected-response").then(([, response]) => {
      throw new CommandError(`the box answered HTTP ${response.statusCode} to ${address}`);
    }),
  ]);
  socket.on("error", () => {});
  const send = (message: object) => socket.send(JSON.stringify(message));
  if (dialect === "twilio") {
    const mediaFormat = { encoding: "audio/x-mulaw", sampleRate: RATE_HZ, channels: 1 };
    send({ event: "connected", protocol: "Call", version: "1.0.0" });
    send({ event: "start", start: { callSid: callId, streamSid: callId, mediaFormat, customParameters: { from } } });
  } else if (dialect === "jambonz") send({ callSid: callId, from, sampleRate: RATE_HZ, mixType: "mono" });
  else socket.send(`MEDIA_START connection_id:test channel:WebSocket/test channel_id:${callId} format:slin ptime:20`);
  return {
    isOpen: () => socket.readyState === socket.OPEN,
    send(samples, index) {
      if (dialect !== "twilio") return socket.send(pcm16(samples));
      const payload = Buffer.from(samples.map(mulawCode)).toString("base64");
      send({ event: "media", media: { track: "inbound", chunk: String(index + 1), payload } });
    },
    async hangUp() {
      if (socket.readyState !== socket.OPEN) return;
      if (dialect === "twilio") send({ event: "stop", stop: { callSid: callId } });
      socket.close();
      await once(socket, "close");
    },
  };
}

function headersOf({ dialect, secret, user, password }: Options, address: string): Record<string, string> {
  if (dialect === "twilio") {
    if (!secret) throw new CommandError("a Twilio line needs --secret, the auth token of its configuration");
    return { "x-twilio-signature": createHmac("sha1", secret).update(address).digest("base64") };
  }
  if (!user || !password) throw new CommandError(`a ${dialect} line needs --user and --password`);
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

async function audioSocketCaller({ url, line, from, token }: Options): Promise<Caller> {
  const response = await fetch(`${url.replace(/\/+$/, "")}/telephony/${line}/calls`, {
    method: "POST",
    headers: token ? { authorization: `Bearer ${token}` } : {},
    body: JSON.stringify({ from }),
  });
  if (!response.ok)
    throw new CommandError(`the call was not announced: HTTP ${response.status} ${await response.text()}`);
  const { uuid, port } = (await response.json()) as { uuid: string; port: number };
  const socket = connectTcp(port, new URL(url).hostname);
  await once(socket, "connect");
  socket.on("error", () => {});
  const packet = (kind: number, payload: Buffer) =>
    socket.write(Buffer.concat([Buffer.from([kind, payload.length >> 8, payload.length & 0xff]), payload]));
  packet(0x01, Buffer.from(uuid.replaceAll("-", ""), "hex"));
  return {
    isOpen: () => !socket.destroyed && socket.writable,
    send: (samples) => packet(0x10, Buffer.from(pcm16(samples))),
    async hangUp() {
      if (socket.destroyed) return;
      packet(0x00, Buffer.alloc(0));
      socket.end();
      await once(socket, "close");
    },
  };
}

/** As in a WAV file, without its header. */
const pcm16 = (samples: Float32Array): Uint8Array => pcm16Wav(samples, RATE_HZ).subarray(WAV_HEADER_BYTES);

/** ITU-T G.711, µ-law. */
function mulawCode(x: number): number {
  const sign = x < 0 ? 0x80 : 0;
  const magnitude = Math.min(32635, Math.round(Math.abs(x) * 32768)) + 132;
  const exponent = Math.floor(Math.log2(magnitude)) - 7;
  return ~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 15)) & 0xff;
}
