import { execFile } from "node:child_process";
import { getEventListeners } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import workerThreads from "node:worker_threads";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Voice, VoiceAnalysis } from "../../src/engine/port.js";
import { utter } from "../voice.js";
import { randomModel } from "./random-model.js";

// The tests can kill every worker started from here on.
const started: workerThreads.Worker[] = [];
let refuseWorkers = false;
const RealWorker = workerThreads.Worker;
workerThreads.Worker = class extends RealWorker {
  constructor(...values: ConstructorParameters<typeof RealWorker>) {
    if (refuseWorkers) throw new Error("no threads left");
    super(...values);
    started.push(this);
  }
};
syncBuiltinESMExports();
const { openEngine } = await import("../../dist/engine/index.js");
type Options = NonNullable<Parameters<typeof openEngine>[0]>;

const model = randomModel();
const { samples: speech, rateHz } = utter({ speaker: 1, seconds: 5, rateHz: 16_000 });
/** Two hours at 8 kHz: seconds of work, so that timers fire in time even on a busy machine. */
const hours = () => new Float32Array(2 * 3600 * 8_000);

let opened: Awaited<ReturnType<typeof openEngine>>[] = [];
async function open(options: Options = {}) {
  started.length = 0;
  const engine = await openEngine({ workers: 1, model, ...options });
  opened.push(engine);
  return engine;
}
afterEach(async () => {
  await Promise.all(opened.map((engine) => engine.close()));
  opened = [];
});
afterAll(() => {
  workerThreads.Worker = RealWorker;
  syncBuiltinESMExports();
});

let alone: VoiceAnalysis;
beforeAll(async () => {
  const engine = await openEngine({ workers: 0, model });
  alone = await engine.analyze(speech.slice(), rateHz);
  await engine.close();
});

describe("workers give the same results as the calling thread", () => {
  test("to the last bit, many calls at once, streams spread over all of them", async () => {
    const engine = await open({ workers: 2 });
    const analyses = await Promise.all(Array.from({ length: 6 }, () => engine.analyze(speech.slice(), rateHz)));
    for (const analysis of analyses) expect(analysis).toEqual(alone);
    const streams = await Promise.all([engine.stream(rateHz), engine.stream(rateHz), engine.stream(rateHz)]);
    for (let at = 0; at < speech.length; at += 20_000) {
      await Promise.all(streams.map((stream) => stream.push(speech.slice(at, at + 20_000))));
    }
    for (const stream of streams) expect(await stream.analysis()).toEqual(alone);
  });

  test("train, score, threshold and gallery", async () => {
    const engine = await open();
    const inThread = await open({ workers: 0 });
    const voice: Voice = { embedding: alone.embedding!, ...alone.measures };
    const trained = await engine.train([voice, voice]);
    expect(trained).toEqual(await inThread.train([voice, voice]));
    const scores = await engine.score([trained.template!], voice);
    expect(scores).toEqual(await inThread.score([trained.template!], voice));
    expect(engine.threshold(0.01, scores[0]!)).toBe(inThread.threshold(0.01, scores[0]!));
    const gallery = engine.gallery();
    gallery.set("me", alone.embedding!);
    expect(gallery.top(alone.embedding!, 1)).toMatchObject([{ id: "me" }]);
  });

  test("samples are moved, not copied: the caller's array becomes empty", async () => {
    const engine = await open();
    const samples = speech.slice();
    await engine.analyze(samples, rateHz);
    expect(samples.length).toBe(0);
    const part = speech.slice().subarray(100, 50_000);
    await engine.analyze(part, rateHz);
    expect(part.length).toBe(49_900);
  });

  test("samples that an earlier call has moved are refused", async () => {
    const engine = await open({ workers: 1 });
    const samples = speech.slice();
    const [first, ...others] = await Promise.allSettled([
      engine.analyze(samples, rateHz),
      engine.analyze(samples, rateHz),
      engine.analyze(samples, rateHz, { timeoutMs: 60_000 }),
    ]);
    expect(first).toEqual({ status: "fulfilled", value: alone });
    for (const other of others)
      expect(other).toMatchObject({
        reason: { code: "BAD_SAMPLES", message: expect.stringContaining("were moved to another thread") },
      });
    await expect(engine.analyze(samples, rateHz)).rejects.toMatchObject({ code: "BAD_SAMPLES" });
    const stream = await engine.stream(rateHz);
    const again = speech.slice();
    await stream.push(again);
    await expect(stream.push(again)).rejects.toMatchObject({ code: "BAD_SAMPLES" });
    expect(await engine.analyze(speech.slice(), rateHz)).toEqual(alone);
    expect(await engine.analyze(new Float32Array(0), rateHz)).toMatchObject({ embedding: null });
  });

  test("much work at once adds one listener to the caller's signal, and leaves none", async () => {
    const engine = await open({ workers: 2 });
    const { signal } = new AbortController();
    const listeners = () => getEventListeners(signal, "abort").length;
    const calls = Array.from({ length: 12 }, () => engine.analyze(speech.slice(), rateHz, { signal }));
    await Promise.race(calls);
    expect(listeners()).toBe(1);
    await Promise.all(calls);
    expect(listeners()).toBe(0);
  });

  test("samples in shared memory are copied", async () => {
    const engine = await open();
    const shared = new Float32Array(new SharedArrayBuffer(speech.byteLength));
    shared.set(speech);
    expect(await engine.analyze(shared, rateHz)).toEqual(alone);
    const stream = await engine.stream(rateHz);
    await stream.push(shared);
    expect(await stream.analysis()).toEqual(alone);
    expect(shared.length).toBe(speech.length);
  });

  test("errors keep their codes", async () => {
    const engine = await open();
    await expect(engine.analyze(Float32Array.of(Number.NaN), rateHz)).rejects.toMatchObject({
      name: "EngineError",
      code: "BAD_SAMPLES",
    });
    await expect(engine.score([], { ...alone.measures, embedding: new Float32Array(3) })).rejects.toMatchObject({
      code: "BAD_EMBEDDING",
    });
    await expect(engine.attack("playback", speech.slice(), rateHz)).rejects.toMatchObject({
      name: "NotSupportedError",
    });
    await expect(engine.analyze(speech.slice(), 1)).rejects.toMatchObject({ code: "BAD_RATE" });
  });
});

test("a packet does not wait behind queued recordings", async () => {
  const engine = await open();
  const done: string[] = [];
  const heard = async (samples: Float32Array, name: string) => {
    await (await engine.stream(rateHz)).push(samples);
    done.push(name);
  };
  const recordings = ["at work", "waits"].map((name) => heard(speech.slice(), name));
  await Promise.all([...recordings, heard(speech.slice(0, 1600), "packet")]);
  expect(done).toEqual(["at work", "packet", "waits"]);
});

describe("when things go wrong", () => {
  test("a killed worker rejects its call with WORKER_LOST and is replaced", async () => {
    const engine = await open();
    const lost = engine.analyze(hours(), 8_000);
    const waiting = engine.analyze(speech.slice(), rateHz);
    void started[0]!.terminate();
    await expect(lost).rejects.toMatchObject({ name: "EngineError", code: "WORKER_LOST" });
    expect(await waiting).toEqual(alone);
    expect(started).toHaveLength(2);
  });

  test("a worker killed while idle is replaced too", async () => {
    const engine = await open();
    await started[0]!.terminate();
    expect(await engine.analyze(speech.slice(), rateHz)).toEqual(alone);
  });

  test("a pool that cannot start a worker reports it to every caller and in its fault", async () => {
    const engine = await open();
    refuseWorkers = true;
    try {
      await started[0]!.terminate();
      const refused = { code: "NO_WORKERS", message: "no worker can be started: no threads left" };
      await expect.poll(() => engine.fault, { timeout: 30_000 }).toBe(refused.message);
      await expect(engine.analyze(speech.slice(), rateHz)).rejects.toMatchObject(refused);
    } finally {
      refuseWorkers = false;
    }
  });

  test("a worker that could not be replaced is started later, while others go on", async () => {
    const engine = await open({ workers: 2 });
    refuseWorkers = true;
    try {
      await started[0]!.terminate();
      expect(await engine.analyze(speech.slice(), rateHz)).toEqual(alone);
    } finally {
      refuseWorkers = false;
    }
    expect(started).toHaveLength(2);
    const now = performance.now.bind(performance);
    const later = vi.spyOn(performance, "now").mockImplementation(() => now() + 6_000);
    try {
      expect(await engine.analyze(speech.slice(), rateHz)).toEqual(alone);
      expect(started).toHaveLength(3);
      await engine.analyze(speech.slice(), rateHz);
      expect(started).toHaveLength(3);
      await started[1]!.terminate();
      expect(await engine.analyze(speech.slice(), rateHz)).toEqual(alone);
    } finally {
      later.mockRestore();
    }
  });

  test("a pool whose last worker cannot be replaced waits for the successor of another", async () => {
    const engine = await open({ workers: 2 });
    const [first, last] = [started[0]!, started[1]!];
    const end = first.terminate.bind(first);
    let free = () => {};
    const isFree = new Promise<void>((resolve) => {
      free = resolve;
    });
    // The pool starts the successor when this has ended.
    first.terminate = () => isFree.then(end);
    await end();
    refuseWorkers = true;
    try {
      await last.terminate();
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      refuseWorkers = false;
    }
    expect(engine.fault).toBeNull();
    const waiting = engine.analyze(speech.slice(), rateHz);
    free();
    expect(await waiting).toEqual(alone);
  });

  test("a stream whose worker is killed fails with WORKER_LOST; others continue", async () => {
    const engine = await open({ workers: 2 });
    const stream = await engine.stream(8_000);
    const push = stream.push(hours());
    const killed = Promise.all(started.slice(0, 2).map((worker) => worker.terminate()));
    await expect(push).rejects.toMatchObject({ code: "WORKER_LOST" });
    await expect(stream.analysis()).rejects.toMatchObject({ code: "WORKER_LOST" });
    // A call between the two deaths would be lost with the second.
    await killed;
    expect(await engine.analyze(speech.slice(), rateHz)).toEqual(alone);
  });

  test("more calls than the queue holds are refused with a time to retry", async () => {
    const engine = await open({ maxCalls: 3 });
    const calls = [1, 2, 3].map(() => engine.analyze(speech.slice(), rateHz));
    const refused = await engine.analyze(speech.slice(), rateHz).catch((error: unknown) => error);
    expect(refused).toMatchObject({ name: "EngineError", code: "QUEUE_FULL" });
    expect((refused as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(0);
    const stream = await engine.stream(rateHz);
    await expect(stream.push(speech.slice())).rejects.toMatchObject({ code: "QUEUE_FULL" });
    await Promise.all(calls);
    // The refused samples were not processed: the stream has no gap.
    await stream.push(speech.slice());
    expect(await stream.analysis()).toEqual(alone);
  });

  test("a call can be aborted while it waits and while it runs", async () => {
    const engine = await open({ graceMs: 0 });
    const [working, waiting] = [new AbortController(), new AbortController()];
    const long = engine.analyze(hours(), 8_000, { signal: working.signal });
    const queued = engine.analyze(speech.slice(), rateHz, { signal: waiting.signal });
    const last = engine.analyze(speech.slice(), rateHz);
    waiting.abort();
    await expect(queued).rejects.toMatchObject({ name: "AbortError" });
    working.abort(new Error("hung up"));
    await expect(long).rejects.toThrow("hung up");
    expect(await last).toEqual(alone);
  });

  test("a time limit ends the call; a worker that does not yield is replaced", async () => {
    const engine = await open({ graceMs: 0 });
    await expect(engine.analyze(hours(), 8_000, { timeoutMs: 30 })).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await engine.analyze(speech.slice(), rateHz)).toEqual(alone);
    expect(started.length).toBeGreaterThanOrEqual(2);
  });

  test("a worker that finishes abandoned work within the grace period is kept", async () => {
    const engine = await open({ graceMs: 60_000 });
    await expect(engine.analyze(hours(), 8_000, { timeoutMs: 30 })).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(await engine.analyze(speech.slice(), rateHz)).toEqual(alone);
    expect(started).toHaveLength(1);
  });

  test("work that exceeds the work limit is given up", async () => {
    const engine = await open({ workLimitMs: 1 });
    await expect(engine.analyze(hours(), 8_000)).rejects.toMatchObject({ code: "TIMEOUT" });
  });

  test("closing rejects running calls and all later ones", async () => {
    const engine = await open();
    const under = engine.analyze(hours(), 8_000);
    const waiting = engine.analyze(speech.slice(), rateHz);
    const both = Promise.allSettled([under, waiting]);
    await engine.close();
    for (const outcome of await both) expect(outcome).toMatchObject({ status: "rejected", reason: { code: "CLOSED" } });
    await expect(engine.analyze(speech.slice(), rateHz)).rejects.toMatchObject({ code: "CLOSED" });
    await engine.close();
  });

  test("a model that no worker can load fails to open", async () => {
    const unusable = randomModel({ calibration: { terms: Array.from({ length: 65 }, () => ["one", "one", 1]) } });
    await expect(openEngine({ workers: 2, model: unusable })).rejects.toMatchObject({ code: "BAD_MODEL" });
  });
});

describe("handles", () => {
  const run = promisify(execFile);
  const script = (body: string) => `
    import { openEngine } from ${JSON.stringify(new URL("../../dist/engine/index.js", import.meta.url).href)};
    import { readFileSync } from "node:fs";
    const engine = await openEngine({ workers: 2, model: new Uint8Array(readFileSync(0)) });
    const { measures } = await engine.analyze(new Float32Array(16000), 16000);
    ${body}
    console.log("net", measures.netSpeechSeconds);`;
  for (const [name, body] of [
    ["closed", "await engine.close();"],
    ["forgotten", ""],
  ] as const) {
    test(`a process whose engine is ${name} ends by itself`, async () => {
      const child = run(process.execPath, ["--input-type=module", "-e", script(body)], {
        timeout: 30_000,
        cwd: fileURLToPath(new URL("../..", import.meta.url)),
      });
      child.child.stdin!.end(model);
      expect((await child).stdout).toBe("net 0\n");
    });
  }
});
