// The box under load, from a second process on loopback.
//   npm run bench:server [-- --seconds 60 --callers 200 --json]
// 1. What HTTP and gRPC add to the in-process call, at the median, one call at a time.
// 2. Callers with 4 s of speech each, all at once: every request answered or told BUSY, memory, latency, throughput
//    against what the engine does alone.
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const dist = (path) => new URL(`../dist/${path}`, import.meta.url);
const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    callers: { type: "string", default: "200" },
    calls: { type: "string", default: "300" },
    workers: { type: "string", default: String(availableParallelism()) },
    json: { type: "boolean", default: false },
    // Take dist/ as it is.
    built: { type: "boolean", default: false },
  },
});
const median = (values) => quantile(values, 0.5);
const quantile = (values, share) =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))];

if (process.send) await serve();
else await measure();

/** The server's process: a box on a store in memory, and the same operations in process to compare with. */
async function serve() {
  const { startBox } = await import(dist("server/start.js"));
  const { configSchema } = await import(dist("server/config.js"));
  const { openEngine } = await import(dist("engine/index.js"));
  const { VoiceprintsProcessor } = await import(dist("processor/voiceprints-processor.js"));
  const { createMemoryStore } = await import(dist("store/memory.js"));
  const { readRecording } = await import(dist("audio/index.js"));
  const workers = Number(options.workers);
  const engine = await openEngine({ workers });
  const config = configSchema.parse({
    port: 0,
    store: "memory",
    auth: { required: false },
    log: { level: "silent" },
    limits: { concurrentAudio: workers, callsPerSecond: 0 },
  });
  const box = await startBox(config, { engine });
  let inProcess = null;
  const handlers = {
    /** The operations without a transport, on a world of their own. */
    async prepareInProcess({ wav }) {
      const processor = new VoiceprintsProcessor({ engine, store: createMemoryStore(), readRecording });
      inProcess = await prepare(plainCalls(processor), Buffer.from(wav, "base64"));
    },
    timedInProcess: ({ operation, calls }) => timed(inProcess, operation, calls),
    cpuSeconds: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
    /** Recordings of this length a second, all workers busy, nothing around them. */
    async engineAlone({ seconds, wav }) {
      const recording = readRecording(Buffer.from(wav, "base64"));
      const samples = Float32Array.from([...recording.read(0)].flatMap((chunk) => [...chunk]));
      const until = performance.now() + seconds * 1000;
      const cpuBefore = handlers.cpuSeconds();
      let done = 0;
      await Promise.all(
        Array.from({ length: workers }, async () => {
          while (performance.now() < until) {
            await engine.analyze(samples.slice(), recording.rateHz);
            done++;
          }
        }),
      );
      return { perSecond: done / seconds, cpuSecondsEach: (handlers.cpuSeconds() - cpuBefore) / done };
    },
    async memory() {
      const { rss, arrayBuffers, heapUsed } = process.memoryUsage();
      return { rss, arrayBuffers, heapUsed };
    },
    async stop() {
      const clean = await box.stop();
      await engine.close();
      return clean;
    },
  };
  process.on("message", async ({ id, name, value }) => {
    try {
      process.send({ id, value: await handlers[name](value ?? {}) });
    } catch (error) {
      process.send({ id, error: error.stack });
    }
    if (name === "stop") process.disconnect();
  });
  process.on("disconnect", () => process.exit());
  process.send({ url: box.url, queued: config.limits.queuedAudio });
}

/** Calls by name in process, in the shape of a client. */
function plainCalls(processor) {
  return {
    call: (name, request) => processor[name](request),
    upload: (context, bytes) => processor.addMediaSegment({ context, chunk: bytes }),
  };
}

/** A trained profile and a recording to verify. */
async function prepare({ call, upload }, wav) {
  const scope = { gkScopeId: { value: "bench" } };
  const { gkSessionId, gkEngagementId } = await call("startSession", { context: scope });
  const context = { ...scope, gkSessionId, gkEngagementId, configsetId: "ivr-text-dependent" };
  const { gkVoiceprintProfileId } = await call("createVoiceprintProfile", {
    context,
    owner: { case: "personId", value: `bench ${Math.random()}` },
  });
  for (let i = 0; i < 3; i++) {
    const { gkMediaSegmentId } = await upload(context, wav);
    const { result } = await call("processAudio", {
      context,
      input: { case: "gkMediaSegmentId", value: gkMediaSegmentId },
      isForEnrollment: true,
    });
    await call("enroll", { context, gkVoiceprintProfileId, gkProcessedAudioId: result.gkProcessedAudioId });
  }
  await call("train", { context, gkVoiceprintProfileId });
  const { gkMediaSegmentId } = await upload(context, wav);
  return { call, context, gkVoiceprintProfileId, gkMediaSegmentId };
}

/** Times of some calls of one operation. */
async function timed({ call, context, gkVoiceprintProfileId, gkMediaSegmentId }, operation, calls) {
  const request =
    operation === "verify"
      ? {
          context,
          gkVoiceprintProfileId,
          audio: { case: "gkMediaSegmentId", value: gkMediaSegmentId },
          ignoreCheckpoints: true,
        }
      : { context, gkVoiceprintProfileId };
  const times = [];
  for (let i = 0; i < calls; i++) {
    const startedAt = performance.now();
    await call(operation, request);
    times.push(performance.now() - startedAt);
  }
  return times;
}

/** The ways in turn, a few calls each, so that a busy machine is busy for all: medians, and medians of paired differences. */
async function interleaved(operation, ways, calls) {
  const each = 10;
  const rounds = Math.max(3, Math.ceil((operation === "verify" ? calls / 5 : calls) / each));
  const medians = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  for (let round = -1; round < rounds; round++) {
    for (const [way, run] of Object.entries(ways)) {
      const times = await run(operation, each);
      if (round >= 0) medians[way].push(median(times)); // the first round warms up
    }
  }
  const adds = (way) => median(medians[way].map((value, i) => value - medians.inProcess[i]));
  return {
    operation,
    inProcessMs: median(medians.inProcess),
    httpMs: median(medians.http),
    grpcMs: median(medians.grpc),
    httpOverheadMs: adds("http"),
    grpcOverheadMs: adds("grpc"),
  };
}

async function measure() {
  if (!options.built) execFileSync(process.execPath, ["scripts/build.mjs", "--if-stale"], { stdio: ["ignore", 2, 2] });
  const { createClient } = await import("@connectrpc/connect");
  const { createGrpcTransport } = await import("@connectrpc/connect-node");
  const contract = await import(dist("contract/index.js"));
  const { speak, wav } = await import(dist("demo/voice.js"));
  const { toJson, create } = await import("@bufbuild/protobuf");
  const recording = wav(speak({ speaker: 1, seconds: 4, rateHz: 8000 }), 8000);

  const child = fork(fileURLToPath(import.meta.url), process.argv.slice(2), { stdio: ["ignore", 2, 2, "ipc"] });
  const [{ url, queued }] = await once(child, "message");
  let asked = 0;
  const ask = (name, value) =>
    new Promise((resolve, reject) => {
      const id = ++asked;
      const hear = (message) => {
        if (message.id !== id) return;
        child.off("message", hear);
        if (message.error) reject(new Error(message.error));
        else resolve(message.value);
      };
      child.on("message", hear);
      child.send({ id, name, value });
    });

  const services = [contract.VoiceprintsProcessor, contract.SessionsProcessor, contract.ProfilesProcessor];
  const methods = new Map(services.flatMap((service) => service.methods).map((method) => [method.localName, method]));
  const http = {
    async call(name, request) {
      const { verb, path, json } = httpRequest(methods.get(name), request, { toJson, create });
      const response = await fetch(url + path, {
        method: verb,
        ...(verb === "GET" ? {} : { body: JSON.stringify(json), headers: { "content-type": "application/json" } }),
      });
      const answer = await response.json();
      if (!response.ok)
        throw Object.assign(new Error(answer.status.message), {
          status: response.status,
          retryAfter: answer.status.retryAfter,
        });
      return answer;
    },
    upload: (context, bytes) => upload(url, context, bytes),
  };
  const transport = createGrpcTransport({ baseUrl: url });
  const clients = services.map((service) => createClient(service, transport));
  const grpc = {
    call: (name, request) => clients.find((client) => client[name])[name](request),
    upload: http.upload,
  };

  const calls = Number(options.calls);
  const encoded = Buffer.from(recording).toString("base64");
  const say = (text) => console.error(text);
  say("one call at a time");
  await ask("prepareInProcess", { wav: encoded });
  const ways = {
    inProcess: (operation, count) => ask("timedInProcess", { operation, calls: count }),
    http: timed.bind(null, await prepare(http, recording)),
    grpc: timed.bind(null, await prepare(grpc, recording)),
  };
  const overhead = [];
  for (const operation of ["getEnrollStatus", "verify"]) overhead.push(await interleaved(operation, ways, calls));

  say("the engine alone");
  const engineAlone = await ask("engineAlone", { seconds: 10, wav: encoded });
  say("many callers");
  const load = await underLoad({
    http,
    recording,
    ask,
    seconds: Number(options.seconds),
    callers: Number(options.callers),
  });
  const boundMs = (1000 * (queued + Number(options.workers))) / load.answeredPerSecond;
  const result = {
    overhead,
    engineAlone,
    load: {
      ...load,
      queueingBoundMs: boundMs,
      p99OverBound: load.p99Ms / boundMs,
      shareOfEngine: load.answeredPerSecond / engineAlone.perSecond,
      shareOfCpu: engineAlone.cpuSecondsEach / load.cpuSecondsEach,
    },
  };
  result.stoppedCleanly = await ask("stop");
  print(result);
}

/** A session, an upload and a Verify, again and again, each caller on its own; who is told BUSY waits as told. */
async function underLoad({ http, recording, ask, seconds, callers }) {
  const world = await prepare(http, recording);
  const counts = { answered: 0, busy: 0, failed: 0 };
  const latencies = [];
  const memory = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  const attempt = async (work) => {
    const from = performance.now();
    try {
      await work();
      return performance.now() - from;
    } catch (error) {
      if (error.status !== 503 && error.status !== 429) {
        counts.failed++;
        console.error(error);
        return null;
      }
      counts.busy++;
      const wait = Number.parseFloat(error.retryAfter ?? "0.5") * (0.75 + 0.5 * Math.random());
      await new Promise((wake) => setTimeout(wake, wait * 1000));
      return null;
    }
  };
  const caller = async () => {
    while (performance.now() < until) {
      // A call of its own, as an IVR's: its audio goes when it ends.
      let context = null;
      let media = null;
      const begun = await attempt(async () => {
        const { gkSessionId, gkEngagementId } = await http.call("startSession", {
          context: { gkScopeId: world.context.gkScopeId },
        });
        context = { ...world.context, gkSessionId, gkEngagementId };
        media = (await http.upload(context, recording)).gkMediaSegmentId;
      });
      if (begun === null) continue;
      // Told BUSY, the recording is there already: only the check is asked for again, as long as the bench runs.
      let took = null;
      while (took === null && performance.now() < until + 60_000) {
        took = await attempt(() =>
          http.call("verify", {
            context,
            gkVoiceprintProfileId: world.gkVoiceprintProfileId,
            audio: { case: "gkMediaSegmentId", value: media },
            ignoreCheckpoints: true,
          }),
        );
      }
      await attempt(() => http.call("stopSession", { context }));
      if (took !== null) {
        counts.answered++;
        latencies.push(took);
      }
    }
  };
  const cpuBefore = await ask("cpuSeconds");
  const sampling = setInterval(async () => memory.push(await ask("memory")), 1000);
  await Promise.all(Array.from({ length: callers }, caller));
  clearInterval(sampling);
  const elapsed = (performance.now() - startedAt) / 1000;
  const cpuSecondsEach = ((await ask("cpuSeconds")) - cpuBefore) / counts.answered;
  const third = Math.max(1, Math.floor(memory.length / 3));
  return {
    callers,
    seconds: elapsed,
    ...counts,
    answeredPerSecond: counts.answered / elapsed,
    cpuSecondsEach,
    medianMs: median(latencies),
    p99Ms: quantile(latencies, 0.99),
    rssSecondThirdMb: median(memory.slice(third, 2 * third).map(({ rss }) => rss)) / 1e6,
    rssLastThirdMb: median(memory.slice(2 * third).map(({ rss }) => rss)) / 1e6,
    // The least of each third is what is left after a collection.
    liveSecondThirdMb: Math.min(...memory.slice(third, 2 * third).map(live)) / 1e6,
    liveLastThirdMb: Math.min(...memory.slice(2 * third).map(live)) / 1e6,
  };
}

function live({ heapUsed, arrayBuffers }) {
  return heapUsed + arrayBuffers;
}

async function upload(url, context, bytes) {
  const query = new URLSearchParams({
    "context.gk_scope_id.value": context.gkScopeId.value,
    "context.gk_session_id.value": context.gkSessionId.value,
    "context.gk_engagement_id.value": context.gkEngagementId.value,
  });
  const response = await fetch(`${url}/v1/audios?${query}`, {
    method: "POST",
    body: bytes,
    headers: { "content-type": "audio/wav" },
  });
  const answer = await response.json();
  if (!response.ok)
    throw Object.assign(new Error(answer.status.message), {
      status: response.status,
      retryAfter: answer.status.retryAfter,
    });
  return answer;
}

/** The few bindings that the bench speaks. */
function httpRequest(method, request, { toJson, create }) {
  const json = toJson(method.input, create(method.input, request));
  const id = json.gkVoiceprintProfileId?.value;
  const bindings = {
    startSession: { verb: "POST", path: "/v1/sessions/start" },
    stopSession: { verb: "POST", path: "/v1/sessions/stop" },
    createVoiceprintProfile: { verb: "POST", path: "/v1/voiceprints/profiles" },
    processAudio: { verb: "POST", path: "/v1/audios/process" },
    enroll: { verb: "POST", path: `/v1/voiceprints/${id}/enrollment` },
    train: { verb: "POST", path: `/v1/voiceprints/${id}/training` },
    verify: { verb: "POST", path: `/v1/voiceprints/${id}/verification` },
    getEnrollStatus: { verb: "GET", path: `/v1/voiceprints/${id}/enrollment-status` },
  };
  const { verb, path } = bindings[method.localName];
  return { verb, path: verb === "GET" ? `${path}?${contextQuery(json.context)}` : path, json };
}

function contextQuery({ gkScopeId, gkSessionId, gkEngagementId, configsetId }) {
  return new URLSearchParams({
    "context.gkScopeId.value": gkScopeId.value,
    "context.gkSessionId.value": gkSessionId.value,
    "context.gkEngagementId.value": gkEngagementId.value,
    "context.configsetId": configsetId ?? "",
  });
}

function print(result) {
  if (options.json) {
    console.log(JSON.stringify(result, null, 2));
    return;
  }
  const ms = (value) => `${value.toFixed(2)} ms`;
  console.log(
    "median of one call at a time     in process      HTTP            gRPC            HTTP adds       gRPC adds",
  );
  for (const row of result.overhead) {
    const cells = [row.inProcessMs, row.httpMs, row.grpcMs, row.httpOverheadMs, row.grpcOverheadMs].map((value) =>
      ms(value).padEnd(16),
    );
    console.log(`${row.operation.padEnd(33)}${cells.join("")}`);
  }
  const { load } = result;
  console.log(
    `\n${load.callers} callers with 4 s of speech each, for ${load.seconds.toFixed(0)} s, ${options.workers} workers:`,
  );
  console.log(`  answered ${load.answered}, told BUSY ${load.busy}, lost or failed ${load.failed}`);
  const share = (value) => `${(100 * value).toFixed(0)} %`;
  console.log(
    `  ${load.answeredPerSecond.toFixed(1)} checks a second; the engine alone ${result.engineAlone.perSecond.toFixed(1)}: ${share(load.shareOfEngine)} of it by the clock (with the callers on the same cores)`,
  );
  console.log(
    `  ${load.cpuSecondsEach.toFixed(3)} CPU seconds a check; the engine alone ${result.engineAlone.cpuSecondsEach.toFixed(3)}: ${share(load.shareOfCpu)} of the server's time is the engine's`,
  );
  console.log(
    `  median ${ms(load.medianMs)}, p99 ${ms(load.p99Ms)}; a full queue is worked off in ${ms(load.queueingBoundMs)}: p99 is ${load.p99OverBound.toFixed(2)} of it`,
  );
  console.log(
    `  memory ${load.rssSecondThirdMb.toFixed(0)} MB in the second third, ${load.rssLastThirdMb.toFixed(0)} MB in the last (live ${load.liveSecondThirdMb.toFixed(0)} and ${load.liveLastThirdMb.toFixed(0)} MB); stopped ${result.stoppedCleanly ? "cleanly" : "with calls cut off"}`,
  );
}
