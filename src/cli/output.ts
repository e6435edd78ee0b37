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

/** A name of the contract, as a person says it. */
export const words = (name: string): string => phrases[name] ?? name.toLowerCase().replaceAll("_", " ");

const phrases: Readonly<Record<string, string>> = {
  NOT_TRAINED: "not trained yet",
  BASIC_TRAINED: "trained; more recordings make it better",
  OPTIMAL_TRAINED: "well trained",
  DAMAGED: "damaged: it cannot be opened",

  TRAIN_NOT_POSSIBLE: "not enough speech to train",
  TRAIN_POSSIBLE: "enough speech to train; more is better",
  TRAIN_SUGGESTED: "enough speech to train",
  FULL: "full: no recording can be added",
  INCONSISTENCY: "the recordings do not sound like one person",

  AUDIO_OK: "good",
  INVALID_AUDIO: "cannot be read",
  AUDIO_TOO_SHORT: "too little speech",
  TOO_SHORT: "too little speech",
  AUDIO_TOO_SOFT: "too soft",
  AUDIO_TOO_LOUD: "too loud",
  AUDIO_TOO_NOISY: "too noisy",
  MULTIPLE_SPEAKERS_DETECTED: "several speakers",
  MISSING_MODEL: "another model processed it",
  ALREADY_ADDED: "it was added before",
  WRONG_PRINT_TYPE: "it was processed for another print type",

  NOT_ENOUGH_SEGMENTS: "the enrollment is not finished",
  NO_SCORES: "no voiceprint to compare with",
  VOICEPRINT_MATCH: "the voice matches",
  VOICEPRINT_NO_MATCH: "the voice does not match",
  FRAUDSTER_INDICATION: "a known fraudster's voice",
  LOW_RELIABILITY: "too close to call",
};
