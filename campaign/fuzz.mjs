/**
 * Sends slightly damaged input to everything that reads untrusted data: recordings, JSON and protobuf requests, tokens, heads of
 * HTTP requests, HTTP/2 frames, model files, calibrations, trial lists. None may cause a crash, a hang, NaN, growth or an internal error.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import net from "node:net";
import { fileURLToPath } from "node:url";
import { fromBinary as decode, fromJson, toBinary } from "@bufbuild/protobuf";
import { readRecording } from "../dist/audio/index.js";
import { calibrationOf } from "../dist/engine/calibration.js";
import { readModelFile } from "../dist/engine/model-file.js";
import { shippedModel } from "../dist/engine/shipped-model.js";
import { parseTrialList } from "../dist/evaluate/trials.js";
import { openBank, runtimeToken, VICTIM } from "./parts/bank.mjs";
import { httpHeads, statusesOf } from "./parts/http-heads.mjs";
import { mutated, oddJson, wavLike } from "./parts/mutate.mjs";
import { randomOf } from "./parts/random.mjs";
import { BINDINGS, httpRequestOf, requestOf } from "./parts/requests.mjs";

/** Shares of a thousand inputs. Those that need a connection or read megabytes are rare. */
const WEIGHTS = {
  wav: 684,
  json: 120,
  protobuf: 100,
  token: 45,
  trials: 30,
  calibration: 10,
  heads: 6,
  frames: 4,
  model: 1,
};
const SLOW_CPU_MS = 3_000;
const GROWTH_MB = 64;
/** Inputs are only slightly damaged, so of this many some must be valid. */
const ENOUGH_TO_BE_ACCEPTED = 300;
/** A token is valid for 900 s. */
const RENEW_MS = 300_000;
const MODEL = fileURLToPath(new URL(`../models/${shippedModel}`, import.meta.url));
/** The declared errors of the readers; any other error is a violation. */
const REFUSALS = new Set([
  "AudioError",
  "TrialSetError",
  "ModelFileError",
  "CalibrationError",
  "StatusError",
  "OAuthError",
]);

export async function campaign({
  count = 100_000,
  seconds = Number.POSITIVE_INFINITY,
  seed,
  log,
  isStopped = () => false,
}) {
  const random = randomOf(seed);
  const bank = await openBank();
  const violations = [];
  const violate = (text) => violations.length < 1000 && violations.push(text);
  const counts = {
    inputs: 0,
    accepted: 0,
    refused: 0,
    ...Object.fromEntries(Object.keys(WEIGHTS).map((name) => [name, 0])),
  };
  const renewed = () => runtimeToken(bank.tokens, bank.clients[VICTIM]);
  let token = await renewed();
  let renewedAt = performance.now();
  const model = new Uint8Array(readFileSync(MODEL));
  const { calibration } = await readModelFile(model);
  const targets = targetsOf({ bank, model, calibration, random, currentToken: () => token });
  const kinds = Object.entries(WEIGHTS).flatMap(([name, weight]) => new Array(weight).fill(name));
  const until = performance.now() + seconds * 1000;
  const uncaught = (error) => violate(`uncaught: ${error?.stack ?? error}`);
  process.on("uncaughtException", uncaught);
  process.on("unhandledRejection", uncaught);

  let settled = 0;
  const understood = new Set();
  for (; counts.inputs < count && performance.now() < until && !isStopped(); counts.inputs++) {
    if (performance.now() - renewedAt > RENEW_MS) {
      token = await renewed();
      renewedAt = performance.now();
    }
    const kind = random.pick(kinds);
    counts[kind]++;
    const before = process.cpuUsage();
    let input = null;
    try {
      const outcome = await targets[kind]((given) => {
        input = given;
      });
      if (outcome === "refused") counts.refused++;
      else {
        counts.accepted++;
        understood.add(kind);
      }
    } catch (error) {
      if (REFUSALS.has(error?.name)) counts.refused++;
      else violate(`${kind}: ${error?.stack?.split("\n").slice(0, 3).join(" ") ?? error} on ${shown(input)}`);
    }
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1000 > SLOW_CPU_MS)
      violate(`${kind}: ${Math.round((user + system) / 1000)} ms of processor time on ${shown(input)}`);
    if (counts.inputs % 10_000 === 9_999) {
      await new Promise((turn) => setImmediate(turn));
      if (counts.inputs === 19_999) settled = liveMb();
    }
    if (counts.inputs % 200_000 === 199_999) log(`${JSON.stringify(counts)} ${Math.round(liveMb())} MB`);
  }
  process.off("uncaughtException", uncaught);
  process.off("unhandledRejection", uncaught);
  for (const kind of Object.keys(WEIGHTS))
    if (counts[kind] >= ENOUGH_TO_BE_ACCEPTED && !understood.has(kind))
      violate(`${kind}: none of ${counts[kind]} was accepted, so their reader was hardly tested`);
  const live = liveMb();
  if (settled > 0 && live > settled + GROWTH_MB) violate(`memory grew from ${settled} to ${live} MB`);
  for (const line of bank.errors.slice(0, 20)) violate(`the log says: ${line.slice(-700)}`);
  if (!(await bank.close())) violate("connections whose clients have left delayed the stop");
  return { counts: { ...counts, liveMb: [Math.round(settled), Math.round(live)] }, violations };
}

function liveMb() {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 2 ** 20;
}

const shown = (input) =>
  input instanceof Uint8Array
    ? Buffer.from(input).toString("base64").slice(0, 600)
    : JSON.stringify(input)?.slice(0, 600);

/** Each makes an input, names it, and tries it. */
function targetsOf({ bank, model, calibration, random, currentToken }) {
  const ids = (name) => bank.ids[name] ?? random.pick(Object.values(bank.ids));
  const requestFor = (binding) => {
    const json = requestOf(binding.method.input, ids, random);
    json.context = { ...json.context, gk_scope_id: { value: VICTIM } };
    return json;
  };
  const keptOut = new Set([
    "DeleteVoiceprintProfile",
    "DeleteGroup",
    "DeleteWatchlist",
    "StopSession",
    "StopEngagement",
  ]);
  const bindings = BINDINGS.filter(({ method }) => !keptOut.has(method.name));
  const headerBytes = 8192;

  return {
    wav(tell) {
      const bytes = mutated(wavLike(random), random);
      tell(bytes);
      const recording = readRecording(bytes);
      let samples = 0;
      for (let channel = 0; channel < Math.min(recording.channels, 3); channel++) {
        for (const chunk of recording.read(channel)) {
          for (const sample of chunk) if (!Number.isFinite(sample)) throw new Error("a sample is not a finite number");
          samples += chunk.length;
          if (samples > 10_000_000) throw new Error("more samples than bytes");
        }
      }
    },
    async json(tell) {
      const binding = random.pick(bindings);
      const { verb, path, type, body } = httpRequestOf(binding, requestFor(binding));
      const odd = type === "application/json" ? oddBody(body, random) : body && mutated(wavLike(random), random);
      tell([verb, path, String(odd)]);
      const response = await bank.service.app.fetch(
        new Request(`http://box${path}`, {
          method: verb,
          headers: { "content-type": type, authorization: `Bearer ${currentToken()}` },
          ...(odd === undefined || verb === "GET" ? {} : { body: odd }),
        }),
      );
      const text = await response.text();
      assertAdmitted(response);
      if (response.status >= 500 && response.status !== 501)
        throw new Error(`${response.status} ${text.slice(0, 300)}`);
      if (response.status === 200 && /\bNaN\b/.test(text)) throw new Error(`NaN in an answer: ${text.slice(0, 300)}`);
      return response.status === 200 ? "accepted" : "refused";
    },
    async protobuf(tell) {
      const { method } = random.pick(bindings.filter((each) => each.method.methodKind === "unary"));
      const json = requestOf(method.input, ids, random);
      json.context = { ...json.context, gk_scope_id: { value: VICTIM } };
      const bytes = mutated(toBinary(method.input, fromJson(method.input, json)), random, 8);
      tell([method.name, Buffer.from(bytes).toString("base64")]);
      const response = await bank.service.app.fetch(
        new Request(`http://box/${method.parent.typeName}/${method.name}`, {
          method: "POST",
          headers: { "content-type": "application/proto", authorization: `Bearer ${currentToken()}` },
          body: bytes,
        }),
      );
      const text = await response.text();
      assertAdmitted(response);
      if (response.status >= 500 && response.status !== 501)
        throw new Error(`${response.status} ${text.slice(0, 300)}`);
      let message;
      try {
        message = decode(method.input, bytes);
      } catch {
        return "refused";
      }
      await bank.processor[method.localName](message).catch((error) => {
        if (error.name !== "StatusError" || error.code === 56) throw error;
      });
    },
    async token(tell) {
      const token = currentToken();
      const given = Buffer.from(mutated(Buffer.from(token), random, 6)).toString("latin1");
      tell(given);
      const verified = await bank.tokens.runtime.verify(given, "bio");
      if (given !== token && !sameToken(given, token)) throw new Error(`an altered token passed: ${verified.clientId}`);
    },
    trials(tell) {
      const line = () =>
        `${random.pick(["1", "0", "same", "target", "x", ""])} ${random.pick(["a/b.wav", "a,b", ",", "..", "\u0000"])} ${random.pick(["c.wav", "", "d e"])}`;
      const text = Buffer.from(
        mutated(Buffer.from(Array.from({ length: 1 + random.below(6) }, line).join("\n")), random),
      ).toString("latin1");
      tell(text);
      const { trials } = parseTrialList(text, "/");
      if (trials.some(({ model: at, test }) => !Number.isInteger(at) || !Number.isInteger(test)))
        throw new Error("a trial names no file");
    },
    calibration(tell) {
      const odd = oddJson(calibration, random, 0.01);
      tell(odd);
      try {
        calibrationOf(typeof odd === "object" && !Array.isArray(odd) ? odd : null);
      } catch (error) {
        if (error?.code !== "BAD_MODEL") throw error;
        return "refused";
      }
    },
    async model(tell) {
      const bytes = Uint8Array.from(model);
      const changed = mutated(bytes.subarray(0, headerBytes), random).subarray(0, headerBytes);
      bytes.set(changed);
      if (random.chance(0.7))
        bytes.set(createHash("sha256").update(bytes.subarray(0, -32)).digest(), bytes.length - 32);
      tell(changed);
      await readModelFile(bytes);
    },
    async heads(tell) {
      const bytes = httpHeads(random);
      tell(bytes);
      const statuses = statusesOf(await answerOf(bank, bytes, 100));
      if (statuses.some((status) => status >= 500 && status !== 501)) throw new Error(`answered ${statuses}`);
      return statuses.includes(200) ? "accepted" : "refused";
    },
    async frames(tell) {
      const bytes = Buffer.concat([
        Buffer.from(
          random.chance(0.8)
            ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            : random.pick(["PRI", "GET / HTTP/1.1\r\n\r\n", "\u0016\u0003\u0001"]),
        ),
        ...Array.from({ length: random.below(8) }, () => http2Frame(random)),
      ]);
      tell(bytes);
      await answerOf(bank, bytes, 30);
    },
  };
}

/** What the service sends back until it closes the connection, at most for this time. */
function answerOf(bank, bytes, waitMs) {
  return new Promise((done) => {
    const received = [];
    const socket = net.connect(Number(new URL(bank.service.url).port), "127.0.0.1", () => socket.write(bytes));
    socket.on("error", () => {});
    socket.on("data", (chunk) => received.push(chunk));
    socket.once("close", () => done(Buffer.concat(received)));
    setTimeout(() => socket.destroy(), waitMs);
  });
}

/** A request that the guard refuses tests nothing else. */
function assertAdmitted({ status }) {
  if (status === 401) throw new Error("the campaign's own token was refused");
}

function oddBody(body, random) {
  if (random.chance(0.3)) return mutated(Buffer.from(body), random, 6);
  return JSON.stringify(oddJson(JSON.parse(body), random)) ?? "";
}

function http2Frame(random) {
  const payload = Buffer.from(random.bytes(random.pick([0, 4, 5, 6, 8, 9, 40])));
  const head = Buffer.alloc(9);
  head.writeUIntBE(random.chance(0.9) ? payload.length : random.below(2 ** 24), 0, 3);
  head[3] = random.below(12);
  head[4] = random.below(256);
  head.writeUInt32BE(random.pick([0, 1, 2, 3, 2 ** 31 - 1]), 5);
  return Buffer.concat([head, payload]);
}

/** The last characters of Base64url have unused bits. */
const sameToken = (one, other) =>
  one.split(".").length === 3 &&
  one
    .split(".")
    .every((part, i) => Buffer.from(part, "base64url").equals(Buffer.from(other.split(".")[i] ?? "", "base64url")));
