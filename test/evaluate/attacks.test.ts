import { expect, test } from "vitest";
import { alarmRate, fitAttack } from "../../src/evaluate/attacks.js";
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
