/** A box with enrolled people, by default on the fixture engine and without tokens. */
import { connect } from "../../src/client/index.js";
import type { Engine } from "../../src/engine/port.js";
import { configSchema, type ServerConfigInput } from "../../src/server/config.js";
import { FIRST_SCOPE } from "../../src/server/first-run.js";
import { jsonLog } from "../../src/server/log.js";
import { type Box, startBox } from "../../src/server/start.js";
import { fixtureEngine, rateHz, take } from "../processor/fixture-engine.js";
import { pcm16 } from "../processor/world.js";

export const scope = FIRST_SCOPE;
export const bytesOf = (samples: Float32Array): Uint8Array => pcm16([samples]);

export type LiveBox = Awaited<ReturnType<typeof startLiveBox>>;

const open: Box[] = [];
export const stopLiveBoxes = () => Promise.all(open.splice(0).map((box) => box.stop()));

export async function startLiveBox(config: Partial<ServerConfigInput> = {}, engine: Engine = fixtureEngine()) {
  const logged: Record<string, unknown>[] = [];
  const box = await startBox(configSchema.parse({ port: 0, store: "memory", auth: { required: false }, ...config }), {
    engine,
    log: jsonLog("info", (line) => logged.push(JSON.parse(line))),
  });
  open.push(box);
  const operations = connect({ url: box.url });
  const openSession = async () => {
    const context = { gkScopeId: { value: scope } };
    const { gkSessionId, gkEngagementId } = await operations.startSession({ context });
    return {
      ...context,
      gkSessionId: { value: gkSessionId!.value },
      gkEngagementId: { value: gkEngagementId!.value },
      configsetId: "ivr-text-dependent",
    };
  };
  return {
    box,
    logged,
    operations,
    openSession,
    /** A trained print of the speaker, under this name. */
    async enroll(personId: string, speaker: number, trained = true): Promise<{ value: string }> {
      const context = await openSession();
      const owner = { case: "personId", value: personId } as const;
      const { gkVoiceprintProfileId } = await operations.createVoiceprintProfile({ context, owner });
      const profile = { value: gkVoiceprintProfileId!.value };
      for (const extra of trained ? [0, 0.1, 0.2] : []) {
        const { gkMediaSegmentId } = await operations.addMediaSegment({
          context,
          chunk: bytesOf(take(speaker, 3 + extra)),
          encoding: "pcm16",
          rate: rateHz,
          channels: 1,
        });
        const input = { case: "gkMediaSegmentId", value: gkMediaSegmentId! } as const;
        const { result } = await operations.processAudio({ context, input, isForEnrollment: true });
        const { gkProcessedAudioId } = result!;
        await operations.enroll({
          context,
          gkVoiceprintProfileId: profile,
          gkProcessedAudioId: { value: gkProcessedAudioId!.value },
        });
      }
      if (trained) await operations.train({ context, gkVoiceprintProfileId: profile });
      return profile;
    },
  };
}

/** Splits the bytes into chunks of this size. */
export const pieces = (bytes: Uint8Array, size: number): Uint8Array[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.slice(i * size, (i + 1) * size));
