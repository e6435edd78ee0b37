/**
 * Prepared statements for PGlite, whose own `query` parses and plans each statement again and takes several times as long.
 * A statement is prepared when it is first used. Values travel as text, bytes as they are; rows come back in PostgreSQL's binary
 * format, because as text a recording would be twice as long and be converted twice.
 */
import { type PGlite, protocol, types } from "@electric-sql/pglite";
import type { Row } from "./database.js";

type Convert = (bytes: Buffer, start: number, end: number) => unknown;

interface Column {
  readonly name: string;
  readonly convert: Convert;
}

interface Statement {
  readonly name: string;
  readonly columns: readonly Column[];
}

const { serialize } = protocol;
const EXECUTE_AND_SYNC = concat([serialize.execute({}), serialize.sync()]);

const BINARY_FORMAT = Uint8Array.of(0, 1);

const DATA_ROW = "D".charCodeAt(0);
const ERROR = "E".charCodeAt(0);
/** Kind (one byte) and length (four, which count themselves). */
const HEADER_BYTES = 5;

/** PostgreSQL's numbers for text[] and for nothing; PGlite has no names for them. */
const TEXT_ARRAY = 1009;
const VOID = 2278;

const asText: Convert = (bytes, start, end) => bytes.toString("utf8", start, end);

const CONVERSIONS: Record<number, Convert> = {
  [types.BOOL]: (bytes, start) => bytes[start] === 1,
  [types.BYTEA]: (bytes, start, end) => bytes.subarray(start, end),
  [types.INT2]: (bytes, start) => bytes.readInt16BE(start),
  [types.INT4]: (bytes, start) => bytes.readInt32BE(start),
  [types.INT8]: (bytes, start) => Number(bytes.readBigInt64BE(start)),
  [types.FLOAT4]: (bytes, start) => bytes.readFloatBE(start),
  [types.FLOAT8]: (bytes, start) => bytes.readDoubleBE(start),
  [types.TEXT]: asText,
  [types.VARCHAR]: asText,
  [VOID]: () => null,
  [TEXT_ARRAY]: readTextArray,
};

/** Not safe for concurrent use: there is one session, and who uses it takes turns. */
export class PreparedSession {
  readonly #pglite: PGlite;
  readonly #statements = new Map<string, Statement>();

  constructor(pglite: PGlite) {
    this.#pglite = pglite;
  }

  async query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    const { name, columns } = this.#statements.get(text) ?? (await this.#prepare(text));
    const answer = await this.#send([bind(name, values), EXECUTE_AND_SYNC]);
    const rows: T[] = [];
    for (const { kind, start } of messagesIn(answer))
      if (kind === DATA_ROW) rows.push(readRow(columns, answer, start) as T);
    return rows;
  }

  async #prepare(text: string): Promise<Statement> {
    const name = `vivavoce_${this.#statements.size}`;
    const answer = await this.#send([
      serialize.parse({ name, text }),
      serialize.describe({ type: "S", name }),
      serialize.sync(),
    ]);
    const columns: Column[] = [];
    new protocol.Parser().parse(answer, (message) => {
      if (!isRowDescription(message)) return;
      for (const { name: column, dataTypeID } of message.fields) {
        const convert = CONVERSIONS[dataTypeID];
        if (!convert) throw new TypeError(`column ${column} is of type ${dataTypeID}, which the store does not read`);
        columns.push({ name: column, convert });
      }
    });
    const statement = { name, columns };
    this.#statements.set(text, statement);
    return statement;
  }

  /** The whole answer. Throws PostgreSQL's error where there is one. */
  async #send(messages: readonly Uint8Array[]): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    // What is handed over is a view of PGlite's own memory.
    await this.#pglite.execProtocolRawStream(concat(messages), {
      onRawData: (bytes) => void chunks.push(bytes.slice()),
    });
    const joined = chunks.length === 1 ? chunks[0]! : concat(chunks);
    const answer = Buffer.from(joined.buffer, joined.byteOffset, joined.length);
    for (const { kind } of messagesIn(answer)) if (kind === ERROR) throwErrorIn(answer);
    return answer;
  }
}

/** Where each message's content begins. */
function* messagesIn(answer: Buffer): Generator<{ kind: number; start: number }> {
  for (let at = 0; at < answer.length; at += 1 + answer.readInt32BE(at + 1))
    yield { kind: answer[at]!, start: at + HEADER_BYTES };
}

function throwErrorIn(answer: Buffer): never {
  let found: unknown;
  new protocol.Parser().parse(answer, (message) => {
    if (message instanceof Error) found ??= message;
  });
  throw found;
}

type BackendMessage = Parameters<Parameters<InstanceType<typeof protocol.Parser>["parse"]>[1]>[0];

function isRowDescription(
  message: BackendMessage,
): message is BackendMessage & { fields: { name: string; dataTypeID: number }[] } {
  return message.name === "rowDescription";
}

/** | fields, i16 | then for each: | length, i32, -1 for null | bytes | */
function readRow(columns: readonly Column[], bytes: Buffer, start: number): Row {
  const row: Row = {};
  let at = start + 2;
  for (const { name, convert } of columns) {
    const length = bytes.readInt32BE(at);
    at += 4;
    row[name] = length < 0 ? null : convert(bytes, at, at + length);
    at += Math.max(0, length);
  }
  return row;
}

/** | dimensions, i32 | has nulls, i32 | type, i32 | then for each dimension: size and lower bound, i32 each | elements as in a row | */
function readTextArray(bytes: Buffer, start: number): string[] {
  const elements: string[] = [];
  if (bytes.readInt32BE(start) === 0) return elements;
  const size = bytes.readInt32BE(start + 12);
  let at = start + 20;
  for (let i = 0; i < size; i++) {
    const length = bytes.readInt32BE(at);
    elements.push(bytes.toString("utf8", at + 4, at + 4 + length));
    at += 4 + length;
  }
  return elements;
}

/** PGlite's `bind` for binary results ends before the one format that it announces. */
function bind(statement: string, values: readonly unknown[]): Uint8Array {
  const message = concat([serialize.bind({ statement, values: values.map(toWire), binary: true }), BINARY_FORMAT]);
  new DataView(message.buffer).setInt32(1, message.length - 1);
  return message;
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

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
