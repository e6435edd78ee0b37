import * as Plot from "@observablehq/plot";
import { probit } from "../voiceprint/probit.js";
import { type DetPoint, deviate, VISIBLE } from "./det.js";

const TICKS = [0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4];

/** Normal deviates on both axes, as DET curves are drawn. */
export function detPlot(
  curve: readonly DetPoint[],
  { line, diagonal, ...options }: { line: string; diagonal: string } & Plot.PlotOptions,
): Plot.PlotOptions {
  const axis = (label: string): Plot.ScaleOptions => ({
    label,
    domain: VISIBLE.map(probit),
    ticks: TICKS.map(probit),
    tickFormat: (_: number, i: number) => `${Number((100 * TICKS[i]!).toPrecision(3))}`,
    grid: true,
  });
  return {
    marginLeft: 55,
    ...options,
    x: axis("FMR, %"),
    y: axis("FNMR, %"),
    marks: [
      Plot.line(
        VISIBLE.map((rate) => [probit(rate), probit(rate)]),
        { stroke: diagonal },
      ),
      Plot.line(curve, {
        x: ({ fmr }: DetPoint) => deviate(fmr),
        y: ({ fnmr }: DetPoint) => deviate(fnmr),
        stroke: line,
        strokeWidth: 1.8,
      }),
    ],
  };
}
