// Calls from third-party programs to a box: baresip (RTP) and the Go module github.com/CyCoreSystems/audiosocket.
//   node scripts/build.mjs && node scripts/try-telephony.mjs
// Not part of `npm test`: it needs baresip and Go. AUDIOSOCKET names a checkout of the Go module, for when no module proxy is available.
import { execFile, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { pcm16Wav } from "../dist/audio/wav-writer.js";
import { connectVoiceprints } from "../dist/client/index.js";
import { mix, noise, utter } from "../dist/demo/voice.js";
import { configSchema } from "../dist/server/config.js";
import { FIRST_SCOPE } from "../dist/server/first-run.js";
import { jsonLog } from "../dist/server/log.js";
import { startBox } from "../dist/server/start.js";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "vivavoce-telephony-"));
const [caller, rateHz] = ["+4930", 8000];

/** A WAV of 10 s at 8 kHz. */
function recording(take) {
  const { samples } = utter({ speaker: 1, seconds: 10, rateHz, seed: take });
  return pcm16Wav(mix(samples, noise(10, rateHz, take), 35), rateHz);
}

const told = [];
const hook = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    told.push(JSON.parse(body));
    response.end();
  });
}).listen(0, "127.0.0.1");
await once(hook, "listening");

const line = {
  scope: FIRST_SCOPE,
  webhook: { url: `http://127.0.0.1:${hook.address().port}/`, secret: "of sixteen letters or more" },
};
const telephony = [
  { ...line, name: "audiosocket", dialect: "audiosocket", port: 0, onResult: "leave" },
  { ...line, name: "rtp", dialect: "rtp", ports: [0, 0], format: "ulaw" },
];
const box = await startBox(configSchema.parse({ port: 0, store: "memory", auth: { required: false }, telephony }), {
  log: jsonLog("error"),
});

async function announce(name) {
  const body = JSON.stringify({ from: caller, callId: `${name}-call` });
  return (await fetch(`${box.url}/telephony/${name}/calls`, { method: "POST", body })).json();
}

async function decision(name) {
  for (let tries = 0; tries < 200; tries++, await wait(100)) {
    const found = told.find((one) => one.line === name && one.type === "result");
    if (found) return found.decision;
  }
  return "no event arrived";
}

/** The Go module's own reader and writer, as a telephone system would use them. */
const goProgram = `package main

import (
	"net"
	"os"

	"github.com/CyCoreSystems/audiosocket"
	"github.com/gofrs/uuid"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	line, err := net.Dial("tcp", os.Args[1])
	must(err)
	_, err = line.Write(audiosocket.IDMessage(uuid.Must(uuid.FromString(os.Args[2]))))
	must(err)
	audio, err := os.ReadFile(os.Args[3])
	must(err)
	go audiosocket.SendSlinChunks(line, audiosocket.DefaultSlinChunkSize, audio)
	for {
		message, err := audiosocket.NextMessage(line)
		must(err)
		if message.Kind() == audiosocket.KindHangup {
			return
		}
		if message.Kind() == audiosocket.KindError {
			os.Exit(int(message.ErrorCode()))
		}
	}
}
`;

async function goCalls() {
  const cwd = join(folder, "go");
  mkdirSync(cwd);
  writeFileSync(join(cwd, "main.go"), goProgram);
  writeFileSync(join(cwd, "call.raw"), recording(4).subarray(44));
  const module = "github.com/CyCoreSystems/audiosocket";
  await run("go", ["mod", "init", "call"], { cwd });
  if (process.env.AUDIOSOCKET)
    await run("go", ["mod", "edit", `-replace=${module}=${process.env.AUDIOSOCKET}`], { cwd });
  await run("go", ["mod", "tidy"], { cwd });
  const { uuid, port } = await announce("audiosocket");
  await run("go", ["run", ".", `127.0.0.1:${port}`, uuid, "call.raw"], { cwd });
  return decision("audiosocket");
}

/** The other end of baresip's call: it answers with the box's port for the audio. */
async function answering(audioPort) {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  const sdp = [
    "v=0",
    "o=- 1 1 IN IP4 127.0.0.1",
    "s=-",
    "c=IN IP4 127.0.0.1",
    "t=0 0",
    `m=audio ${audioPort} RTP/AVP 0`,
    "a=rtpmap:0 PCMU/8000",
    "a=recvonly",
    "",
  ].join("\r\n");
  socket.on("message", (message, from) => {
    const [request, ...headers] = message.toString().split("\r\n\r\n")[0].split("\r\n");
    const method = request.split(" ")[0];
    if (method === "ACK") return;
    const kept = headers.filter((header) => /^(via|from|call-id|cseq):/i.test(header));
    const to = headers.find((header) => /^to:/i.test(header));
    const body = method === "INVITE" ? sdp : "";
    const contact = `Contact: <sip:box@127.0.0.1:${socket.address().port}>`;
    const type = body ? ["Content-Type: application/sdp"] : [];
    const answer = [
      "SIP/2.0 200 OK",
      ...kept,
      `${to};tag=box`,
      contact,
      ...type,
      `Content-Length: ${body.length}`,
      "",
      body,
    ];
    socket.send(answer.join("\r\n"), from.port, from.address);
  });
  return socket;
}

async function baresipCalls() {
  const home = join(folder, "baresip");
  mkdirSync(home);
  writeFileSync(join(home, "call.wav"), recording(5));
  const modules = process.env.BARESIP_MODULES ?? "/usr/lib/baresip/modules";
  const config = [
    "sip_listen 127.0.0.1:0",
    `module_path ${modules}`,
    "module g711.so",
    "module aufile.so",
    "module account.so",
    "module_app menu.so",
    "module_app account.so",
    `audio_source aufile,${home}/call.wav`,
    "audio_player aufile,/dev/null",
    "audio_alert aufile,/dev/null",
    "ausrc_format s16",
    "audio_buffer 20-160",
  ];
  writeFileSync(join(home, "config"), `${config.join("\n")}\n`);
  writeFileSync(join(home, "accounts"), "<sip:caller@127.0.0.1>;regint=0;audio_codecs=PCMU\n");
  writeFileSync(join(home, "contacts"), "");
  const { port } = await announce("rtp");
  const sip = await answering(port);
  const baresip = spawn("baresip", ["-f", home, "-e", `/dial sip:box@127.0.0.1:${sip.address().port}`], {
    stdio: process.env.DEBUG ? "inherit" : "ignore",
  });
  try {
    return await decision("rtp");
  } finally {
    baresip.kill();
    sip.close();
  }
}

const voices = connectVoiceprints({ url: box.url, scope: FIRST_SCOPE });
await voices.enroll(caller, [recording(1), recording(2), recording(3)]);
let failed = false;
for (const [name, calls] of [
  ["AudioSocket by the Go module", goCalls],
  ["RTP by baresip", baresipCalls],
]) {
  const said = await calls().catch((error) => String(error.message ?? error));
  failed ||= said !== "AUTHENTIC";
  console.log(`${name}: ${said}`);
}
await box.stop();
hook.close();
rmSync(folder, { recursive: true });
process.exit(failed ? 1 : 0);
