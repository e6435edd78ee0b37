import {
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { invalid } from "../../contract/refusal.js";
import { badRequest } from "../refusal.js";

/**
 * Reads a JSON object with camelCase names or the contract's own names, and enum values by name or number. `complete`
 * adds what is given elsewhere.
 */
export function messageFromJson(
  schema: DescMessage,
  json: JsonObject,
  complete: (given: JsonObject) => void = () => {},
): Message {
  const given = withoutNulls(schema, json);
  complete(given);
  try {
    return fromJson(schema, given);
  } catch (error) {
    const fault = faultIn(schema, given);
    if (fault) throw badRequest(`${fault.field}: ${fault.why}`, fault.field);
    throw badRequest(readable(error));
  }
}

/** A null field is absent. `fromJson` takes a null member of a choice for one that is set, so it is left out here. */
function withoutNulls(schema: DescMessage, json: JsonObject): JsonObject {
  const kept = Object.entries(json).flatMap(([key, value]): [string, JsonValue][] => {
    const field = fieldOf(schema, key);
    if (value === null && field) return [];
    const inner = field?.message;
    if (inner && isObject(value)) return [[key, withoutNulls(inner, value)]];
    if (inner && Array.isArray(value))
      return [[key, value.map((one) => (isObject(one) ? withoutNulls(inner, one) : one))]];
    return [[key, value]];
  });
  return Object.fromEntries(kept);
}

interface Fault {
  /** The full path to the field, in the contract's names: `context.gk_scope_id.value`, `unique_ids[2]`. */
  readonly field: string;
  readonly why: string;
}

/** The first field of a JSON object that does not fit its message. */
function faultIn(schema: DescMessage, json: JsonObject, outer = ""): Fault | null {
  const given = new Map<DescField | DescOneof, string>();
  for (const key of Object.keys(json)) {
    const value = json[key]!;
    const found = fieldOf(schema, key);
    if (!found) return { field: `${outer}${key}`, why: "unknown field" };
    const other = given.get(found);
    if (other) return { field: `${outer}${found.name}`, why: `given twice, as ${other} and ${key}` };
    const chosen = found.oneof && given.get(found.oneof);
    if (chosen) return { field: `${outer}${found.oneof.name}`, why: `only one of ${chosen} and ${key} may be set` };
    given.set(found, key);
    if (found.oneof) given.set(found.oneof, key);
    // Decoding a long list at every level on the way to its fault would take several times as long. Only a message with a
    // oneof can be wrong although all its fields fit.
    if (found.message?.oneofs.length === 0 && hasItsShape(found, value)) {
      const fault = innerFault(found, value, `${outer}${found.name}`);
      if (fault) return fault;
      continue;
    }
    try {
      fromJson(schema, { [key]: value });
    } catch (error) {
      const field = `${outer}${found.name}`;
      const why = enumFault(found, value) ?? shapeFault(found, value) ?? readable(error);
      return innerFault(found, value, field) ?? { field, why };
    }
  }
  return null;
}

function innerFault(field: DescField, value: JsonValue | undefined, path: string): Fault | null {
  const inner = field.message;
  if (!inner || isBare(inner)) return null;
  if (field.fieldKind === "list" && Array.isArray(value)) {
    for (const [i, element] of value.entries()) {
      const fault = isObject(element) ? faultIn(inner, element, `${path}[${i}].`) : null;
      if (fault) return fault;
    }
    return null;
  }
  return isObject(value) ? faultIn(inner, value, `${path}.`) : null;
}

/** Whether a field of messages has an object, or a list of objects, to look into. */
function hasItsShape(field: DescField, value: JsonValue): boolean {
  if (isBare(field.message!)) return false;
  if (field.fieldKind === "list") return Array.isArray(value) && value.every(isObject);
  return field.fieldKind === "message" && isObject(value);
}

export const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a message, or one in a list, is something other than an object; `null` if not. */
function shapeFault(field: DescField, value: JsonValue): string | null {
  if (!field.message || isBare(field.message)) return null;
  const example = `{${field.message.fields.length > 0 ? `"${field.message.fields[0]!.name}": …` : ""}}`;
  const wanted = field.fieldKind === "list" ? `a list of objects such as ${example}` : `an object such as ${example}`;
  return hasItsShape(field, value) ? null : `expected ${wanted}, got ${JSON.stringify(value).slice(0, 100)}`;
}

/** The names that a field takes; `null` if it is not an enumeration. */
function enumFault(field: DescField, value: JsonValue): string | null {
  if (field.fieldKind !== "enum") return null;
  const names = field.enum.values.filter(({ number }) => number !== 0).map(({ name }) => name);
  return `expected ${names.join(", ")} or its number, got ${JSON.stringify(value).slice(0, 100)}`;
}

/** Shortens `cannot decode field vendor.biosec.v1.Context.gk_scope_id from JSON: …` to the part that helps a caller. */
function readable(error: unknown): string {
  return (error as Error).message.replace(/^cannot decode (?:message|field) [\w.]+ from JSON:? ?/, "");
}

/** Finds a field by the contract's name or its JSON name. */
function fieldOf(message: DescMessage, name: string): DescField | undefined {
  return message.fields.find((field) => field.name === name || field.jsonName === name);
}

/** The fields that `context.gk_scope_id.value` names, from the outermost message to the innermost. */
function pathTo(schema: DescMessage, dotted: string): DescField[] | null {
  const path: DescField[] = [];
  let message: DescMessage | null = schema;
  for (const name of dotted.split(".")) {
    const field: DescField | undefined = message ? fieldOf(message, name) : undefined;
    if (!field) return null;
    path.push(field);
    message = field.message ?? null;
  }
  return path;
}

/** Messages that JSON writes as a bare scalar. */
const BARE = /^google\.protobuf\.(?:\w+Value|Duration|Timestamp|FieldMask)$/;
const isBare = (message: DescMessage) => BARE.test(message.typeName);

/** Sets the field with this dotted name to the text of a path variable or query parameter. */
export function placeText(json: JsonObject, schema: DescMessage, dotted: string, texts: readonly string[]): void {
  const path = pathTo(schema, dotted);
  if (!path) throw invalid(dotted, "unknown", `the request has no field ${dotted}`);
  const field = path.at(-1)!;
  if (field.message)
    throw invalid(
      dotted,
      "malformed",
      `${dotted} is a message: name one of its fields, such as ${dotted}.${field.message.fields[0]!.name}`,
    );
  let at = json;
  for (const outer of path.slice(0, -1)) {
    // `…unique_ids.value=a&…unique_ids.value=b`: a list of messages, each with this one field.
    if (outer.fieldKind === "list") {
      at[outer.name] = texts.map((text) => ({ [field.name]: scalarJson(field, text) }));
      return;
    }
    const existing = at[outer.name] ?? at[outer.jsonName] ?? null;
    // Of the wrong type, in the body: it stays, so that `messageFromJson` refuses it by name.
    if (existing !== null && !isObject(existing)) return;
    const inner = existing ?? {};
    if (existing === null) at[outer.name] = inner;
    at = inner;
  }
  if (texts.length > 1) throw invalid(dotted, "malformed", `${dotted} must be given once, got ${texts.length} values`);
  at[field.name] = scalarJson(field, texts[0]!);
}

/**
 * Text from a URL as the JSON value that its field expects; numbers may be text in JSON. `fromJson` refuses whatever does
 * not fit.
 */
const scalarJson = (field: DescField, text: string): JsonValue =>
  field.enum && /^-?\d+$/.test(text) ? Number(text) : text;

/**
 * The value of a dotted name in a JSON object, in either spelling; used to find contradictions between path and body.
 */
export function textAt(json: JsonObject, schema: DescMessage, dotted: string): JsonValue | undefined {
  const path = pathTo(schema, dotted);
  if (!path) return undefined;
  let at: JsonValue | undefined = json;
  for (const field of path) {
    if (!isObject(at)) return undefined;
    at = at[field.name] ?? at[field.jsonName];
  }
  return at;
}
