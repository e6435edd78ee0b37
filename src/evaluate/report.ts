import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import { detCurve, detPlot } from "./det.js";
import type { Evaluation } from "./evaluate.js";
import { decimal, percent, rate } from "./format.js";
import { monotoneCalibration, sortTrials } from "./metrics.js";
import type { BandSummary, Summary } from "./summary.js";
import { type Pair, promiseInWords, worstPairs } from "./verdicts.js";

/** One self-contained page: figures, DET curve, score histograms, calibration. */
export function reportHtml(title: string, evaluations: readonly Evaluation[], at: Date): string {
  const body = evaluations.map((evaluation) => section(evaluation)).join("\n");
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>
  :root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --rule: #d8dee4; --faint: #57606a; --same: #0b62d6; --different: #b6431a; }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6edf3; --paper: #0d1117; --rule: #30363d; --faint: #9aa4af; --same: #6cb0ff; --different: #ff9a6b; }
  }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; color: var(--ink); background: var(--paper); overflow-wrap: break-word; }
  .wide { overflow-x: auto; }
  table { border-collapse: collapse; margin: 1rem 0; }
  th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; font-variant-numeric: tabular-nums; }
  th:first-child, td:first-child { text-align: left; }
  .plots { display: flex; flex-wrap: wrap; gap: 1rem; }
  figure { margin: 0; max-width: 100%; }
  figure svg { max-width: 100%; height: auto; background: transparent; color: var(--ink); }
  figcaption { font-weight: 600; }
  .note { color: var(--faint); }
  .path { overflow-wrap: anywhere; text-align: left; }
  .whole { white-space: nowrap; }
  @media (max-width: 30rem) {
    th, td { padding: .25rem .3rem; font-size: 13px; }
  }
</style>
<h1>${escapeHtml(title)}</h1>
<p class="note">Made ${at.toISOString()} by vivavoce. Intervals are 95 %, from a bootstrap over speakers.</p>
${body}
</html>
`;
}

function section(evaluation: Evaluation): string {
  const { summary } = evaluation;
  const heading = `<h2>${escapeHtml(evaluation.condition)}</h2>
<p class="note">Model ${escapeHtml(evaluation.modelRevision.slice(0, 16))}, calibration ${escapeHtml(evaluation.calibrationRevision.slice(0, 16))}, ${evaluation.recordings} recordings.${evaluation.note ? ` ${escapeHtml(evaluation.note)}.` : ""}</p>`;
  const failures = failureList(evaluation);
  if (summary === null)
    return `${heading}<p>No figures: the scored trials must include the same speaker and different speakers.</p>${failures}`;
  return `${heading}
${summaryTable(summary)}
<div class="plots">
  <figure><figcaption>Detection error trade-off</figcaption>${svg(detPlot(detCurve(evaluation.trials), { line: INK, diagonal: FAINT }))}</figure>
  <figure><figcaption>Scores</figcaption>${histogram(evaluation)}</figure>
  <figure><figcaption>Calibration</figcaption>${calibrationPlot(evaluation)}</figure>
</div>
${promises(summary)}
${openSetTable(evaluation)}
${bandTable("By net speech of the tested recording", evaluation.byNetSpeech)}
${bandTable("By signal-to-noise ratio of the tested recording", evaluation.bySnr)}
${pairTables(evaluation)}
${failures}`;
}

function summaryTable(summary: Summary): string {
  const rows: [string, string][] = [
    ["Speakers", String(summary.speakers)],
    ["Trials, same person / different people", `${summary.sameTrials} / ${summary.differentTrials}`],
    ["Equal error rate", percent(summary.equalErrorRate)],
    ...summary.operatingPoints.map((point): [string, string] => [
      `FNMR at FMR ${100 * point.falseMatchRate} %${point.resolved ? "" : " (too few trials to resolve)"}`,
      percent(point.fnmr),
    ]),
    ["minDCF (prior 0.01)", decimal(summary.minimumDetectionCost)],
    ["Actual DCF (prior 0.01)", decimal(summary.actualDetectionCost)],
    ["Cllr, bits", decimal(summary.cllr)],
    ["minCllr, bits", decimal(summary.minimumCllr)],
  ];
  return `<div class="wide"><table>${rows.map(([name, value]) => `<tr><td>${escapeHtml(name)}</td>${figureCell(value)}</tr>`).join("")}</table></div>`;
}

/** A line may break only between a figure and its interval. */
function figureCell(text: string): string {
  const parts = text.split(/ (?=\()/).map((part) => `<span class="whole">${escapeHtml(part)}</span>`);
  return `<td>${parts.join(" ")}</td>`;
}

function promises(summary: Summary): string {
  if (summary.promisedPoints.length === 0) return "";
  const rows = summary.promisedPoints.map(
    (point) =>
      `<tr><td>${100 * point.promisedRate} %</td><td>${point.threshold.toFixed(2)}</td>${figureCell(rate(point.falseMatchRate))}${figureCell(rate(point.falseNonMatchRate))}</tr>`,
  );
  return `<h3>Does the threshold keep its promise?</h3>
<div class="wide"><table><tr><th>target false-accept rate</th><th>threshold (llr, median)</th><th>measured FMR</th><th>measured FNMR</th></tr>${rows.join("")}</table></div>
${summary.promisedPoints.map((point) => `<p>${escapeHtml(promiseInWords(point))}</p>`).join("")}`;
}

function bandTable(title: string, bands: readonly BandSummary[]): string {
  if (bands.length === 0) return "";
  const rows = bands.map(({ label, trials, summary }) => {
    const figures = summary
      ? [percent(summary.equalErrorRate), percent(summary.operatingPoints[0]!.fnmr), decimal(summary.cllr)]
      : ["one kind of trial only", "", ""];
    return `<tr><td>${escapeHtml(label)}</td><td>${trials}</td>${figures.map(figureCell).join("")}</tr>`;
  });
  return `<h3>${escapeHtml(title)}</h3>
<div class="wide"><table><tr><th></th><th>trials</th><th>EER</th><th>FNMR at FMR 1 %</th><th>Cllr</th></tr>${rows.join("")}</table></div>`;
}

function failureList({ unusable, failedModels, unscoredTrials }: Evaluation): string {
  if (unscoredTrials === 0 && unusable.length === 0) return "";
  const listed = unusable.slice(0, 50).map(({ file, reason }) => `<li>${escapeHtml(file)}: ${escapeHtml(reason)}</li>`);
  if (unusable.length > listed.length) listed.push(`<li>and ${unusable.length - listed.length} more</li>`);
  return `<h3>Not scored</h3>
<p>${unscoredTrials} trials, because ${unusable.length} recordings gave no voice and ${failedModels} models could not be enrolled.</p>
<ul>${listed.join("")}</ul>`;
}

function openSetTable({ openSet }: Evaluation): string {
  if (openSet.length === 0) return "";
  const rows = openSet.map(
    (row) =>
      `<tr><td>${row.size}</td><td>${100 * row.targetRate} %</td>${figureCell(rate(row.fpir))}${figureCell(rate(row.fnir))}${figureCell(rate(row.oracleFnir))}</tr>`,
  );
  return `<h3>Lists</h3>
<p class="note">Calls against lists drawn from the other speakers: who is not on one and is named (FPIR), who is on one and is not found (FNIR).</p>
<div class="wide"><table><tr><th>list of</th><th>target FPIR</th><th>FPIR</th><th>FNIR</th><th>best FNIR at the target</th></tr>${rows.join("")}</table></div>`;
}

function pairTables({ trials }: Evaluation): string {
  const { different, same } = worstPairs(trials);
  const of = (title: string, pairs: readonly Pair[]) =>
    pairs.length === 0
      ? ""
      : `<h3>${title}</h3>
<div class="wide"><table><tr><th>enrolled</th><th>tested</th><th>score</th><th>ratio</th></tr>${pairs
          .map(
            ({ enrolled, tested, raw, llr }) =>
              `<tr><td class="path">${escapeHtml(enrolled)}</td><td class="path">${escapeHtml(tested)}</td><td>${raw.toFixed(3)}</td><td>${llr.toFixed(1)}</td></tr>`,
          )
          .join("")}</table></div>`;
  return (
    of("Pairs of different people with the highest scores", different) +
    of("Pairs of one person with the lowest scores", same)
  );
}

const INK = "var(--same)";
const OTHER = "var(--different)";
const FAINT = "var(--rule)";

function histogram({ trials }: Evaluation): string {
  const scores = trials.map((trial) => trial.llr).sort((a, b) => a - b);
  const low = scores[Math.floor(0.002 * scores.length)]!;
  const high = scores[Math.ceil(0.998 * (scores.length - 1))]!;
  const bins = 50;
  const width = (high - low) / bins || 1;
  const rows = [true, false].flatMap((same) => {
    const chosen = trials.filter((trial) => trial.same === same);
    const counts = new Array<number>(bins).fill(0);
    for (const trial of chosen) {
      counts[Math.min(bins - 1, Math.max(0, Math.floor((trial.llr - low) / width)))]! += 1;
    }
    const kind = same ? "same person" : "different people";
    return counts.map((count, i) => ({
      kind,
      from: low + i * width,
      to: low + (i + 1) * width,
      share: count / chosen.length,
    }));
  });
  return svg({
    width: 420,
    height: 420,
    marginLeft: 55,
    x: { label: "log-likelihood ratio" },
    y: { label: "share of trials of its kind", grid: true },
    color: { legend: false, domain: ["same person", "different people"], range: [INK, OTHER] },
    marks: [
      Plot.rectY(rows, { x1: "from", x2: "to", y2: "share", y1: () => 0, fill: "kind", fillOpacity: 0.55 }),
      Plot.text([{ at: high, label: "blue: same person, red: different people" }], {
        frameAnchor: "top-right",
        text: "label",
      }),
    ],
  });
}

/** Ratio given by the engine against ratio found in the trials: a calibrated engine lies on the diagonal. */
function calibrationPlot({ trials }: Evaluation): string {
  const sorted = sortTrials(
    trials.map((trial) => trial.llr),
    trials.map((trial) => trial.same),
  );
  const blocks = monotoneCalibration(sorted).filter((block) => Number.isFinite(block.llr));
  const limit = Math.max(
    4,
    ...blocks.flatMap((block) => [Math.abs(block.llr), Math.abs(block.lowest), Math.abs(block.highest)]),
  );
  const steps = blocks.flatMap((block) => [
    { score: block.lowest, best: block.llr },
    { score: block.highest, best: block.llr },
  ]);
  return svg({
    width: 420,
    height: 420,
    marginLeft: 55,
    x: { label: "log-likelihood ratio given", domain: [-limit, limit], grid: true },
    y: { label: "log-likelihood ratio found", domain: [-limit, limit], grid: true },
    marks: [
      Plot.line(
        [
          [-limit, -limit],
          [limit, limit],
        ],
        { stroke: FAINT },
      ),
      Plot.line(steps, { x: "score", y: "best", stroke: INK, strokeWidth: 1.8 }),
    ],
  });
}

function svg(options: Plot.PlotOptions): string {
  const { document } = parseHTML("<!doctype html><html><body></body></html>");
  const plot = Plot.plot({ ...options, document: document as unknown as Document });
  plot.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return plot.outerHTML;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
