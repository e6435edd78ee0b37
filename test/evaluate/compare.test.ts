import { describe, expect, it } from "vitest";
import { comparedEvaluation, compareEvaluations } from "../../src/evaluate/compare.js";

const estimate = (value: number, low?: number, high?: number) => ({
  value,
  interval: low === undefined ? null : { low, high: high! },
});
const answer = {
  summary: {
    sameTrials: 10,
    differentTrials: 1000,
    equalErrorRate: estimate(0.04, 0.02, 0.06),
    cllr: estimate(0.2, 0.1, 0.3),
    minimumCllr: estimate(0.1),
    operatingPoints: [0.01, 0.001].map((falseMatchRate) => ({ falseMatchRate, fnmr: estimate(0.1, 0.05, 0.2) })),
  },
  openSet: [{ size: 10, targetRate: 0.01, fpir: 0.02, fnir: 0.3, fnirInterval: { low: 0.2, high: 0.4 } }],
};
const read = (value: unknown) => comparedEvaluation(JSON.stringify(value));

describe("two evaluations", () => {
  it("are compared figure by figure, with the interval of the first", () => {
    const summary = {
      ...answer.summary,
      equalErrorRate: estimate(0.05),
      cllr: estimate(0.4),
      minimumCllr: estimate(0.05),
    };
    const { rows, note } = compareEvaluations(read(answer)!, read({ ...answer, summary })!);
    expect(rows.map(({ figure, change }) => [figure, change])).toEqual([
      ["EER", "within the interval"],
      ["FNMR at FMR 1 %", "same"],
      ["FNMR at FMR 0.1 %", "same"],
      ["Cllr", "worse"],
      ["minCllr", "better"],
      ["FPIR, list of 10, target FPIR 1 %", "same"],
      ["FNIR, list of 10, target FPIR 1 %", "same"],
    ]);
    expect(note).toBeNull();
    expect(rows[0]).toMatchObject({ before: "4.00 % (2.00 to 6.00)", after: "5.00 %" });
  });

  it("are not called better or worse on lists if the change is within the interval", () => {
    const of = (list: object) => compareEvaluations(read(answer)!, read({ ...answer, openSet: [list] })!).rows.at(-1)!;
    const list = { size: 10, targetRate: 0.01, fpir: 0.02 };
    expect(of({ ...list, fnir: 0.35 })).toMatchObject({
      before: "30.00 % (20.00 to 40.00)",
      change: "within the interval",
    });
    expect(of({ ...list, fnir: 0.45, fnirInterval: null }).change).toBe("worse");
  });

  it("show whether rates came nearer to their targets, as a calibration should bring them", () => {
    const promised = (falseMatchRate: number) => ({
      promisedRate: 0.01,
      falseMatchRate,
      interval: { low: 0.02, high: 0.06 },
    });
    const list = { size: 10, targetRate: 0.01, fnir: 0.3 };
    const of = (falseMatchRate: number, fpir: number) => ({
      summary: { ...answer.summary, promisedPoints: [promised(falseMatchRate)] },
      openSet: [{ ...list, fpir }],
    });
    const changes = (falseMatchRate: number, fpir: number) =>
      compareEvaluations(read(of(0.04, 0.03))!, read(of(falseMatchRate, fpir))!)
        .rows.filter(({ figure }) => /target F/.test(figure))
        .map(({ figure, change }) => [figure, change]);
    expect(changes(0.009, 0.02)).toEqual([
      ["FMR, target FAR 1 %", "nearer to the target"],
      ["FPIR, list of 10, target FPIR 1 %", "nearer to the target"],
      ["FNIR, list of 10, target FPIR 1 %", "same"],
    ]);
    expect(changes(0.03, 0)).toEqual([
      ["FMR, target FAR 1 %", "within the interval"],
      ["FPIR, list of 10, target FPIR 1 %", "farther from the target"],
      ["FNIR, list of 10, target FPIR 1 %", "same"],
    ]);
    expect(changes(0.0001, 0.03)[0]).toEqual(["FMR, target FAR 1 %", "farther from the target"]);
  });

  it("may be of different versions: only what both have is compared", () => {
    const [, low] = answer.summary.operatingPoints;
    const other = { summary: { ...answer.summary, sameTrials: 12, operatingPoints: [low], news: 1 } };
    const { rows, note } = compareEvaluations(read(answer)!, read(other)!);
    expect(rows.map(({ figure }) => figure)).toEqual(["EER", "FNMR at FMR 0.1 %", "Cllr", "minCllr"]);
    expect(note).toMatch(/^The trials differ \(10 same, 1000 different; 12 same/);
  });

  it("are compared with care if each speaker has only one session", () => {
    const within = { ...answer, note: "no speaker has two sessions" };
    expect(compareEvaluations(read(within)!, read(within)!).note).toBe("no speaker has two sessions.");
    const { note } = compareEvaluations(
      read(answer)!,
      read({ ...within, summary: { ...answer.summary, sameTrials: 9 } })!,
    );
    expect(note).toMatch(/^no speaker has two sessions\.\nThe trials differ/);
  });

  it("are refused without figures", () => {
    for (const wrong of [null, [], {}, { summary: null }, { summary: {} }, { ...answer, openSet: {} }])
      expect(read(wrong)).toBeNull();
    // What JSON makes of a number that is not finite.
    expect(read({ ...answer, summary: { ...answer.summary, cllr: { value: null, interval: null } } })).toBeNull();
    expect(comparedEvaluation("<html>")).toBeNull();
  });
});
