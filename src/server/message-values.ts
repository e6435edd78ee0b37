/**
 * Bounds the number of values in a message before it is decoded: four megabytes have room for two million empty
 * values, and decoding them would stop the box for many seconds. JSON must not name a field twice.
 */
import { toUSVString } from "node:util";
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, configureTextEncoding, getTextEncoding, WireType } from "@bufbuild/protobuf/wire";
import { badRequest, Refusal } from "./refusal.js";

// The decoder's own check encodes every text of a message again, which takes as long as reading the message.
configureTextEncoding({ ...getTextEncoding(), checkUtf8: (text) => toUSVString(text) === text });

/** The longest list of the contract, 10,000 ids, has 20,000 in both encodings. */
const MOST_VALUES = 25_000;

const tooMany = () => badRequest(`the message has more than ${MOST_VALUES} values; send a shorter list`);

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACE, END_BRACE] = Buffer.from('"\\,:[{}');

/**
 * Each value but the first of an object or array follows a comma. The parser would take the last of two fields of the same name, and a proxy
 * in front of the box perhaps the first. Text that is not JSON is refused later.
 */
export function boundJson(bytes: Uint8Array): void {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  /** The names in each open object. */
  const objects: Set<string>[] = [];
  let values = 1;
  let string = 0;
  let stringEnd = 0;
  for (let i = 0; i < text.length; i++) {
    const byte = text[i];
    if (byte === QUOTE) {
      string = i;
      i = stringEnd = endOfString(text, i + 1);
    } else if (byte === COLON && stringEnd > string) {
      addName(objects.at(-1), text.toString("utf8", string, stringEnd + 1));
      // Many colons must not read a long string many times.
      stringEnd = string;
    } else if (byte === END_BRACE) objects.pop();
    else if (byte === COMMA || byte === BRACKET || byte === BRACE) {
      if (++values > MOST_VALUES) throw tooMany();
      if (byte === BRACE) objects.push(new Set());
    }
  }
}

function addName(names: Set<string> | undefined, quoted: string): void {
  // The same name can be written with other escapes.
  const name = quoted.includes("\\") ? decoded(quoted) : quoted.slice(1, -1);
  if (names?.has(name)) throw badRequest(`${name.slice(0, 100)}: given twice`, name.slice(0, 100));
  names?.add(name);
}

function decoded(quoted: string): string {
  try {
    return JSON.parse(quoted);
  } catch {
    return quoted;
  }
}

/** So many bytes without an escape are worth a call of the native search. */
const WORTH_SEARCHING = 64;

/** Where the string that begins at `from` has its closing quote. */
function endOfString(text: Buffer, from: number): number {
  let unescaped = from;
  // Sought again only when it is passed: a long string may have many escapes.
  let quote = -1;
  for (let i = from; i < text.length; i++) {
    const byte = text[i];
    if (byte === QUOTE) return i;
    if (byte === BACKSLASH) unescaped = ++i + 1;
    else if (i - unescaped === WORTH_SEARCHING) {
      if (quote < i) quote = text.indexOf(QUOTE!, i);
      if (quote === -1) return text.length;
      const slash = text.subarray(i, quote).indexOf(BACKSLASH!);
      i = (slash === -1 ? quote : i + slash) - 1;
      unescaped = i + 1;
    }
  }
  return text.length;
}

/** Follows the decoder. What is malformed is left to it: it stops at the same byte. */
export function boundBinary(schema: DescMessage, bytes: Uint8Array): void {
  const reader = new BinaryReader(bytes);
  let values = 0;
  const walk = (message: DescMessage, end: number): void => {
    while (reader.pos < end) {
      const [number, wireType] = reader.tag();
      const field = message.fields.find((one) => one.number === number);
      // The decoder goes by the declared type, whatever the tag says. Groups are not part of proto3.
      if (wireType === WireType.StartGroup || (field && wireType !== wireTypeOf(field)))
        throw badRequest(`field ${number} of ${message.name} has the wrong wire type`);
      if (++values > MOST_VALUES) throw tooMany();
      if (field?.message) walk(field.message, reader.uint32() + reader.pos);
      else reader.skip(wireType, number);
    }
  };
  try {
    walk(schema, bytes.length);
  } catch (error) {
    if (error instanceof Refusal) throw error;
  }
}

/** The contract's requests have no maps and no lists of scalars. */
function wireTypeOf({ message, scalar }: DescField): WireType {
  if (message) return WireType.LengthDelimited;
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}
