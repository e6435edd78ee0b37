import fc from "fast-check";
import { expect, it } from "vitest";
import { detCurve } from "../../src/evaluate/det.js";
import { ratePoints, sortTrials } from "../../src/evaluate/metrics.js";
import { probit } from "../../src/voiceprint/probit.js";

const trials = fc.array(fc.record({ llr: fc.double({ min: -20, max: 20, noNaN: true }), same: fc.boolean() }), {
  minLength: 2,
  maxLength: 300,
});
/** Range of the plot. */
const shown = (rate: number) => probit(Math.min(Math.max(rate, 0.00005), 0.6));

it("a DET curve has every visible step, from accepting all to accepting none", () => {
  fc.assert(
    fc.property(trials, (scored) => {
      fc.pre(scored.some(({ same }) => same) && scored.some(({ same }) => !same));
      const curve = detCurve(scored);
      const all = ratePoints(
        sortTrials(
          scored.map(({ llr }) => llr),
          scored.map(({ same }) => same),
        ),
      );
      expect(curve[0]).toEqual({ fmr: 1, fnmr: 0 });
      expect(curve.at(-1)).toEqual({ fmr: 0, fnmr: 1 });
      for (const [i, { fmr, fnmr }] of curve.entries()) {
        expect(fmr).toBeLessThanOrEqual(curve[i - 1]?.fmr ?? 1);
        expect(fnmr).toBeGreaterThanOrEqual(curve[i - 1]?.fnmr ?? 0);
      }
      for (const { falseMatchRate, falseNonMatchRate } of all) {
        const nearest = Math.min(
          ...curve.map(({ fmr, fnmr }) =>
            Math.max(Math.abs(shown(fmr) - shown(falseMatchRate)), Math.abs(shown(fnmr) - shown(falseNonMatchRate))),
          ),
        );
        expect(nearest).toBeLessThan(0.005);
      }
    }),
  );
});

it("many trials give a curve of a few thousand points at most", () => {
  const scored = Array.from({ length: 200_000 }, (_, i) => ({
    llr: Math.sin(i * 12.9898) * 6 + (i % 3 ? -2 : 2),
    same: i % 3 === 0,
  }));
  expect(detCurve(scored).length).toBeLessThan(5000);
});
