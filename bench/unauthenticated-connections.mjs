/** Connections that need no token: TLS handshakes, and what strangers send to the ports of telephone lines. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { startServer } from "./box.mjs";

const LISTEN = new URL("../dist/server/listen.js", import.meta.url);

/** The listener of a box alone, with a certificate whose key is made with these options of openssl. */
export function startTlsPort(...key) {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-tls-"));
  const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  const made = ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-newkey", ...key];
  execFileSync("openssl", [...made, "-keyout", files.key, "-out", files.cert], { stdio: "pipe" });
  return startServer(
    "--input-type=module",
    "-e",
    `import { listen } from ${JSON.stringify(LISTEN)};
     const { port } = await listen({
       host: "127.0.0.1", port: 0, tls: ${JSON.stringify(files)}, headerSeconds: 10, readSeconds: () => 30,
       handler: (_, response) => response.end(), upgrade: (_, socket) => socket.destroy(), refused: console.error,
     });
     console.log(JSON.stringify({ url: "https://127.0.0.1:" + port }));`,
  );
}

const portOf = ({ url }) => Number(new URL(url).port);

/** Sends bytes to a port. Resolves when the connection has closed. */
async function talk(port, bytes) {
  const socket = net.connect(port, "127.0.0.1");
  // A reset, if the box does not read everything.
  socket.on("error", () => {});
  socket.resume().write(bytes);
  await once(socket, "close");
  return "closed";
}

/** A handshake, and whether it was a resumed one. Resolves when the connection has closed. */
function shake(port, options = {}) {
  return new Promise((resolve) => {
    const socket = tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
    let result = "refused";
    socket.once("secureConnect", () => {
      result = `${socket.getProtocol()}${socket.isSessionReused() ? ", resumed" : ""}`;
      socket.end();
    });
    socket.on("error", () => {});
    socket.once("close", () => resolve(result));
    socket.resume();
  });
}

/** What a client needs to resume a session. */
async function sessionWith(port, options) {
  const socket = tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
  const [session] = await once(socket, "session");
  socket.destroy();
  return session;
}

export async function tlsKinds(ecdsa, rsa) {
  const port = portOf(ecdsa);
  const tls12 = { maxVersion: "TLSv1.2" };
  const [session, session12] = [await sessionWith(port), await sessionWith(port, tls12)];
  const kinds = {
    "TLS 1.3, a handshake, P-256 key": () => shake(port),
    "TLS 1.3, resumed, P-256 key": () => shake(port, { session }),
    "TLS 1.2, a handshake, P-256 key": () => shake(port, tls12),
    "TLS 1.2, resumed, P-256 key": () => shake(port, { ...tls12, session: session12 }),
    "TLS, a client that has only P-521": () => shake(port, { ecdhCurve: "P-521" }),
    "TLS, 64 KB that are no handshake": () => talk(port, GARBAGE),
  };
  return {
    ...Object.fromEntries(Object.entries(kinds).map(([name, send]) => [name, { server: ecdsa, send }])),
    "TLS 1.3, a handshake, RSA key of 2048 bits": { server: rsa, send: () => shake(portOf(rsa)) },
  };
}

const GARBAGE = randomBytes(65_536);

const AUDIOSOCKET_PORT = 19_092;
/** The lines of the box that is measured. */
export const LINES = [
  { name: "audiosocket", dialect: "audiosocket", port: AUDIOSOCKET_PORT },
  { name: "rtp", dialect: "rtp", ports: [19_100, 19_109], announcedSeconds: 86_400 },
  { name: "twilio", dialect: "twilio", authToken: "0123456789abcdef" },
  { name: "audiohook", dialect: "audiohook", apiKey: "0123456789", clientSecret: "MDEyMzQ1Njc4OWFiY2RlZg==" },
  { name: "jambonz", dialect: "jambonz", user: "line", password: "0123456789" },
].map((line) => ({ ...line, scope: "default" }));

const packet = (kind, payload = Buffer.alloc(0)) =>
  Buffer.concat([Buffer.from([kind, payload.length >> 8, payload.length & 255]), payload]);

const PACKETS = 64;

/** A port for an announced call, which only a program with a token can open. */
async function announced({ url, application }) {
  const { clientId, clientSecret, scope } = application;
  const form = new URLSearchParams({ grant_type: "client_credentials", scope: "bio" });
  const authorization = `Basic ${Buffer.from(`${encodeURIComponent(clientId)}:${clientSecret}`).toString("base64")}`;
  const answer = await fetch(`${url}/oauth2/token`, { method: "POST", headers: { authorization }, body: form });
  const { access_token } = await answer.json();
  const called = await fetch(`${url}/telephony/rtp/calls`, {
    method: "POST",
    headers: { authorization: `Bearer ${access_token}`, "content-type": "application/json" },
    body: "{}",
  });
  if (!called.ok) throw new Error(`the call was not announced in the scope ${scope}: ${await called.text()}`);
  return (await called.json()).port;
}

/** Kinds of the box with `LINES`; those over HTTP are in unauthenticated.mjs. */
export async function lineKinds(box) {
  const port = await announced(box);
  const udp = dgram.createSocket("udp4");
  const flood = async (bytes) => {
    for (let i = 0; i < PACKETS; i++) udp.send(bytes, port, "127.0.0.1");
    await new Promise((resolve) => setTimeout(resolve, 5));
    return `${PACKETS} packets`;
  };
  const rtp = (payloadType) => Buffer.concat([Buffer.from([0x80, payloadType]), Buffer.alloc(170)]);
  return {
    "AudioSocket, a call that was not announced": { send: () => talk(AUDIOSOCKET_PORT, packet(1, randomBytes(16))) },
    "AudioSocket, 64 KB of other packets": { send: () => talk(AUDIOSOCKET_PORT, Buffer.alloc(65_536)) },
    "AudioSocket, 64 KB of noise": { send: () => talk(AUDIOSOCKET_PORT, GARBAGE) },
    [`RTP, ${PACKETS} packets of noise`]: { send: () => flood(Buffer.alloc(182, 1)) },
    [`RTP, ${PACKETS} packets of another codec`]: { send: () => flood(rtp(18)) },
  };
}
