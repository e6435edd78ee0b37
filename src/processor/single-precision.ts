/**
 * Floats of the contract have 32 bits, JavaScript numbers 64. Responses are rounded first, so that JSON, gRPC and
 * in-process callers all get the same number. Every float of the contract may be absent, so it is a FloatValue.
 */
import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";

/** Rounds the message in place. */
export function inSinglePrecision<T extends DescMessage>(schema: T, message: MessageShape<T>): MessageShape<T> {
  const values = message as Record<string, unknown>;
  for (const { localName, oneof, message: inner } of fieldsWithFloats(schema)) {
    const holder = oneof ? (values[oneof.localName] as Record<string, unknown>) : values;
    if (oneof && holder.case !== localName) continue;
    const key = oneof ? "value" : localName;
    const value = holder[key];
    if (typeof value === "number") holder[key] = Math.fround(value);
    else if (value !== undefined)
      for (const one of Array.isArray(value) ? value : [value]) inSinglePrecision(inner!, one);
  }
  return message;
}

const known = new Map<DescMessage, readonly DescField[]>();

/** The fields that hold floats, at any depth. No message of the contract contains itself. */
function fieldsWithFloats(schema: DescMessage): readonly DescField[] {
  const found =
    known.get(schema) ??
    schema.fields.filter(
      ({ message }) =>
        message && (message.typeName === "google.protobuf.FloatValue" || fieldsWithFloats(message).length > 0),
    );
  known.set(schema, found);
  return found;
}
