import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Recording } from "../../src/audio/port.js";
import { interruptible } from "../../src/cli/evaluate.js";
import type { Engine } from "../../src/engine/port.js";
import { alarmRate, fitAttack, genuineReach } from "../../src/evaluate/attacks.js";
import { VoiceCache } from "../../src/evaluate/voice-cache.js";
import { random } from "../voice.js";

/** Like the model's own: genuine calls exceed -2 + 0.8 · x at a rate of exp(-x). */
const engine = { attackThreshold: (_: unknown, rate: number) => -2 - 0.8 * Math.log(rate) };
const revision = "b".repeat(64);

function calls(count: number, location: number, scale: number, seed = 1): number[] {
  const next = random(seed);
  return Array.from({ length: count }, () => location - scale * Math.log(1 - next()));
}

const thresholdOf = (fit: { location: number; scale: number }, rate: number) =>
  fit.location - fit.scale * Math.log(rate);

test("too few recordings give no fit", () => {
  expect(fitAttack({ revision, reach: calls(19, 0, 1) }, "synthetic", engine)).toBeNull();
  expect(fitAttack({ revision, reach: calls(20, 0, 1) }, "synthetic", engine)).toMatchObject({
    recordings: 20,
    revision,
  });
});

test("recordings unlike the model's own give more false alarms than its threshold allows", () => {
  const alarms = (reach: number[]) => alarmRate({ revision, reach }, "synthetic", engine, 0.01);
  expect(alarms(calls(10_000, -2, 0.8))).toBeLessThan(0.013);
  expect(alarms([...calls(80, -2, 0.1), ...calls(20, 4, 1)])).toBe(0.2);
  expect(alarms([])).toBe(0);
});

test("recordings like the model's own keep its thresholds; different ones move them, the more recordings the further", () => {
  const like = fitAttack({ revision, reach: calls(2000, -2, 0.8) }, "synthetic", engine)!;
  // The tail of 200 recordings: its mean is known to 7 %, and four more or fewer beyond the edge are 0.2.
  expect(Math.abs(thresholdOf(like, 0.01) - engine.attackThreshold(null, 0.01))).toBeLessThan(0.3);
  const others = [50, 400, 4000].map(
    (count) => fitAttack({ revision, reach: calls(count, 0, 1.2) }, "synthetic", engine)!,
  );
  const thresholds = others.map((fit) => thresholdOf(fit, 0.01));
  expect(thresholds).toEqual(thresholds.toSorted((a, b) => a - b));
  const reached = calls(100_000, 0, 1.2, 7).filter((reach) => reach > thresholds[2]!).length / 100_000;
  expect(reached).toBeGreaterThan(0.007);
  expect(reached).toBeLessThan(0.014);
  const before = calls(100_000, 0, 1.2, 7).filter((reach) => reach > engine.attackThreshold(null, 0.01)).length;
  expect(before / 100_000).toBeGreaterThan(0.2);
});

test("recordings with equal ratios do not make the tail vanish", () => {
  const fit = fitAttack({ revision, reach: Array.from({ length: 5000 }, () => -1) }, "playback", engine)!;
  expect(fit.scale).toBeGreaterThan(0.2 * 0.8);
});

test("an interrupted check continues where it stopped, with the same ratios; another model begins again", async () => {
  const folder = await mkdtemp(join(tmpdir(), "vivavoce-attacks-"));
  const names = ["1", "2", "3", "4"];
  for (const name of names) await writeFile(join(folder, name), name);
  let scored: number[] = [];
  let onScore = () => {};
  const parts = async () => ({
    engine: {
      async attack(_: unknown, samples: Float32Array) {
        scored.push(samples[0]!);
        onScore();
        return { llr: samples[0]!, reliability: 1, revision, strongest: null };
      },
    } as unknown as Engine,
    decode: (bytes: Uint8Array) =>
      ({ rateHz: 8000, read: () => [Float32Array.of(Number(String.fromCharCode(bytes[0]!)))] }) as unknown as Recording,
    cache: await VoiceCache.open(join(folder, "cache.jsonl")),
  });
  const files = [...names, "gone"].map((name) => join(folder, name));
  const check = async (model: string) => {
    const { signal, end } = interruptible({ cache: true } as Parameters<typeof interruptible>[0]);
    const options = { concurrency: 1, signal, onProgress() {} };
    scored = [];
    return genuineReach(files, "synthetic", model, await parts(), options).finally(end);
  };
  onScore = () => {
    // As Ctrl-C does, at the second recording.
    if (scored.length === 2) process.listeners("SIGINT").at(-1)!("SIGINT");
  };
  const listeners = process.listenerCount("SIGINT");
  await expect(check("model")).rejects.toMatchObject({
    message: "interrupted",
    hint: "run the command again to continue where it stopped",
  });
  expect(process.listenerCount("SIGINT")).toBe(listeners);
  onScore = () => {};
  const { reach } = await check("model");
  expect(scored).toEqual([3, 4]);
  expect(await check("other")).toEqual({ revision, reach });
  expect(scored).toEqual([1, 2, 3, 4]);
  await rm(folder, { recursive: true });
});
