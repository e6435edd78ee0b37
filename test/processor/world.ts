/** A processor on the fixture engine and the memory store, with its own clock and ids, and methods for common steps of tests. */
import { readRecording } from "../../src/audio/index.js";
import { StatusCode, type StatusError, type VerifyResult } from "../../src/contract/index.js";
import type { VoiceprintsProcessorOptions } from "../../src/processor/voiceprints-processor.js";
import { VoiceprintsProcessor } from "../../src/processor/voiceprints-processor.js";
import { createMemoryStore } from "../../src/store/memory.js";
import { fixtureEngine, rateHz, take } from "./fixture-engine.js";

/** Worlds may share a store, so each has its own ids. */
let worlds = 0;

export type World = Awaited<ReturnType<typeof openWorld>>;

export const scopeA = "bank";

type FixtureEngine = ReturnType<typeof fixtureEngine>;
type WorldOptions = Omit<Partial<VoiceprintsProcessorOptions>, "engine"> & { readonly engine?: FixtureEngine };

export async function openWorld(options: WorldOptions = {}) {
  const clock = { at: Date.UTC(2026, 0, 1), now: () => clock.at++ };
  let made = ++worlds * 1_000_000;
  const ids = { next: () => `01900000-0000-7000-8000-${(++made).toString(16).padStart(12, "0")}` };
  const engine = options.engine ?? fixtureEngine();
  const store = options.store ?? createMemoryStore({ now: clock.now });
  const processor = new VoiceprintsProcessor({ engine, store, readRecording, clock, ids, ...options });
  const open = async (configsetId = "ivr-text-dependent", scope = scopeA) => {
    const context = { gkScopeId: { value: scope } };
    const { gkSessionId, gkEngagementId } = await processor.startSession({ context });
    return { ...context, gkSessionId: gkSessionId!, gkEngagementId: gkEngagementId!, configsetId };
  };
  const context = await open();

  const world = {
    processor,
    engine,
    store,
    clock,
    ids,
    context,
    open,
    /** Uploads mono samples as 16-bit PCM; returns the media segment. */
    async media(samples: Float32Array | readonly Float32Array[], inContext: Context = context) {
      const channels = Array.isArray(samples) ? (samples as readonly Float32Array[]) : [samples as Float32Array];
      const { gkMediaSegmentId } = await processor.addMediaSegment({
        context: inContext,
        encoding: "pcm16",
        rate: rateHz,
        channels: channels.length,
        chunk: pcm16(channels),
      });
      return gkMediaSegmentId!;
    },
    async heard(samples: Float32Array | readonly Float32Array[], inContext: Context = context) {
      return { case: "gkMediaSegmentId", value: await world.media(samples, inContext) } as const;
    },
    async process(samples: Float32Array, forEnrollment = true, inContext: Context = context) {
      const { result } = await processor.processAudio({
        context: inContext,
        input: await world.heard(samples, inContext),
        isForEnrollment: forEnrollment,
      });
      return result!;
    },
    async person(personId: string, profileTag = "", inContext: Context = context) {
      const owner = { case: "personId", value: personId } as const;
      return (await processor.createVoiceprintProfile({ context: inContext, owner, profileTag }))
        .gkVoiceprintProfileId!;
    },
    async fraudster(fraudsterId: string, profileTag = "", inContext: Context = context) {
      const owner = { case: "fraudsterId", value: fraudsterId } as const;
      return (await processor.createVoiceprintProfile({ context: inContext, owner, profileTag }))
        .gkVoiceprintProfileId!;
    },
    async enroll(profile: { value: string }, samples: Float32Array, inContext: Context = context) {
      const { gkProcessedAudioId } = await world.process(samples, true, inContext);
      const { result } = await processor.enroll({
        context: inContext,
        gkVoiceprintProfileId: profile,
        gkProcessedAudioId: gkProcessedAudioId!,
      });
      return result!;
    },
    async train(profile: { value: string }, inContext: Context = context) {
      return (await processor.train({ context: inContext, gkVoiceprintProfileId: profile })).result!;
    },
    /** A trained print of the speaker: three takes of three seconds. */
    async trained(speaker: number, kind: "person" | "fraudster" = "person", tag = "", inContext: Context = context) {
      const profile = await world[kind](`${kind}-${speaker}`, tag, inContext);
      for (const extra of [0, 0.1, 0.2]) await world.enroll(profile, take(speaker, 3 + extra), inContext);
      await world.train(profile, inContext);
      return profile;
    },
    async verify(
      profile: { value: string },
      samples: Float32Array,
      { ignoreCheckpoints = false, context: inContext = context as Context } = {},
    ): Promise<VerifyResult> {
      const { result } = await processor.verify({
        context: inContext,
        audio: await world.heard(samples, inContext),
        gkVoiceprintProfileId: profile,
        ignoreCheckpoints,
      });
      return result!;
    },
  };
  return world;
}

/** A world with two models. Its scope makes prints with the `old` one until `change()`, then with the engine of the world. */
export async function openTwoModels(options: Omit<WorldOptions, "engine" | "models"> = {}) {
  const [old, engine] = [fixtureEngine(), fixtureEngine()];
  engine.behavior.revision = "c".repeat(64);
  let current = old;
  const opened: string[] = [];
  const world = await openWorld({
    ...options,
    engine,
    models: {
      of: () => current,
      has: (revision) => [old, engine].some(({ model }) => model.revision === revision),
      async open(revision) {
        opened.push(revision);
        return [old, engine].find(({ model }) => model.revision === revision)!;
      },
    },
  });
  const change = () => {
    current = engine;
  };
  return { ...world, old, opened, change };
}

export type Context = {
  gkScopeId: { value: string };
  gkSessionId: { value: string };
  gkEngagementId: { value: string };
  configsetId: string;
};

export function pcm16(channels: readonly Float32Array[]): Uint8Array {
  const frames = channels[0]!.length;
  const view = new DataView(new ArrayBuffer(frames * channels.length * 2));
  for (let i = 0; i < frames; i++)
    for (const [c, samples] of channels.entries())
      view.setInt16(
        2 * (i * channels.length + c),
        Math.max(-32768, Math.min(32767, Math.round(samples[i]! * 32768))),
        true,
      );
  return new Uint8Array(view.buffer);
}

/** The StatusError of a call; fails the test if the call succeeds. */
export async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!isStatusError(error)) throw new Error(`not refused with a status: ${String(error)}`, { cause: error });
  return {
    code: StatusCode[error.code],
    fields: error.status.fieldViolations.map(({ field, violation }) => `${field} ${violation}`),
    requestId: error.status.requestId,
  };
}

/** Compares by name, because tests of the built package get its own copy of the class. */
const isStatusError = (error: unknown): error is StatusError => error instanceof Error && error.name === "StatusError";

export const list = (...profiles: { value: string }[]) => ({ uniqueIds: profiles });
