/**
 * Prepared statements for PGlite. Its own `query` parses and plans each statement again, which takes several times as long.
 * A statement is prepared on first use. Values are sent as text, bytes unchanged; rows come back in PostgreSQL's binary
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
const EXECUTE_AND_SYNC = Buffer.concat([serialize.execute({}), serialize.sync()]);

const BIND = "B".charCodeAt(0);
const [TEXT_FORMAT, BINARY_FORMAT] = [0, 1];

const DATA_ROW = "D".charCodeAt(0);
const ERROR = "E".charCodeAt(0);
/** Kind (one byte) and length (four bytes, included in the length). */
const HEADER_BYTES = 5;

/** Replies up to this length share their memory. */
const MOST_KEPT_BYTES = 1 << 20;

/** PostgreSQL's type ids of text[] and void; PGlite has no names for them. */
const TEXT_ARRAY = 1009;
const VOID = 2278;

/** Of the types that our statements return. */
const CONVERSIONS: Record<number, Convert> = {
  [types.BOOL]: (bytes, start) => bytes[start] === 1,
  [types.BYTEA]: (bytes, start, end) => new Uint8Array(bytes.subarray(start, end)),
  [types.INT4]: (bytes, start) => bytes.readInt32BE(start),
  [types.INT8]: (bytes, start) => Number(bytes.readBigInt64BE(start)),
  [types.FLOAT8]: (bytes, start) => bytes.readDoubleBE(start),
  [types.TEXT]: (bytes, start, end) => bytes.toString("utf8", start, end),
  [VOID]: () => null,
  [TEXT_ARRAY]: readTextArray,
};

/** Not safe for concurrent use: there is one session, and callers take turns. */
export class PreparedSession {
  readonly #statements = new Map<string, Statement>();
  #received: Buffer = Buffer.alloc(0);

  constructor(private readonly pglite: PGlite) {}

  async query<T extends Row>(text: string, values: readonly unknown[] = []): Promise<T[]> {
    const { name, columns } = this.#statements.get(text) ?? (await this.#prepare(text));
    const answer = await this.#send(bindAndExecute(name, values));
    const rows: T[] = [];
    for (const { kind, start } of messagesIn(answer))
      if (kind === DATA_ROW) rows.push(readRow(columns, answer, start) as T);
    return rows;
  }

  async #prepare(text: string): Promise<Statement> {
    const name = `vivavoce_${this.#statements.size}`;
    const describe = [serialize.parse({ name, text }), serialize.describe({ type: "S", name }), serialize.sync()];
    const answer = await this.#send(Buffer.concat(describe));
    const columns: Column[] = [];
    new protocol.Parser().parse(answer, (message) => {
      if (message.name !== "rowDescription") return;
      for (const { name: column, dataTypeID } of (message as RowDescription).fields) {
        const convert = CONVERSIONS[dataTypeID];
        if (!convert) throw new TypeError(`column ${column} has the unsupported type ${dataTypeID}`);
        columns.push({ name: column, convert });
      }
    });
    const statement = { name, columns };
    this.#statements.set(text, statement);
    return statement;
  }

  /** The whole reply, valid until the next call. Throws PostgreSQL's error if there is one. */
  async #send(message: Uint8Array): Promise<Buffer> {
    let length = 0;
    await this.pglite.execProtocolRawStream(message, {
      // The data is a view of PGlite's own memory.
      onRawData: (bytes) => {
        this.#received = withRoomFor(this.#received, length, length + bytes.length);
        this.#received.set(bytes, length);
        length += bytes.length;
      },
      // Its files are real files: nothing needs to be synced to them.
      syncToFs: false,
    });
    const answer = this.#received.subarray(0, length);
    if (this.#received.length > MOST_KEPT_BYTES) this.#received = Buffer.alloc(0);
    for (const { kind } of messagesIn(answer)) if (kind === ERROR) throwErrorIn(answer);
    return answer;
  }
}

function withRoomFor(buffer: Buffer, used: number, needed: number): Buffer {
  if (needed <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, needed));
  larger.set(buffer.subarray(0, used));
  return larger;
}

/** Offset of each message's content. */
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
type RowDescription = BackendMessage & { readonly fields: { name: string; dataTypeID: number }[] };

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

/**
 * | B | length, i32 | portal "" | statement | values, i16 | format of each, i16 | values, i16 | each as in a row | 1, i16 | format of all columns, i16 |
 * followed by the message that executes it. PGlite's own writer copies a recording five times, and gets the last two fields wrong.
 */
function bindAndExecute(statement: string, values: readonly unknown[]): Buffer {
  const wire = values.map(toWire);
  const lengths = wire.map((value) => (typeof value === "string" ? Buffer.byteLength(value) : (value?.length ?? 0)));
  const length = lengths.reduce((sum, each) => sum + each, statement.length + 14 + 6 * wire.length);
  const message = Buffer.allocUnsafe(1 + length + EXECUTE_AND_SYNC.length);
  message[0] = BIND;
  let at = message.writeInt32BE(length, 1);
  at = message.writeInt8(0, at);
  at += message.write(`${statement}\0`, at, "latin1");
  at = message.writeInt16BE(wire.length, at);
  for (const value of wire) at = message.writeInt16BE(value instanceof Uint8Array ? BINARY_FORMAT : TEXT_FORMAT, at);
  at = message.writeInt16BE(wire.length, at);
  for (const [i, value] of wire.entries()) {
    at = message.writeInt32BE(value === null ? -1 : lengths[i]!, at);
    if (typeof value === "string") message.write(value, at, "utf8");
    else if (value) message.set(value, at);
    at += lengths[i]!;
  }
  at = message.writeInt16BE(1, at);
  at = message.writeInt16BE(BINARY_FORMAT, at);
  message.set(EXECUTE_AND_SYNC, at);
  return message;
}

function toWire(value: unknown): string | Uint8Array | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  if (typeof value === "boolean") return value ? "t" : "f";
  if (value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return writeTextArray(value);
  throw new TypeError(`a ${typeof value} cannot be a parameter of a statement`);
}

function writeTextArray(values: readonly unknown[]): string {
  const quoted = values.map((value) => `"${String(value).replace(/["\\]/g, (char) => `\\${char}`)}"`);
  return `{${quoted.join(",")}}`;
}
