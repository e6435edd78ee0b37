// npm run bench:server [-- --seconds 60 --callers 200 --json]: the box called from a second process on loopback, and the cost of tokens.
// 1. What HTTP and gRPC add to the in-process call at the median, one call at a time, each with a token.
// 2. Many callers at once, with 4 s of speech each: every request is answered or gets BUSY; memory, latency, and throughput
//    compared with the engine alone.
// --live: 100 live calls at once in real time, and 1,000 that are connected and silent (bench/server/live.mjs).
// 3. What our own code on the hottest paths saves, compared with the plain use of the libraries (bench/server/paths.mjs).
// 4. Token requests a second on one core, and the cost of verifying a token.
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { atLeast, atMost, median, quantile } from "./measure.mjs";
import { printJson, printTable } from "./table.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    callers: { type: "string", default: "200" },
    calls: { type: "string", default: "300" },
    workers: { type: "string", default: String(availableParallelism()) },
    only: { type: "string", default: "overhead,paths,load,token" },
    // Only live calls.
    live: { type: "boolean", default: false },
    live_calls: { type: "string", default: "100" },
    silent_calls: { type: "string", default: "1000" },
    silent_seconds: { type: "string", default: "60" },
    json: { type: "boolean", default: false },
    // Use dist/ without building it.
    built: { type: "boolean", default: false },
  },
});
const chosen = options.live ? ["live"] : options.only.split(",");
const say = (text) => options.json || console.error(text);
if (!options.built)
  execFileSync(process.execPath, [here("../scripts/build.mjs")], {
    cwd: here(".."),
    stdio: ["ignore", 2, 2],
  });

const rows = [];
const figures = {};
if (["overhead", "paths", "load", "live"].some((name) => chosen.includes(name))) await measureBox();
if (chosen.includes("token")) {
  say("tokens …");
  const { default: measureTokens } = await import("./token.mjs");
  for (const row of await measureTokens()) rows.push({ group: "token", ...row });
}
if (options.json) await printJson(rows, figures);
else printTable(rows);
process.exit(0);

async function measureBox() {
  const { grpcClient, httpClient, leanHttpClient } = await import("./server/clients.mjs");

  const child = fork(here("./server/box-process.mjs"), [options.workers], {
    stdio: ["ignore", 2, 2, "ipc"],
    execArgv: ["--expose-gc"],
  });
  const [{ url, application, queued }] = await once(child, "message");
  const ask = asking(child);
  const token = await tokenOf(url, application);
  const http = httpClient(url, token);
  const grpc = grpcClient(url, token);

  if (chosen.includes("overhead")) {
    say("one call at a time …");
    const { prepare, requestOf } = await import("./server/world.mjs");
    await ask("prepareInProcess");
    const world = await prepare(http);
    const bare = await ask("bare");
    const bareHttp = httpClient(bare.http, token);
    const bareGrpc = grpcClient(bare.grpc, token);
    figures.overhead = [];
    for (const operation of ["getEnrollStatus", "verify"]) {
      const request = requestOf(operation, world);
      const calls = operation === "verify" ? Number(options.calls) / 3 : Number(options.calls);
      const found = await overhead(ask, operation, calls, {
        HTTP: () => http.call(operation, request),
        gRPC: () => grpc.call(operation, request),
      });
      // Afterwards: in between, they would evict the box's code from the caches.
      const alone = await overhead(ask, operation, calls / 2, {
        HTTP: () => bareHttp.call(operation, request),
        gRPC: () => bareGrpc.call(operation, request),
      });
      figures.overhead.push({ operation, ...found, alone: alone.ways });
      for (const way of ["HTTP", "gRPC"]) {
        const { addsMs, quartilesMs, medianMs } = found.ways[way];
        const bareMs = alone.ways[way].addsMs;
        const detail = `quartiles ${quartilesMs.map((ms) => ms.toFixed(2)).join(" to ")}; client and Node alone ${bareMs.toFixed(2)}; in process ${found.inProcessMs.toFixed(2)}, over ${way} ${medianMs.toFixed(2)} ms`;
        rows.push({
          group: "overhead",
          ...atMost(`${way} adds to ${operation}`, "the call in process", addsMs, 3, detail, " ms"),
        });
      }
    }
  }

  if (chosen.includes("paths")) {
    say("our paths and the libraries' …");
    const { ownPaths } = await import("./server/paths.mjs");
    for (const row of await ownPaths({ url, token, client: http, ask })) rows.push({ group: "paths", ...row });
  }

  if (chosen.includes("load")) {
    const { underLoad } = await import("./server/callers.mjs");
    const [seconds, callers] = [Number(options.seconds), Number(options.callers)];
    // Before and after, because the speed of a machine changes over minutes.
    say("the engine alone …");
    const before = await ask("engineAlone", { seconds: 10 });
    say(`${callers} callers …`);
    const client = leanHttpClient(url, token);
    const load = await underLoad({ client, ask, seconds, callers });
    client.close();
    say("the engine alone …");
    const after = await ask("engineAlone", { seconds: 10 });
    const alone = {
      perSecond: (before.done + after.done) / (before.seconds + after.seconds),
      cpuSecondsEach: (before.cpuSeconds + after.cpuSeconds) / (before.done + after.done),
    };
    figures.load = load;
    figures.engineAlone = alone;
    rows.push(...loadRows(load, alone, queued).map((row) => ({ group: "load", ...row })));
  }

  if (chosen.includes("live")) {
    const { inRealTime, silent } = await import("./server/live.mjs");
    const [calls, quiet] = [Number(options.live_calls), Number(options.silent_calls)];
    const box = { url, token, http, ask };
    figures.live = {};
    const live = (row) => rows.push({ group: "live", ...row });
    if (calls > 0) {
      say(`${calls} live calls …`);
      figures.live.spoken = await inRealTime({ ...box, calls, seconds: 8 });
      spokenRows(figures.live.spoken).forEach(live);
    }
    if (quiet > 0) {
      say(`${quiet} silent calls …`);
      figures.live.still = await silent({ ...box, calls: quiet, seconds: Number(options.silent_seconds) });
      silentRows(figures.live.still).forEach(live);
    }
  }

  http.close();
  grpc.close();
  const stoppedCleanly = await ask("stop");
  rows.push({ group: "load", ...atMost("calls interrupted by the stop", "", stoppedCleanly ? 0 : 1, 0) });
}

function spokenRows({ calls, spreadSeconds, decisions, dropped, undecided, p50Ms, p95Ms, mostMs, ...cpu }) {
  const title = `${calls} live calls in real time`;
  const ends = Object.entries(decisions).map(([said, count]) => `${count} ${said}`);
  const spread = `all connected at once, each begins to speak within ${spreadSeconds} s`;
  const others = `median ${p50Ms.toFixed(0)}, slowest ${mostMs.toFixed(0)} ms`;
  const cores = `${cpu.coresOfBox.toFixed(2)} cores for the box, ${cpu.coresOfCallers.toFixed(2)} for the callers`;
  const each = `${cpu.cpuMsPerSecond.toFixed(1)} ms for a second of a call, ${(1000 * cpu.cpuSecondsPerCall).toFixed(0)} ms for a call; ${cores}`;
  return [
    atMost(`${title}: dropped`, "", dropped, 0, `${spread}; ${ends.join(", ")}`),
    atMost(`${title}: not AUTHENTIC`, "", undecided, 0),
    atMost("decision after the packet that completes the speech, 95 %", "", p95Ms, 300, others, " ms"),
    atLeast("calls that two cores carry", "CPU time of the box", 2000 / cpu.cpuMsPerSecond, 100, each, ""),
  ];
}

function silentRows({ calls, open, seconds, kbEach, growth, connectedKbEach, liveKbEach, cpuMsPerSecond }) {
  const parts = `${connectedKbEach.toFixed(0)} kB before the first audio, ${liveKbEach.toFixed(0)} kB in use at the end; ${cpuMsPerSecond.toFixed(2)} ms of CPU for a second of it`;
  return [
    atMost(`${calls} silent calls of ${seconds} s: dropped`, "", calls - open, 0),
    atMost("memory of a silent call", "", kbEach, 100, parts, " kB"),
    atMost("memory in use at the end", "in the middle", growth, 1.02, "", "×"),
  ];
}

function asking(child) {
  let asked = 0;
  return (name, value) =>
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
}

async function tokenOf(url, { clientId, clientSecret }) {
  const response = await fetch(`${url}/oauth2/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${clientSecret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", scope: "bio" }),
  });
  return (await response.json()).access_token;
}

/**
 * What a caller waits beyond the operation itself, call by call: the box times the operation inside the same call that the
 * caller times outside. The in-process call, interleaved, is the operation alone.
 */
async function overhead(ask, operation, calls, ways) {
  const inProcess = [];
  const outside = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  const adds = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  const warmUp = Math.min(50, Math.ceil(calls / 4));
  for (let i = -warmUp; i < calls; i++) {
    const alone = await ask("inProcess", { operation });
    if (i >= 0) inProcess.push(alone);
    for (const [way, call] of Object.entries(ways)) {
      const startedAt = performance.now();
      await call();
      const waited = performance.now() - startedAt;
      const inside = await ask("lastMs");
      if (i < 0) continue;
      outside[way].push(waited);
      adds[way].push(waited - inside);
    }
  }
  return {
    calls,
    inProcessMs: median(inProcess),
    ways: Object.fromEntries(
      Object.keys(ways).map((way) => [
        way,
        {
          medianMs: median(outside[way]),
          addsMs: median(adds[way]),
          quartilesMs: [quantile(adds[way], 0.25), quantile(adds[way], 0.75)],
        },
      ]),
    ),
  };
}

function loadRows(load, alone, queued) {
  const boundMs = (1000 * (queued + Number(options.workers))) / load.perSecond;
  const title = `${load.callers} callers, ${load.seconds} s`;
  const percent = (share) => 100 * share;
  const callersShare = (load.callersCpuSecondsEach * load.perSecond) / availableParallelism();
  return [
    atMost(
      `${title}: requests lost or failed`,
      "",
      load.failed,
      0,
      `${load.answered} checks answered, ${load.busy} BUSY replies`,
    ),
    atMost(
      "p99 of a check",
      "time to empty a full queue",
      load.p99Ms / boundMs,
      2,
      `${load.p99Ms.toFixed(0)} of ${boundMs.toFixed(0)} ms, median ${load.medianMs.toFixed(0)} ms`,
      "×",
    ),
    atMost(
      "memory in the last third",
      "in the second",
      load.rssMb[1] / load.rssMb[0],
      1.05,
      `${load.rssMb.map((mb) => mb.toFixed(0)).join(" → ")} MB, live ${load.liveMb.map((mb) => mb.toFixed(0)).join(" → ")} MB`,
      "×",
    ),
    atLeast(
      "checks per core and second",
      "the engine alone",
      percent(alone.cpuSecondsEach / load.cpuSecondsEach),
      85,
      `${(1 / load.cpuSecondsEach).toFixed(1)} of ${(1 / alone.cpuSecondsEach).toFixed(1)} per CPU second of the box`,
      " %",
    ),
    atLeast(
      "checks per second of wall time",
      "the engine alone",
      percent(load.perSecond / alone.perSecond),
      85,
      `${load.perSecond.toFixed(1)} of ${alone.perSecond.toFixed(1)}, ${options.workers} workers; the callers took ${percent(callersShare).toFixed(0)} % of the cores`,
      " %",
    ),
  ];
}
