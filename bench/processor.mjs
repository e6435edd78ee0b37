// Cost of a call without audio analysis: Verify and Identify on the embedded PostgreSQL, and a watchlist of 100,000 through the processor.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pcm16Wav } from "../dist/audio/wav-writer.js";
import { speak } from "../dist/demo/voice.js";
import { createMemoryStore, createVoiceprintsProcessor, openEngine } from "../dist/index.js";
import { openEmbeddedStore } from "../dist/postgres.js";
import { cpuMs, median } from "./measure.mjs";

const rateHz = 8000;
const scope = { gkScopeId: { value: "bench" } };
const phrase = (speaker, seed) => pcm16Wav(speak({ speaker, seconds: 6, rateHz, seed }), rateHz);

/** The engine, with a timer around audio analysis. */
function timed(engine) {
  const spent = { ms: 0 };
  const around = async (work) => {
    const before = cpuMs();
    try {
      return await work();
    } finally {
      spent.ms += cpuMs() - before;
    }
  };
  const listening = Object.create(engine, {
    model: { get: () => engine.model },
    analyze: { value: (...args) => around(() => engine.analyze(...args)) },
    stream: {
      value: async (...args) => {
        const stream = await engine.stream(...args);
        return {
          push: (samples) => around(() => stream.push(samples)),
          measures: () => around(() => stream.measures()),
          analysis: () => around(() => stream.analysis()),
          close: () => stream.close(),
        };
      },
    },
  });
  for (const name of ["train", "score", "threshold", "gallery", "attack", "close"])
    Object.defineProperty(listening, name, { value: engine[name].bind(engine) });
  return { engine: listening, spent };
}

async function session(processor) {
  const { gkSessionId, gkEngagementId } = await processor.startSession({ context: scope });
  return { ...scope, gkSessionId, gkEngagementId, configsetId: "ivr-text-dependent" };
}

async function enrolled(processor, context, speaker) {
  const owner = { case: "personId", value: `speaker ${speaker}` };
  const { gkVoiceprintProfileId } = await processor.createVoiceprintProfile({ context, owner });
  for (const seed of [1, 2, 3]) {
    const { gkMediaSegmentId } = await processor.addMediaSegment({ context, chunk: phrase(speaker, seed) });
    const input = { case: "gkMediaSegmentId", value: gkMediaSegmentId };
    const { result } = await processor.processAudio({ context, input, isForEnrollment: true });
    await processor.enroll({ context, gkVoiceprintProfileId, gkProcessedAudioId: result.gkProcessedAudioId });
  }
  const { result } = await processor.train({ context, gkVoiceprintProfileId });
  if (result.trainStatus !== 1) throw new Error(`speaker ${speaker} could not be trained`);
  return gkVoiceprintProfileId;
}

/** CPU time of each call minus the engine's time for audio analysis, milliseconds. */
async function beside(spent, calls, work) {
  const times = [];
  for (let i = 0; i < calls; i++) {
    const heardBefore = spent.ms;
    const before = cpuMs();
    await work();
    times.push(cpuMs() - before - (spent.ms - heardBefore));
  }
  return times;
}

/** `prints` trained profiles with random templates: the scoring is real, the people are not. */
async function fill(store, template, prints, kind) {
  const profiles = [];
  for (let i = 0; i < prints; i++) {
    const embedding = template.embedding.map((x, j) => x + Math.sin((i + 1) * (j + 3)));
    const length = Math.sqrt(embedding.reduce((sum, x) => sum + x * x, 0));
    const id = `00000000-0000-7000-8000-${i.toString(16).padStart(12, "0")}`;
    const ownerId = `00000000-0000-7000-9000-${i.toString(16).padStart(12, "0")}`;
    await store.profiles.create({
      id,
      scopeId: "bench",
      owner: { id: ownerId, scopeId: "bench", kind, externalId: `${kind} ${i}` },
      tag: "",
      printType: "text-dependent",
      printVersion: 1,
      template: { ...template, embedding: embedding.map((x) => x / length) },
      status: 3,
      createdAt: 0,
    });
    profiles.push({ value: id });
  }
  return profiles;
}

const row = (work, ms, limit, detail) => ({
  work,
  peer: "",
  ratio: ms,
  unit: " ms",
  target: `≤ ${limit} ms`,
  met: ms <= limit,
  detail,
});

export default async function processorBench() {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-bench-"));
  const opened = await openEngine({ workers: 0 });
  const { engine, spent } = timed(opened);
  const store = await openEmbeddedStore(folder);
  const processor = await createVoiceprintsProcessor({ engine, store });
  const memory = createMemoryStore();
  const watching = await createVoiceprintsProcessor({ engine, store: memory });
  try {
    const context = await session(processor);
    const profile = await enrolled(processor, context, 3);
    const { gkMediaSegmentId } = await processor.addMediaSegment({ context, chunk: phrase(3, 4) });
    const audio = { case: "gkMediaSegmentId", value: gkMediaSegmentId };
    const verify = () => processor.verify({ context, audio, gkVoiceprintProfileId: profile, ignoreCheckpoints: true });
    const { template } = await store.profiles.get("bench", profile.value);
    const hundred = await fill(store, template, 100, "person");
    const target = { case: "gkVoiceprintProfileIds", value: { uniqueIds: hundred } };
    const identify = () => processor.identify({ context, audio, target, ignoreCheckpoints: true });
    // Warm up first: the compilers' threads count as CPU of this process too.
    await beside(spent, 30, verify);
    await beside(spent, 30, identify);
    const one = median(await beside(spent, 40, verify));
    const many = median(await beside(spent, 40, identify));

    const watched = await session(watching);
    const fraudsters = await fill(memory, template, 100_000, "fraudster");
    const { gkGroupId } = await watching.createWatchlist({ context: watched });
    for (let i = 0; i < fraudsters.length; i += 10_000)
      await watching.addWatchlistMembers({
        context: watched,
        gkGroupId,
        gkVoiceprintProfileIds: { uniqueIds: fraudsters.slice(i, i + 10_000) },
      });
    const upload = await watching.addMediaSegment({ context: watched, chunk: phrase(3, 4) });
    const detect = () =>
      watching.detectKnownFraudsters({
        context: watched,
        audio: { case: "gkMediaSegmentId", value: upload.gkMediaSegmentId },
        target: { case: "watchlist", value: { uniqueId: gkGroupId } },
        ignoreCheckpoints: true,
      });
    await beside(spent, 2, detect);
    const list = median(await beside(spent, 15, detect));
    return [
      row("Verify without audio analysis", one, 5, "median CPU time of 40 calls, store in a folder"),
      row("Identify over 100 prints, above one Verify", many - one, 5, `${many.toFixed(2)} ms in all`),
      row(
        "DetectKnownFraudsters over 100,000 prints, without audio analysis",
        list,
        30,
        "store in memory, groups included",
      ),
    ];
  } finally {
    await processor.close();
    await watching.close();
    await store.close();
    await memory.close();
    await opened.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
