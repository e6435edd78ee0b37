import { expect, test } from "vitest";
import { attackScore, type ScoredWindow } from "../../src/engine/attack-check.js";
import type { AttackModel } from "../../src/engine/attack-network.js";
import { gaussian, random } from "../voice.js";

const model = { kind: "synthetic", revision: "b".repeat(64), slope: 1, offset: 0 } as AttackModel;
const windowsOf = (scores: readonly number[]): ScoredWindow[] =>
  scores.map((score, i) => ({ score, speechSeconds: 3.2, startSeconds: 4 * i, endSeconds: 4 * i + 3.2 }));
const scoreOf = (scores: readonly number[]) => attackScore(windowsOf(scores), model);

test("the ratio of one window is that of its network", () => {
  for (const score of [-7, 0, 3.5]) expect(scoreOf([score]).llr).toBeCloseTo(score, 12);
});

test("an attack of one window in minutes of genuine speech is found and located", () => {
  const genuine = Array.from({ length: 40 }, () => -4);
  const { llr, strongest } = scoreOf(genuine.with(25, 11));
  expect(scoreOf(genuine).llr).toBeCloseTo(-4, 12);
  // A tenth of attacks are like this, and any of forty windows may be the one.
  expect(llr).toBeCloseTo(11 + Math.log(0.1 / 40), 3);
  expect(strongest).toEqual({ startSeconds: 100, endSeconds: 103.2, llr: 11 });
});

test("a ratio based on one stretch has the reliability of that stretch, one based on all speech that of all speech", () => {
  const genuine = Array.from({ length: 40 }, () => -4);
  expect(scoreOf(genuine.with(25, 11)).reliability).toBeCloseTo(scoreOf([11]).reliability, 3);
  // 128 s of speech have a reliability of 0.98, of which nine tenths count here: one window may be the reason.
  expect(scoreOf(genuine.map(() => 9)).reliability).toBeCloseTo(0.9 * (128 / 130) + 0.1 * (3.2 / 5.2), 6);
});

test("longer genuine calls are not taken for attacks more often", () => {
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
