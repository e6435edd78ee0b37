/** The memory of a call without speech does not grow with its length. */
import { once } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create, toJson } from "@bufbuild/protobuf";
import { afterAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { openEngine } from "../../dist/engine/index.js";
import { ContextSchema } from "../../src/contract/index.js";
import { startLiveBox, stopLiveBoxes } from "./live-box.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const rate = 8000;
const warmSeconds = 300;
const seconds = 1500;
/** Allowance for compiled code and garbage that is collected later. One number kept for each frame would be 1,200 kB. */
const growthKb = 900;

const engine = await openEngine({ workers: 1 });
afterAll(async () => {
  await stopLiveBoxes();
  await engine.close();
});

async function usedKb(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1024;
}

it("keeps nothing of the silence", { timeout: 120_000 }, async () => {
  const limits = { liveSilenceSeconds: 86_400, liveBytesPerSecond: 1e9 };
  const live = await startLiveBox({ limits }, engine);
  const profile = await live.enroll("ada", 1, false);
  const context = toJson(ContextSchema, create(ContextSchema, await live.openSession()));
  const socket = new WebSocket(`${live.box.url.replace("http", "ws")}/v1/live`, "vivavoce.live.v1");
  await once(socket, "open");
  const parties = [{ name: "caller", verify: { gkVoiceprintProfileId: profile } }];
  socket.send(JSON.stringify({ start: { context, encoding: "mulaw", rate, parties } }));
  await once(socket, "message");
  const second = Buffer.alloc(rate, 0xff);
  const hear = async (count: number) => {
    for (let s = 0; s < count; s++) {
      socket.send(second);
      const [told] = await once(socket, "message");
      if (JSON.parse(String(told)).progress?.netAudio !== "0s") throw new Error(`told ${told}`);
    }
  };
  await hear(warmSeconds);
  const before = await usedKb();
  await hear(seconds);
  expect((await usedKb()) - before).toBeLessThan(growthKb);
  socket.terminate();
});

it("a worker frees processed audio at once, before any garbage collection", async () => {
  const stream = await engine.stream(rate);
  const madeHere = () => process.memoryUsage().arrayBuffers / 2 ** 20;
  await stream.push(new Float32Array(rate));
  const before = madeHere();
  const most = { mb: 0 };
  for (let s = 0; s < 500; s++) {
    await stream.push(new Float32Array(rate));
    most.mb = Math.max(most.mb, madeHere() - before);
  }
  // 500 s are 15 MB.
  expect(most.mb).toBeLessThan(2);
  await stream.close();
});
