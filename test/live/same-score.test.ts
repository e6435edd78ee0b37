/** One recording gives bit for bit the same score in process, uploaded, and live in packets. */
import { once } from "node:events";
import { create, toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { openEngine } from "../../dist/engine/index.js";
import { readRecording } from "../../src/audio/index.js";
import { connect } from "../../src/client/index.js";
import { ContextSchema, EnrollStatus } from "../../src/contract/index.js";
import type { Engine } from "../../src/engine/port.js";
import { VoiceprintsProcessor } from "../../src/processor/voiceprints-processor.js";
import { configSchema } from "../../src/server/config.js";
import { FIRST_SCOPE } from "../../src/server/first-run.js";
import { jsonLog } from "../../src/server/log.js";
import { type Box, startBox } from "../../src/server/start.js";
import { createMemoryStore } from "../../src/store/memory.js";
import { pcm16 } from "../processor/world.js";
import { speak } from "../voice.js";
import { pieces } from "./live-box.js";

let engine: Engine;
let box: Box;
beforeAll(async () => {
  engine = await openEngine({ workers: 1 });
  const config = configSchema.parse({ port: 0, store: "memory", auth: { required: false } });
  box = await startBox(config, { engine, log: jsonLog("silent") });
});
afterAll(async () => {
  await box?.stop();
  await engine?.close();
});

const rate = 8000;
const spoken = (speaker: number, seconds: number, seed: number) =>
  pcm16([speak({ speaker, seconds, rateHz: rate, seed })]);

type Operations = Pick<VoiceprintsProcessor, "startSession" | "createVoiceprintProfile">;
async function opened(operations: Operations, configsetId: string) {
  const context = { gkScopeId: { value: FIRST_SCOPE } };
  const { gkSessionId, gkEngagementId } = await operations.startSession({ context });
  const open = {
    ...context,
    gkSessionId: { value: gkSessionId!.value },
    gkEngagementId: { value: gkEngagementId!.value },
    configsetId,
  };
  const owner = { case: "personId", value: `ada ${configsetId}` } as const;
  const { gkVoiceprintProfileId } = await operations.createVoiceprintProfile({ context: open, owner });
  return { context: open, profile: { value: gkVoiceprintProfileId!.value } };
}

/** Sends it over WebSocket in packets of this many bytes; returns the last message. */
async function live(start: object, audio: Uint8Array, size: number): Promise<Record<string, never>> {
  const socket = new WebSocket(`${box.url.replace("http", "ws")}/v1/live`, "vivavoce.live.v1");
  await once(socket, "open");
  const messages: Record<string, never>[] = [];
  socket.on("message", (data) => messages.push(JSON.parse(String(data))));
  socket.send(JSON.stringify({ start }));
  for (const piece of pieces(audio, size)) socket.send(piece);
  socket.send('{"end":{}}');
  await once(socket, "close");
  return messages.at(-1)!;
}

it.each(["text-independent", "ivr-text-dependent"])(
  "with the checkpoints of %s",
  { timeout: 120_000 },
  async (configset) => {
    const voice = spoken(3, 24, 1);
    const same = spoken(3, 14, 2);
    const format = { encoding: "pcm16", rate, channels: 1 };

    // A live call enrolls; the same audio in process, uploaded, would make the same print.
    const client = connect({ url: box.url });
    const remote = await opened(client, configset);
    const context = toJson(ContextSchema, create(ContextSchema, remote.context));
    const enrolling = {
      context,
      ...format,
      parties: [{ name: "caller", enroll: { gkVoiceprintProfileId: remote.profile } }],
    };
    const enrolled = await live(enrolling, voice, 320);
    expect(enrolled).toMatchObject({ result: { enroll: { training: { trainStatus: "TRAIN_STATUS_TRAINED" } } } });
    const { result: status } = await client.getEnrollStatus({
      context: remote.context,
      gkVoiceprintProfileId: remote.profile,
    });
    expect(status).toBeGreaterThanOrEqual(EnrollStatus.TRAIN_POSSIBLE);

    const verifying = {
      context,
      ...format,
      parties: [{ name: "caller", verify: { gkVoiceprintProfileId: remote.profile } }],
    };
    const scoreOf = (message: { result?: { verify?: { authenticationScore?: { biometricScore?: number } } } }) =>
      message.result?.verify?.authenticationScore?.biometricScore;
    const scores = [];
    for (const size of [320, 1601, 100_000]) scores.push(scoreOf(await live(verifying, same, size)));

    const { gkMediaSegmentId } = await client.addMediaSegment({ context: remote.context, ...format, chunk: same });
    const { result } = await client.verify({
      context: remote.context,
      audio: { case: "gkMediaSegmentId", value: gkMediaSegmentId! },
      gkVoiceprintProfileId: remote.profile,
    });
    const uploaded = result!.authenticationScore!.biometricScore!;
    expect(uploaded).toBeGreaterThan(0.2);
    expect(scores).toEqual([uploaded, uploaded, uploaded]);
  },
);

it("in process and over the network", { timeout: 120_000 }, async () => {
  const processor = new VoiceprintsProcessor({ engine, store: createMemoryStore(), readRecording });
  const { context, profile } = await opened(processor, "text-independent");
  async function* requests(task: object, audio: Uint8Array, size: number) {
    yield {
      content: { case: "start", value: { context, encoding: "pcm16", rate, parties: [{ name: "x", task }] } },
    } as never;
    for (const piece of pieces(audio, size)) yield { content: { case: "audio", value: piece } } as never;
  }
  const last = async (task: object, audio: Uint8Array, size: number) => {
    let response = null;
    for await (const one of processor.listen(requests(task, audio, size))) response = one;
    return response!.event;
  };
  await last({ case: "enroll", value: { gkVoiceprintProfileId: profile } }, spoken(3, 24, 1), 320);
  const verify = { case: "verify", value: { gkVoiceprintProfileId: profile } };
  const heard = [await last(verify, spoken(3, 14, 2), 320), await last(verify, spoken(3, 14, 2), 7777)];
  const scores = heard.map((event) =>
    event.case === "result" && event.value.result.case === "verify"
      ? event.value.result.value.authenticationScore?.biometricScore
      : null,
  );
  expect(scores[0]).toBeGreaterThan(0.2);
  expect(scores[1]).toBe(scores[0]);
});
