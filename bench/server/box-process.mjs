/** The box as shipped, in a separate process: tokens required, a store in memory. Queried over IPC for figures that only it has. */
import { readRecording } from "../../dist/audio/index.js";
import { openEngine } from "../../dist/engine/index.js";
import { VoiceprintsProcessor } from "../../dist/processor/voiceprints-processor.js";
import { configSchema } from "../../dist/server/config.js";
import { keepHeapSmall } from "../../dist/server/heap.js";
import { startBox } from "../../dist/server/start.js";
import { createMemoryStore } from "../../dist/store/memory.js";
import { openBare } from "./bare.mjs";
import { prepare, RECORDING, requestOf } from "./world.mjs";

keepHeapSmall();
const workers = Number(process.argv[2]);
const engine = await openEngine({ workers, maxCalls: 10_000 });
const config = configSchema.parse({
  port: 0,
  store: "memory",
  log: { level: "silent" },
  limits: { concurrentAudio: workers, callsPerSecond: 0, liveCalls: 2000 },
});

/** How long the operation itself took, for calls over a transport and in process. */
let lastMs = 0;
for (const name of ["verify", "getEnrollStatus"]) {
  const operation = VoiceprintsProcessor.prototype[name];
  VoiceprintsProcessor.prototype[name] = async function (...args) {
    const startedAt = performance.now();
    try {
      return await operation.apply(this, args);
    } finally {
      lastMs = performance.now() - startedAt;
    }
  };
}

const box = await startBox(config, { engine });
const alone = new VoiceprintsProcessor({ engine, store: createMemoryStore(), readRecording });
let world = null;
const recording = readRecording(RECORDING);
const samples = Float32Array.from([...recording.read(0)].flatMap((chunk) => [...chunk]));

const handlers = {
  async prepareInProcess() {
    const caller = {
      call: (name, request) => alone[name](request),
      upload: (context, bytes) => alone.addMediaSegment({ context, chunk: bytes }),
    };
    world = await prepare(caller);
  },
  async inProcess({ operation }) {
    await alone[operation](requestOf(operation, world));
    return lastMs;
  },
  lastMs: () => lastMs,
  bare: () =>
    openBare(async (path) => {
      const startedAt = performance.now();
      if (/verif/i.test(path)) await engine.analyze(samples.slice(), recording.rateHz);
      lastMs = performance.now() - startedAt;
    }),
  cpuSeconds() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  },
  /** Recordings per second, analyzed and scored as in a check, with all workers busy and nothing else. */
  async engineAlone({ seconds }) {
    const voiceOf = ({ embedding, measures: { netSpeechSeconds, snrDb, bandwidthHz } }) => ({
      embedding,
      netSpeechSeconds,
      snrDb,
      bandwidthHz,
    });
    const known = await engine.analyze(samples.slice(), recording.rateHz);
    const template = { ...voiceOf(known), revision: known.revision };
    const startedAt = performance.now();
    const until = startedAt + seconds * 1000;
    const cpuBefore = handlers.cpuSeconds();
    let done = 0;
    const work = async () => {
      while (performance.now() < until) {
        const heard = await engine.analyze(samples.slice(), recording.rateHz);
        await engine.score([template], voiceOf(heard));
        done++;
      }
    };
    await Promise.all(Array.from({ length: workers }, work));
    const cpuSeconds = handlers.cpuSeconds() - cpuBefore;
    return { done, cpuSeconds, seconds: (performance.now() - startedAt) / 1000 };
  },
  memory() {
    // Not `arrayBuffers`: that counts what this thread allocated, wherever it is now, but not what workers allocated and handed over.
    const { rss, external, heapUsed } = process.memoryUsage();
    return { rss, live: heapUsed + external };
  },
  /** What remains after garbage collection. Buffers are freed some time after the collection that finds them: one collection alone
   * leaves up to 12 MB of them. */
  async liveMemory() {
    for (let round = 0; round < 3; round++) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return handlers.memory().live;
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
process.send({ url: box.url, application: box.firstApplication, queued: config.limits.queuedAudio });
