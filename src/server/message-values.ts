/**
 * Bounds the number of values in a message before it is decoded: four megabytes have room for two million empty
 * values, and decoding them would stop the box for many seconds.
 */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { badRequest, Refusal } from "./refusal.js";

/** The longest list of the contract, 10,000 ids, has 20,000 in both encodings. */
const MOST_VALUES = 25_000;

const tooMany = () => badRequest(`the message has more than ${MOST_VALUES} values; send a shorter list`);

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = Buffer.from('"\\,[{');

/** Each value but the first of an object or array follows a comma. Text that is not JSON is refused later. */
export function boundJson(text: Uint8Array): void {
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const byte = text[i];
    if (byte === QUOTE) {
      for (i++; i < text.length && text[i] !== QUOTE; i++) if (text[i] === BACKSLASH) i++;
    } else if ((byte === COMMA || byte === BRACKET || byte === BRACE) && ++values > MOST_VALUES) throw tooMany();
  }
}

/** Follows the decoder. What is malformed is left to it: it stops at the same byte. */
export function boundBinary(schema: DescMessage, bytes: Uint8Array): void {
  const reader = new BinaryReader(bytes);
  let values = 0;
  const walk = (message: DescMessage, end: number): void => {
    while (reader.pos < end && reader.pos < bytes.length) {
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
