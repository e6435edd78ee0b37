/**
 * What our own code on the box's hottest paths saves, compared with the plain use of the library below it, which the same box still uses for
 * rarer calls. Measures the box's CPU time per call, in slices of both ways in turn. Code whose row misses its target should be deleted.
 */
import http from "node:http";
import http2 from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { PGlite } from "@electric-sql/pglite";
import { GetEnrollStatusRequestSchema } from "../../dist/contract/index.js";
import { PreparedSession } from "../../dist/store/sql/prepared-session.js";
import { atLeast, compare, median } from "../measure.mjs";
import { contextQuery } from "./clients.mjs";
import { prepare, requestOf } from "./world.mjs";

const CALLS = 150;
const ROUNDS = 15;
const AT_ONCE = 8;

/** `client` calls the box at `url`; `ask` returns the box's own CPU time. */
export async function ownPaths({ url, token, client, ask }) {
  const request = requestOf("getEnrollStatus", await prepare(client));
  const json = httpCaller(url, token, request);
  const grpc = grpcCaller(url, token, request);
  try {
    return [
      // The bindings read Node's request directly; a target that is a full URL goes through Hono and @hono/node-server.
      await row(
        "an HTTP call (node-request)",
        "through Hono",
        1.3,
        () => json(""),
        () => json(url),
        ask,
      ),
      // A message without a compression header is read directly from its stream; one that could be compressed goes through Connect.
      await row(
        "a gRPC call (grpc-unary)",
        "through Connect",
        1.5,
        () => grpc("identity"),
        () => grpc("gzip"),
        ask,
      ),
      ...(await statements()),
    ];
  } finally {
    json.close();
    grpc.close();
  }
}

async function row(work, peer, target, own, plain, ask) {
  const cpuMsOf = async (call) => {
    const before = await ask("cpuSeconds");
    let left = CALLS;
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (left-- > 0) await call();
      }),
    );
    return ((await ask("cpuSeconds")) - before) * (1000 / CALLS);
  };
  for (let i = 0; i < 4; i++) for (const call of [own, plain]) await cpuMsOf(call);
  const [ownMs, ratios] = [[], []];
  for (let i = 0; i < ROUNDS; i++) {
    const [before, other, after] = [await cpuMsOf(own), await cpuMsOf(plain), await cpuMsOf(own)];
    ownMs.push(before, after);
    ratios.push(other / ((before + after) / 2));
  }
  return atLeast(work, peer, median(ratios), target, `${median(ownMs).toFixed(2)} ms of the box's CPU`);
}

function httpCaller(url, token, { context, gkVoiceprintProfileId }) {
  const { hostname, port } = new URL(url);
  const agent = new http.Agent({ keepAlive: true });
  const path = `/v1/voiceprints/${gkVoiceprintProfileId.value}/enrollment-status?${contextQuery(context)}`;
  const headers = { authorization: `Bearer ${token}` };
  const call = (prefix) =>
    new Promise((resolve, reject) => {
      const sent = http.get({ agent, hostname, port, path: `${prefix}${path}`, headers }, (response) => {
        response.resume();
        if (response.statusCode !== 200) reject(new Error(`HTTP ${response.statusCode}`));
        response.once("end", resolve);
      });
      sent.once("error", reject);
    });
  return Object.assign(call, { close: () => agent.destroy() });
}

function grpcCaller(url, token, request) {
  const session = http2.connect(url);
  const message = toBinary(GetEnrollStatusRequestSchema, create(GetEnrollStatusRequestSchema, request));
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  const call = (encoding) =>
    new Promise((resolve, reject) => {
      const stream = session.request({
        ":method": "POST",
        ":path": "/vendor.biosec.v1.VoiceprintsProcessor/GetEnrollStatus",
        "content-type": "application/grpc",
        "grpc-encoding": encoding,
        te: "trailers",
        authorization: `Bearer ${token}`,
      });
      let status;
      stream.once("trailers", (trailers) => {
        status = trailers["grpc-status"];
      });
      stream.once("error", reject);
      stream.once("end", () => (status === "0" ? resolve() : reject(new Error(`grpc-status ${status}`))));
      stream.resume();
      stream.end(frame);
    });
  return Object.assign(call, { close: () => session.close() });
}

/** The statements of the embedded store: prepared once, compared with PGlite's own `query`. */
async function statements() {
  const pglite = await PGlite.create("memory://");
  await pglite.exec("CREATE TABLE kept (id text PRIMARY KEY, scope text, version int8, trained boolean, audio bytea)");
  const session = new PreparedSession(pglite);
  const insert = "INSERT INTO kept VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE SET audio = EXCLUDED.audio";
  const select = "SELECT id, scope, version, trained FROM kept WHERE id = $1 AND scope = $2";
  const selectAudio = "SELECT audio FROM kept WHERE id = $1";
  const recording = new Uint8Array(128_000).fill(85);
  await session.query(insert, ["a", "default", 1, true, recording]);
  const rows = [];
  const works = { "a row is read": [select, ["a", "default"]], "4 s of audio are read": [selectAudio, ["a"]] };
  works["4 s of audio are written"] = [insert, ["a", "default", 1, true, recording]];
  for (const [work, [text, values]] of Object.entries(works)) {
    const ways = { own: () => session.query(text, values), plain: () => pglite.query(text, values) };
    const { own, plain } = await compare(ways, "own", { rounds: 21 });
    rows.push(atLeast(`${work} (prepared-session)`, "PGlite's query", plain.ratio, 1.3, `${own.ms.toFixed(2)} ms`));
  }
  await pglite.close();
  return rows;
}
