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
import { isObject } from "../telephony/port.js";
import { boxAddress, unreachable } from "./box-address.js";
import { faultOf } from "./calls.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { createOutput } from "./output.js";
import { variable } from "./shared-options.js";

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
    .addOption(variable("--url <url>", "address of the box").default("http://127.0.0.1:8080"))
    .requiredOption("--line <name>", "name of the line in the box's configuration")
    .option("--from <number>", "caller id", "+490000000")
    .addOption(variable("--token <token>", "access token, for lines with announced calls (audiosocket)"))
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
  boxAddress(options.url);
  const recording = recordingIn(options.wav);
  if (recording.rateHz !== RATE_HZ)
    throw new CommandError(
      `${options.wav} must be sampled at ${RATE_HZ} Hz, got ${recording.rateHz} Hz`,
      `convert it: ffmpeg -i ${options.wav} -ar ${RATE_HZ} call.wav`,
    );
  const { line, from } = options;
  const output = createOutput(options.json);
  const messages: unknown[] = [];
  const onMessage = (message: string) => {
    messages.push(parsed(message));
    if (!output.json) process.stdout.write(`${message}\n`);
  };
  const isTcp = options.dialect === "audiosocket";
  const caller = await (isTcp ? audioSocketCaller(options) : webSocketCaller(options, onMessage));
  output.note(`calling line ${line} as ${from} …`);
  await paced(recording, speed, caller);
  if (!messages.some(isResult))
    output.note(
      caller.isOpen()
        ? "the box sent no result on this line during the call; look in the operator view, under sessions, or at the line's webhook"
        : 'the box ended the call before the recording was over: it has its result (onResult is "leave"), or its log says why',
    );
  await caller.hangUp();
  if (output.json) output.answer({ line, from, messages }, () => "");
}

function recordingIn(path: string): Recording {
  try {
    return openRecording(path);
  } catch (error) {
    throw faultOf(path, error);
  }
}

/** Depending on the dialect, the box sends JSON or a line of text. */
function parsed(message: string): unknown {
  try {
    return JSON.parse(message);
  } catch {
    return message;
  }
}

/** Of jambonz: the other dialects have no message for a result. */
const isResult = (message: unknown): boolean =>
  isObject(message) && isObject(message.data) && message.data.type === "result";

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

async function webSocketCaller(options: Options, onMessage: (message: string) => void): Promise<Caller> {
  const { dialect, from } = options;
  const callId = randomUUID();
  const path = `/telephony/${options.line}${dialect === "asterisk-websocket" ? `?from=${encodeURIComponent(from)}` : ""}`;
  const address = `${boxAddress(options.url).replace(/^http/, "ws")}${path}`;
  const socket = new WebSocket(address, { headers: headersOf(options, address) });
  socket.on("message", (data) => onMessage(String(data)));
  await Promise.race([
    once(socket, "open"),
    once(socket, "unexpected-response").then(([, response]) => {
      throw refusal(response.statusCode, options);
    }),
  ]).catch((error: unknown) => Promise.reject(unreachable(options.url, error)));
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

/** What the status of a refused call means. */
function refusal(status: number, { line, dialect, url }: Options, reason = ""): CommandError {
  const credentials = { twilio: "--secret", audiosocket: "--token" }[dialect as string] ?? "--user and --password";
  const [message, hint] =
    status === 404
      ? [`the box at ${url} has no ${dialect} line "${line}"`, "`telephony` in its configuration lists the lines"]
      : status === 401 || status === 403
        ? [
            `the line "${line}" refused the call (HTTP ${status})`,
            `check ${credentials}, and that it is a ${dialect} line`,
          ]
        : [`the line "${line}" answered HTTP ${status}`, undefined];
  const exitCode = status === 404 ? ExitCode.usage : ExitCode.failed;
  return new CommandError(reason ? `${message}: ${reason}` : message, hint, exitCode);
}

function headersOf({ dialect, secret, user, password }: Options, address: string): Record<string, string> {
  if (dialect === "twilio") {
    if (!secret) throw new CommandError("a Twilio line needs --secret, the auth token of its configuration");
    return { "x-twilio-signature": createHmac("sha1", secret).update(address).digest("base64") };
  }
  if (!user || !password) throw new CommandError(`a ${dialect} line needs --user and --password`);
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

async function audioSocketCaller(options: Options): Promise<Caller> {
  const { url, line, from, token } = options;
  const response = await fetch(`${boxAddress(url)}/telephony/${line}/calls`, {
    method: "POST",
    headers: token ? { authorization: `Bearer ${token}` } : {},
    body: JSON.stringify({ from }),
  }).catch((error: unknown) => Promise.reject(unreachable(url, error)));
  if (!response.ok) throw refusal(response.status, options, response.status === 404 ? "" : await reasonIn(response));
  const { uuid, port } = (await response.json()) as { uuid: string; port: number };
  const { hostname } = new URL(url);
  // An IPv6 address has brackets in a URL only.
  const socket = connectTcp(port, hostname.replace(/^\[|\]$/g, ""));
  await once(socket, "connect").catch((error: unknown) => Promise.reject(unreachable(`${hostname}:${port}`, error)));
  socket.on("error", () => {});
  const packet = (kind: number, payload: Buffer) =>
    socket.write(Buffer.concat([Buffer.from([kind, payload.length >> 8, payload.length & 0xff]), payload]));
  packet(0x01, Buffer.from(uuid.replaceAll("-", ""), "hex"));
  return {
    isOpen: () => !socket.destroyed && socket.writable,
    send: (samples) => packet(0x10, Buffer.from(pcm16(samples))),
    async hangUp() {
      if (socket.destroyed) return;
      // Not `once`, which rejects if the box hangs up at the same moment.
      const closed = new Promise((resolve) => socket.once("close", resolve));
      packet(0x00, Buffer.alloc(0));
      socket.end();
      await closed;
    },
  };
}

/** The message of a refusal: of the service, or of its tokens. */
async function reasonIn(response: Response): Promise<string> {
  const body = (await response.json().catch(() => ({}))) as {
    readonly status?: { readonly message?: string };
    readonly error_description?: string;
  };
  return body.status?.message ?? body.error_description ?? "";
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
