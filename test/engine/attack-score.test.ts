import { expect, test } from "vitest";
import { attackScore, type ScoredWindow } from "../../src/engine/attack-check.js";
import type { AttackModel } from "../../src/engine/attack-network.js";
import { gaussian, random } from "../voice.js";

const model = { kind: "synthetic", revision: "b".repeat(64), slope: 1, offset: 0 } as AttackModel;
const windowsOf = (scores: readonly number[]): ScoredWindow[] =>
  scores.map((score, i) => ({ score, speechSeconds: 3.2, startSeconds: 4 * i, endSeconds: 4 * i + 3.2 }));
const scoreOf = (scores: readonly number[]) => attackScore(windowsOf(scores), model);

test("one window is what its network says of it", () => {
  for (const score of [-7, 0, 3.5]) expect(scoreOf([score]).llr).toBeCloseTo(score, 12);
});

test("an attack of one window in minutes of genuine speech is found, and where", () => {
  const genuine = Array.from({ length: 40 }, () => -4);
  const { llr, strongest } = scoreOf(genuine.with(25, 11));
  expect(scoreOf(genuine).llr).toBeCloseTo(-4, 12);
  // A tenth of attacks are such, and any of forty windows may be the one.
  expect(llr).toBeCloseTo(11 + Math.log(0.1 / 40), 3);
  expect(strongest).toEqual({ startSeconds: 100, endSeconds: 103.2, llr: 11 });
});

test("what rests on one stretch is trusted as that stretch is, what rests on all as all of it", () => {
  const genuine = Array.from({ length: 40 }, () => -4);
  expect(scoreOf(genuine.with(25, 11)).reliability).toBeCloseTo(scoreOf([11]).reliability, 3);
  // Speech of 128 s is trusted by 0.98, of which nine tenths count here: one window may be the reason.
  expect(scoreOf(genuine.map(() => 9)).reliability).toBeCloseTo(0.9 * (128 / 130) + 0.1 * (3.2 / 5.2), 6);
});

test("genuine calls are taken for attacks no more often however long they are", () => {
  // Ratios of a calibrated network: for genuine speech normal around -m with variance 2m.
  const draw = gaussian(random(3));
  const threshold = -Math.log(0.01);
  for (const length of [1, 3, 10, 40]) {
    const calls = 20_000;
    let alarms = 0;
    for (let call = 0; call < calls; call++) {
      if (scoreOf(Array.from({ length }, () => -4 + Math.sqrt(8) * draw())).llr >= threshold) alarms++;
    }
    // At most the rate that the threshold promises; three deviations of 20,000 draws are 0.2 %.
    expect(alarms / calls).toBeLessThan(0.012);
  }
});
