import Table from "cli-table3";

/** Prints the answer of a command: a table for people, or one JSON document for programs. */
export interface Output {
  readonly json: boolean;
  /** The whole answer; `human` is called only without --json. */
  answer(json: unknown, human: () => string): void;
  /** A remark for people, not part of the answer. */
  note(text: string): void;
}

export function createOutput(json = false): Output {
  return {
    json,
    answer(value, human) {
      process.stdout.write(json ? `${JSON.stringify(value, replaceBigints, 2)}\n` : `${human()}\n`);
    },
    note(text) {
      if (!json) process.stderr.write(`${text}\n`);
    },
  };
}

const replaceBigints = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);

export type Cell = string | number | null | undefined;

export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const plain = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
  for (const row of rows) plain.push(row.map((cell) => (cell === null || cell === undefined ? "–" : String(cell))));
  return plain.toString();
}

/** Two columns: name and value. */
export function facts(rows: readonly (readonly [string, Cell])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value ?? "–"}`).join("\n");
}

/** `AUDIO_VALIDITY_AUDIO_TOO_SHORT`, or the short name, as words. */
export function words(name: string): string {
  return name.toLowerCase().replaceAll("_", " ");
}
