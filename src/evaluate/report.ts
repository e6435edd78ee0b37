import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import { detCurve } from "./det.js";
import { detPlot } from "./det-plot.js";
import type { Evaluation } from "./evaluate.js";
import { monotoneCalibration, sortedByRatio } from "./metrics.js";
import { quantileOf } from "./quantile.js";
import { type FigureTable, figuresOf, tablesOf } from "./tables.js";

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
  .key { margin-left: .75rem; font-weight: 400; white-space: nowrap; }
  .key::before { display: inline-block; width: .8em; height: .8em; margin-right: .35em; background: var(--color); opacity: .55; content: ""; }
  .note { color: var(--faint); }
  .path { overflow-wrap: anywhere; text-align: left; }
  .whole { white-space: nowrap; }
  @media (max-width: 30rem) {
    th, td { padding: .25rem .3rem; font-size: 13px; }
  }
</style>
<main>
<h1>${escapeHtml(title)}</h1>
<p class="note">Made ${at.toISOString()} by vivavoce. Intervals are 95 %, from a bootstrap over speakers; without errors, the upper limit follows from the number of speakers.</p>
${body}
</main>
</html>
`;
}

function section(evaluation: Evaluation): string {
  const { summary } = evaluation;
  const tables = summary === null ? [] : tablesOf(evaluation, summary);
  const folder = commonFolder([
    ...tables.flatMap(({ rows, files = 0 }) => rows.flatMap((row) => row.slice(0, files).map(String))),
    ...evaluation.copies.flatMap(({ file, of }) => [file, of]),
    ...evaluation.unusable.map(({ file }) => file),
  ]);
  const heading = `<h2>${escapeHtml(evaluation.condition)}</h2>
<p class="note">Model ${escapeHtml(evaluation.modelRevision.slice(0, 16))}, calibration ${escapeHtml(evaluation.calibrationRevision.slice(0, 16))}, ${evaluation.recordings} recordings.${evaluation.note ? ` ${escapeHtml(evaluation.note)}.` : ""}</p>
${folder ? `<p class="note path">Recordings are named from this folder: ${escapeHtml(folder)}</p>` : ""}`;
  const nameOf = (file: string) => file.slice(folder.length);
  const failures = copyList(evaluation, nameOf) + failureList(evaluation, nameOf);
  if (summary === null)
    return `${heading}<p>No error rates: the trials must include pairs of the same speaker and pairs of different speakers.</p>${failures}`;
  const figures = figuresOf(summary, evaluation.sampledFrom).map(
    ([name, value]) => `<tr><td>${name}</td>${cell(String(value), false)}</tr>`,
  );
  return `${heading}
${wide("Figures", `<table>${figures.join("")}</table>`)}
<div class="plots">
  <figure><figcaption>Detection error trade-off</figcaption>${svg("Detection error trade-off", detPlot(detCurve(evaluation.trials), { line: INK, diagonal: FAINT }))}</figure>
  <figure><figcaption>Scores${key("same person", INK)}${key("different people", OTHER)}</figcaption>${histogram(evaluation)}</figure>
  <figure><figcaption>Calibration</figcaption>${calibrationPlot(evaluation)}</figure>
</div>
${tables.map((one) => tableHtml(one, nameOf)).join("\n")}
${failures}`;
}

/** The folder that has all these files, or a folder of theirs, with the separator at its end; empty if it is the root. */
function commonFolder([first = "", ...others]: readonly string[]): string {
  const folderOf = (path: string) => path.slice(0, Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
  let folder = folderOf(first);
  for (const file of others) while (!file.startsWith(folder)) folder = folderOf(folder.slice(0, -1));
  return folder.length > 1 ? folder : "";
}

type NameOf = (file: string) => string;

function tableHtml({ title, head, rows, files = 0, notes = [] }: FigureTable, nameOf: NameOf): string {
  const cells = (row: FigureTable["rows"][number]) =>
    row.map((value, i) => (i < files ? cell(nameOf(String(value)), true) : cell(String(value), false)));
  const lines = rows.map((row) => `<tr>${cells(row).join("")}</tr>`);
  return `<h3>${title}</h3>
${wide(title, `<table><tr>${head.map((name) => `<th scope="col">${name}</th>`).join("")}</tr>${lines.join("")}</table>`)}
${notes.map((note) => `<p class="note">${escapeHtml(note)}</p>`).join("")}`;
}

/** A table that may be wider than a phone. It has a place in the tab order, so that the keyboard can scroll it. */
const wide = (name: string, table: string): string =>
  `<div class="wide" role="region" aria-label="${name}" tabindex="0">${table}</div>`;

const key = (name: string, color: string): string => ` <span class="key" style="--color: ${color}">${name}</span>`;

/** A line may break only between a figure and its interval; the name of a file may break anywhere. */
function cell(text: string, isFile: boolean): string {
  if (isFile) return `<td class="path">${escapeHtml(text)}</td>`;
  const parts = text.split(/ (?=\()/).map((part) => `<span class="whole">${escapeHtml(part)}</span>`);
  return `<td>${parts.join(" ")}</td>`;
}

function copyList({ copies }: Evaluation, nameOf: NameOf): string {
  if (copies.length === 0) return "";
  return `<h3>Copies of other recordings</h3>
<p>Remove them: comparing a recording with its own copy shows nothing.</p>
${fileList(copies.map(({ file, of }) => [nameOf(file), nameOf(of)]))}`;
}

function failureList({ unusable, failedModels, unscoredTrials }: Evaluation, nameOf: NameOf): string {
  if (unscoredTrials === 0 && unusable.length === 0) return "";
  return `<h3>Not scored</h3>
<p>${unscoredTrials} trials, because ${unusable.length} recordings have no usable speech and ${failedModels} enrollments failed.</p>
${fileList(unusable.map(({ file, reason }) => [nameOf(file), reason]))}`;
}

function fileList(files: readonly (readonly [file: string, about: string])[]): string {
  const listed = files.slice(0, 50).map(([file, about]) => `<li>${escapeHtml(file)}: ${escapeHtml(about)}</li>`);
  if (files.length > listed.length) listed.push(`<li>and ${files.length - listed.length} more</li>`);
  return `<ul>${listed.join("")}</ul>`;
}

const INK = "var(--same)";
const OTHER = "var(--different)";
const FAINT = "var(--rule)";

function histogram({ trials }: Evaluation): string {
  // By kind: the few trials of the same person would all lie in the last bar of the many of different people.
  const kinds = [true, false].map((same) =>
    Float64Array.from(
      trials.filter((trial) => trial.same === same),
      (trial) => trial.llr,
    ).sort(),
  );
  const low = Math.min(...kinds.map((scores) => quantileOf(scores, 0.002)));
  const high = Math.max(...kinds.map((scores) => quantileOf(scores, 0.998)));
  const bins = 50;
  const width = (high - low) / bins || 1;
  const names = ["same person", "different people"];
  const rows = kinds.flatMap((scores, kind) => {
    const counts = new Array<number>(bins).fill(0);
    for (const score of scores) counts[Math.min(bins - 1, Math.max(0, Math.floor((score - low) / width)))]! += 1;
    return counts.map((count, i) => ({
      kind: names[kind],
      from: low + i * width,
      to: low + (i + 1) * width,
      share: count / scores.length,
    }));
  });
  return svg("Scores", {
    x: { label: "log-likelihood ratio" },
    y: { label: "share of trials of its kind", grid: true },
    color: { legend: false, domain: names, range: [INK, OTHER] },
    marks: [Plot.rectY(rows, { x1: "from", x2: "to", y2: "share", y1: () => 0, fill: "kind", fillOpacity: 0.55 })],
  });
}

/** Ratio given by the engine against ratio found in the trials: a calibrated engine lies on the diagonal. */
function calibrationPlot({ trials }: Evaluation): string {
  const blocks = monotoneCalibration(sortedByRatio(trials)).filter((block) => Number.isFinite(block.llr));
  const limit = Math.max(
    4,
    ...blocks.flatMap((block) => [Math.abs(block.llr), Math.abs(block.lowest), Math.abs(block.highest)]),
  );
  const steps = blocks.flatMap((block) => [
    { score: block.lowest, best: block.llr },
    { score: block.highest, best: block.llr },
  ]);
  return svg("Calibration", {
    x: { label: "log-likelihood ratio given", domain: [-limit, limit], grid: true },
    y: { label: "log-likelihood ratio found", domain: [-limit, limit], grid: true },
    marks: [
      Plot.line(
        [-limit, limit].map((at) => [at, at]),
        { stroke: FAINT },
      ),
      Plot.line(steps, { x: "score", y: "best", stroke: INK, strokeWidth: 1.8 }),
    ],
  });
}

/** One image for screen readers; the tables have the numbers. */
function svg(name: string, options: Plot.PlotOptions): string {
  const { document } = parseHTML("<!doctype html><html><body></body></html>");
  const plot = Plot.plot({
    width: 420,
    height: 420,
    marginLeft: 55,
    ...options,
    document: document as unknown as Document,
  });
  for (const part of plot.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
  plot.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", name);
  return plot.outerHTML;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
