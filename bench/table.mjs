/** Rows of measure.mjs as a table: what was measured, against which peer, whether its target was met. */
export function printTable(rows) {
  const shown = (ratio, unit) =>
    ratio === null ? "–" : `${ratio >= 100 ? ratio.toFixed(0) : ratio.toPrecision(3)}${unit}`;
  const table = rows.map(({ work, peer, ratio, unit, target, met, detail }) => [
    work,
    peer,
    shown(ratio, unit),
    target,
    met === null ? "" : met ? "met" : "NOT MET",
    detail,
  ]);
  const head = ["work", "peer", "measured", "target", "", "detail"];
  const widths = head.map((title, i) => Math.max(title.length, ...table.map((row) => row[i].length)));
  for (const row of [head, ...table])
    console.log(row.map((cell, i) => cell.padEnd(i === 5 ? 0 : widths[i])).join("  "));
}

/** The same as JSON, with the machine it was measured on. */
export async function printJson(rows, more = {}) {
  const { cpus } = await import("node:os");
  const machine = {
    node: process.version,
    cpu: cpus()[0]?.model ?? "",
    cores: cpus().length,
    date: new Date().toISOString(),
  };
  console.log(JSON.stringify({ machine, rows, ...more }, null, 2));
}
