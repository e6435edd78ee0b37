/**
 * Floats of the contract have 32 bits, JavaScript numbers 64. Responses are rounded first, so that JSON, gRPC and
 * in-process callers all get the same number. Every float of the contract may be absent, so it is a FloatValue.
 */
import type { DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";

type Round = (message: Record<string, unknown>) => void;

const rounders = new Map<DescMessage, Round | null>();

/** Rounds the message in place. */
export function inSinglePrecision<T extends DescMessage>(schema: T, message: MessageShape<T>): MessageShape<T> {
  rounderOf(schema)?.(message as Record<string, unknown>);
  return message;
}

/** `null` for messages that hold no float at any depth. */
function rounderOf(schema: DescMessage): Round | null {
  const known = rounders.get(schema);
  if (known !== undefined) return known;
  // No message of the contract contains itself. If one did, its inner floats would not be rounded.
  rounders.set(schema, null);
  const rounds = schema.fields.flatMap((field) => roundField(field) ?? []);
  const round: Round | null =
    rounds.length === 0
      ? null
      : (message) => {
          for (const one of rounds) one(message);
        };
  rounders.set(schema, round);
  return round;
}

function roundField(field: DescField): Round | null {
  const { localName, oneof } = field;
  const round = roundValue(field);
  if (!round) return null;
  return (message) => {
    const holder = oneof ? (message[oneof.localName] as { case?: string; value?: unknown }) : undefined;
    if (holder) {
      if (holder.case === localName) holder.value = round(holder.value);
    } else if (message[localName] !== undefined) message[localName] = round(message[localName]);
  };
}

function roundValue(field: DescField): ((value: unknown) => unknown) | null {
  if (field.fieldKind === "list" && field.message) {
    const inner = rounderOf(field.message);
    return inner && ((list) => (list as Record<string, unknown>[]).map((one) => roundInside(inner, one)));
  }
  if (field.fieldKind !== "message") return null;
  if (field.message.typeName === "google.protobuf.FloatValue") return (value) => Math.fround(value as number);
  const inner = rounderOf(field.message);
  return inner && ((value) => roundInside(inner, value as Record<string, unknown>));
}

function roundInside(round: Round, message: Record<string, unknown>): Record<string, unknown> {
  round(message);
  return message;
}
