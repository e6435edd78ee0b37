/**
 * Prepared statements for PGlite, whose own `query` parses and plans each statement again and takes several times as long.
 * A statement is prepared when it is first used; values travel as text, bytes as they are.
 */
import { type PGlite, protocol, types } from "@electric-sql/pglite";
import type { Row } from "./database.js";

type Convert = (text: string) => unknown;

interface Column {
  readonly name: string;
  readonly convert: Convert;
}

interface Statement {
  readonly name: string;
  readonly columns: readonly Column[];
}

type BackendMessage = Awaited<ReturnType<PGlite["execProtocol"]>>["messages"][number];

const { serialize } = protocol;
const EXECUTE_AND_SYNC = concat([serialize.execute({}), serialize.sync()]);

/** PostgreSQL's number for text[]; PGlite has no name for it. */
const TEXT_ARRAY = 1009;

const CONVERSIONS: Record<number, Convert> = {
  [types.BOOL]: (text) => text === "t",
  [types.BYTEA]: (text) => Buffer.from(text.slice(2), "hex"),
  [types.INT2]: Number,
  [types.INT4]: Number,
  [types.INT8]: Number,
  [types.FLOAT4]: Number,
  [types.FLOAT8]: Number,
  [TEXT_ARRAY]: readTextArray,
};
const asText: Convert = (text) => text;

/** Not safe for concurrent use: there is one session, and who uses it takes turns. */
export class PreparedSession {
  readonly #pglite: PGlite;
  readonly #statements = new Map<string, Statement>();

  constructor(pglite: PGlite) {
    this.#pglite = pglite;
  }

  async query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    const { name, columns } = this.#statements.get(text) ?? (await this.#prepare(text));
    const bind = serialize.bind({ statement: name, values: values.map(toWire) });
    const { messages } = await this.#pglite.execProtocol(concat([bind, EXECUTE_AND_SYNC]));
    const rows: T[] = [];
    for (const message of messages) if (isDataRow(message)) rows.push(readRow(columns, message.fields) as T);
    return rows;
  }

  async #prepare(text: string): Promise<Statement> {
    const name = `vivavoce_${this.#statements.size}`;
    const { messages } = await this.#pglite.execProtocol(
      concat([serialize.parse({ name, text }), serialize.describe({ type: "S", name }), serialize.sync()]),
    );
    const described = messages.find(isRowDescription);
    const columns = (described?.fields ?? []).map((field) => ({
      name: field.name,
      convert: CONVERSIONS[field.dataTypeID] ?? asText,
    }));
    const statement = { name, columns };
    this.#statements.set(text, statement);
    return statement;
  }
}

function isDataRow(message: BackendMessage): message is BackendMessage & { fields: (string | null)[] } {
  return message.name === "dataRow";
}

function isRowDescription(
  message: BackendMessage,
): message is BackendMessage & { fields: { name: string; dataTypeID: number }[] } {
  return message.name === "rowDescription";
}

function readRow(columns: readonly Column[], fields: readonly (string | null)[]): Row {
  const row: Row = {};
  for (const [i, { name, convert }] of columns.entries()) {
    const text = fields[i] ?? null;
    row[name] = text === null ? null : convert(text);
  }
  return row;
}

function toWire(value: unknown): string | ArrayBuffer | ArrayBufferView | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (typeof value === "boolean") return value ? "t" : "f";
  if (value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return writeTextArray(value);
  throw new TypeError(`a ${typeof value} is no value of a statement`);
}

function writeTextArray(values: readonly unknown[]): string {
  const quoted = values.map((value) => `"${String(value).replace(/["\\]/g, (char) => `\\${char}`)}"`);
  return `{${quoted.join(",")}}`;
}

function readTextArray(text: string): string[] {
  const elements = text.matchAll(/"((?:[^"\\]|\\.)*)"|([^,{}"]+)/gs);
  return Array.from(elements, ([, quoted, bare]) => quoted?.replace(/\\(.)/gs, "$1") ?? bare!);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
