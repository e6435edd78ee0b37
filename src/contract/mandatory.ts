/**
 * Validates requests against the contract: mandatory fields, choices and context, and the form of ids. Whether an id
 * exists is checked by the operation.
 */
import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  hasOption,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { ContextSchema, UniqueIdSchema } from "./gen/vendor/biosec/v1/common_pb.js";
import { context_needs, mandatory, mandatory_choice } from "./gen/vendor/rpc/mandatory_pb.js";
import { type FieldViolation, FieldViolationSchema } from "./gen/vendor/rpc/status_pb.js";

/** As the box writes it. Stores compare ids as text, so one in capitals would not be found. */
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** The operator chooses the names of scopes, so nearly every character is allowed. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it rejects control characters
export const scopeName = /^[^\u0000-\u001f\u007f]{1,128}$/;

export const isUuid = (text: string): boolean => uuid.test(text);

/** More would make the response many times longer than the request. */
const MOST_VIOLATIONS = 20;
/** Maximum number of ids in one list: far more than the recommended 100, but few enough for one lookup. */
export const MOST_IDS = 10_000;

export function fieldViolations(schema: DescMessage, message: Message): FieldViolation[] {
  const violations: FieldViolation[] = [];
  walk(reflect(schema, message), "", violations);
  return violations;
}

export const fieldViolation = (field: string, violation: string, message: string): FieldViolation =>
  create(FieldViolationSchema, { field, violation, message });

/** What the contract declares about a message. Read once, because reading an option costs more than checking it. */
interface Declared {
  /** The mandatory choices. */
  readonly choices: readonly DescOneof[];
  readonly fields: ReadonlySet<DescField>;
  /** The context fields that a request needs; `undefined` means all. */
  readonly contextNeeds: readonly string[] | undefined;
}

const declared = new WeakMap<DescMessage, Declared>();

function declaredOf(message: DescMessage): Declared {
  let found = declared.get(message);
  if (!found) {
    found = {
      choices: message.oneofs.filter((oneof) => hasOption(oneof, mandatory_choice)),
      fields: new Set(message.fields.filter((field) => hasOption(field, mandatory))),
      contextNeeds: hasOption(message, context_needs) ? getOption(message, context_needs) : undefined,
    };
    declared.set(message, found);
  }
  return found;
}

function walk(message: ReflectMessage, path: string, violations: FieldViolation[], needed?: readonly string[]): void {
  const { choices, fields, contextNeeds } = declaredOf(message.desc);
  for (const oneof of choices) {
    const choice = message.oneofCase(oneof);
    if (choice !== undefined && !isEmpty(message, choice)) continue;
    const names = oneof.fields.map((field) => field.name).join(" or ");
    violations.push(fieldViolation(`${path}${oneof.name}`, "missing", `exactly one of ${names} must be set`));
  }
  for (const field of message.desc.fields) {
    const fieldPath = `${path}${field.name}`;
    const isMandatory = fields.has(field) && (needed === undefined || needed.includes(field.name));
    if (isEmpty(message, field)) {
      if (isMandatory) violations.push(fieldViolation(fieldPath, "missing", `${fieldPath} is mandatory`));
      continue;
    }
    if (field.fieldKind === "scalar" || field.fieldKind === "enum") {
      checkType(message, field, fieldPath, violations);
    } else if (field.fieldKind === "message") {
      const inner = message.get(field) as ReflectMessage;
      if (!isWrapperDesc(field.message) && !isMessageOf(field.message, rawValue(message, field)))
        violations.push(notThisMessage(fieldPath, field.message, rawValue(message, field)));
      else if (field.message.typeName === UniqueIdSchema.typeName) checkForm(inner, field, fieldPath, violations);
      else if (isWrapperDesc(field.message)) checkType(inner, field.message.fields[0], fieldPath, violations);
      else walk(inner, `${fieldPath}.`, violations, isContext(field.message) ? contextNeeds : undefined);
    } else if (field.fieldKind === "list" && field.listKind === "message") {
      let i = 0;
      const items = message.get(field) as Iterable<ReflectMessage> & { readonly size: number };
      if (items.size > MOST_IDS) {
        const problem = `${fieldPath} must have at most ${MOST_IDS} entries, got ${items.size}`;
        violations.push(fieldViolation(fieldPath, "too_many", problem));
        continue;
      }
      for (const inner of items) {
        if (violations.length >= MOST_VIOLATIONS) return;
        const itemPath = `${fieldPath}[${i++}]`;
        if (inner.desc.typeName === UniqueIdSchema.typeName) checkForm(inner, field, itemPath, violations);
        else if (!isMessageOf(inner.desc, inner.message))
          violations.push(notThisMessage(itemPath, inner.desc, inner.message));
        else walk(inner, `${itemPath}.`, violations);
      }
    }
  }
}

/** As the caller gave it: the reflection shows an empty message in place of `null`. */
function rawValue({ message }: ReflectMessage, field: DescField): unknown {
  const values = message as unknown as Record<string, unknown>;
  if (!field.oneof) return values[field.localName];
  return (values[field.oneof.localName] as { readonly value?: unknown }).value;
}

/** Every object has become a message by now. */
const isMessageOf = (wanted: DescMessage, value: unknown): boolean =>
  (value as Partial<Message> | null | undefined)?.$typeName === wanted.typeName;

const notThisMessage = (path: string, wanted: DescMessage, value: unknown): FieldViolation =>
  fieldViolation(path, "malformed", `${path} must be a ${wanted.name}, got ${shown(value)}`);

function shown(value: unknown): string {
  if (value === null || typeof value === "number") return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function checkType(message: ReflectMessage, field: DescField, path: string, violations: FieldViolation[]): void {
  const wanted = (field.fieldKind === "scalar" && scalarTypes[field.scalar]) || "whole number";
  const value: unknown = message.get(field);
  if (isOfType(value, wanted)) return;
  violations.push(fieldViolation(path, "malformed", `${path} must be a ${wanted}, got ${shown(value)}`));
}

type ScalarName = "string" | "boolean" | "Uint8Array" | "bigint" | "number" | "whole number";

/** Plain JavaScript callers may pass a wrong type, because TypeScript does not check their code. All others are whole numbers. */
const scalarTypes: Readonly<Partial<Record<ScalarType, ScalarName>>> = {
  [ScalarType.STRING]: "string",
  [ScalarType.BOOL]: "boolean",
  [ScalarType.BYTES]: "Uint8Array",
  [ScalarType.INT64]: "bigint",
  [ScalarType.UINT64]: "bigint",
  [ScalarType.SINT64]: "bigint",
  [ScalarType.FIXED64]: "bigint",
  [ScalarType.SFIXED64]: "bigint",
  [ScalarType.FLOAT]: "number",
  [ScalarType.DOUBLE]: "number",
};

function isOfType(value: unknown, wanted: ScalarName): boolean {
  if (wanted === "Uint8Array") return value instanceof Uint8Array;
  if (wanted === "whole number") return Number.isInteger(value);
  return typeof value === wanted;
}

/** An id without a value, a list without ids and an empty string count as missing. */
function isEmpty(message: ReflectMessage, field: DescField): boolean {
  if (!message.isSet(field)) return true;
  if (field.fieldKind === "scalar") return message.get(field) === "";
  if (field.fieldKind !== "message" || field.message.typeName !== UniqueIdSchema.typeName) return false;
  return idValue(message.get(field) as ReflectMessage) === "";
}

const idValue = (id: ReflectMessage): string => (id.message as unknown as { value: string }).value;

function checkForm(id: ReflectMessage, field: DescField, path: string, violations: FieldViolation[]): void {
  const value = idValue(id);
  const isScope = field.name === "gk_scope_id";
  if ((isScope ? scopeName : uuid).test(value)) return;
  const wanted = isScope ? "1 to 128 characters without control characters" : "a UUID in lower case";
  const got = JSON.stringify(String(value).slice(0, 40));
  violations.push(
    value === ""
      ? fieldViolation(path, "missing", `${path} is empty; expected ${wanted}`)
      : fieldViolation(path, "malformed", `${path} must be ${wanted}, got ${got}`),
  );
}

const isContext = (message: DescMessage): boolean => message.typeName === ContextSchema.typeName;
