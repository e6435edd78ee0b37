import { probit } from "../voiceprint/probit.js";
import { ratePoints, sortedByRatio } from "./metrics.js";
import type { ScoredTrial } from "./summary.js";

/** A point of the detection error trade-off: both rates in 0..1. */
export interface DetPoint {
  readonly fmr: number;
  readonly fnmr: number;
}

/** Range of the plot; rates beyond it are drawn at the edge. */
export const VISIBLE = [0.00005, 0.6] as const;
/** Points closer than this on the plot's axes (normal deviates) are merged: half a pixel. */
const APART = 0.005;

export const deviate = (rate: number) => probit(Math.min(Math.max(rate, VISIBLE[0]), VISIBLE[1]));

/** The curve of these trials, reduced to the points that can be told apart on the plot. */
export function detCurve(trials: readonly Pick<ScoredTrial, "llr" | "same">[]): DetPoint[] {
  const points = ratePoints(sortedByRatio(trials));
  const kept: DetPoint[] = [];
  let at = [Number.NaN, Number.NaN] as [number, number];
  for (const [i, { falseMatchRate: fmr, falseNonMatchRate: fnmr }] of points.entries()) {
    const here: [number, number] = [deviate(fmr), deviate(fnmr)];
    const near = Math.abs(here[0] - at[0]) < APART && Math.abs(here[1] - at[1]) < APART;
    if (near && i < points.length - 1) continue;
    kept.push({ fmr, fnmr });
    at = here;
  }
  return kept;
}
