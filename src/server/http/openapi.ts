import { type DescEnum, type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { mandatory } from "../../contract/gen/vendor/rpc/mandatory_pb.js";
import { WORDS } from "../../contract/gen/words.js";
import { METHODS, SERVICES } from "../../contract/operations.js";
import { type HttpBinding, httpBindings } from "./bindings.js";

type Schema = Record<string, unknown>;

/** The HTTP bindings as OpenAPI 3.1, generated from the contract's descriptors, so the two cannot differ. */
export function openApi(options: {
  readonly serverUrl: string;
  readonly version: string;
  readonly tokenUrl?: string;
}): Schema {
  const schemas: Record<string, Schema> = {};
  const paths: Record<string, Record<string, Schema>> = {};
  for (const binding of httpBindings(METHODS))
    paths[binding.path] = { ...paths[binding.path], [binding.verb.toLowerCase()]: operation(binding, schemas) };
  return {
    openapi: "3.1.0",
    info: {
      title: "VoiceprintsProcessor",
      version: options.version,
      description:
        "Voice biometrics: enroll, train, verify, identify, detect known fraudsters. Fields may also be named in snake_case.",
    },
    servers: [{ url: options.serverUrl }],
    tags: SERVICES.filter(({ methods }) => httpBindings(methods).length > 0).map(({ name, typeName }) =>
      described({ name }, WORDS[typeName]),
    ),
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas,
      securitySchemes: {
        bearer: options.tokenUrl
          ? {
              type: "oauth2",
              flows: { clientCredentials: { tokenUrl: options.tokenUrl, scopes: { bio: "voiceprint service" } } },
            }
          : { type: "http", scheme: "bearer", bearerFormat: "JWT" },
      },
    },
  };
}

const sentences = (words = "") => words.split(/(?<=[.?]) /).filter((sentence) => sentence !== "");

/** A schema with the contract's comment as its description. */
function described(schema: Schema, words: string | undefined): Schema {
  return words === undefined ? schema : { ...schema, description: words };
}

const fieldWords = (field: DescField) => WORDS[`${field.parent.typeName}.${field.name}`];

function operation(binding: HttpBinding, schemas: Record<string, Schema>): Schema {
  const { method, segments, body } = binding;
  const inPath = segments.flatMap((segment) => ("variable" in segment ? [segment.variable] : []));
  const parameters: Schema[] = inPath.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
  if (body !== "*") {
    const left = [...inPath, ...(body ? [body.field.name] : [])];
    parameters.push(...queryParameters(method.input, "", schemas).filter(({ name }) => !left.includes(name as string)));
  }
  const [summary, ...more] = sentences(WORDS[`${method.parent.typeName}.${method.name}`]);
  return {
    operationId: method.name,
    tags: [method.parent.name],
    ...(summary === undefined ? {} : { summary }),
    ...(more.length > 0 ? { description: more.join(" ") } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body === null ? {} : { requestBody: requestBody(binding, schemas) }),
    responses: {
      "200": content(
        reference(method.output, schemas),
        "The operation's response. A business outcome, such as a mismatch, is in its result.",
      ),
      default: content(reference(method.output, schemas), "An error: the response with only `status` set."),
    },
  };
}

const content = (schema: Schema, description: string): Schema => ({
  description,
  content: { "application/json": { schema } },
});

function requestBody({ method, segments, body }: HttpBinding, schemas: Record<string, Schema>): Schema {
  if (body === "*") {
    const inPath = segments.flatMap((segment) => ("variable" in segment ? [segment.variable.split(".")[0]!] : []));
    return { required: true, content: { "application/json": { schema: reference(method.input, schemas, inPath) } } };
  }
  const bytes = { schema: { type: "string", format: "binary" } };
  return { required: true, content: { "audio/wav": bytes, "application/octet-stream": bytes } };
}

/** The scalar fields of a message by their dotted names. Requests with lists have a body. */
function queryParameters(message: DescMessage, prefix: string, schemas: Record<string, Schema>): Schema[] {
  return message.fields.flatMap((field): Schema[] => {
    const name = prefix + field.name;
    if (field.fieldKind === "message" && !WELL_KNOWN[field.message.typeName])
      return queryParameters(field.message, `${name}.`, schemas);
    return [described({ name, in: "query", schema: fieldSchema(field, schemas) }, fieldWords(field))];
  });
}

/** Messages with a special JSON form. */
const WELL_KNOWN: Readonly<Record<string, Schema>> = {
  "google.protobuf.Duration": { type: "string", pattern: "^-?\\d+(\\.\\d{1,9})?s$", examples: ["3.500s"] },
  "google.protobuf.FloatValue": { type: "number", format: "float" },
  "google.protobuf.Int32Value": { type: "integer", format: "int32" },
  "google.protobuf.BoolValue": { type: "boolean" },
  "google.protobuf.StringValue": { type: "string" },
};

const SCALARS: Partial<Record<ScalarType, Schema>> = {
  [ScalarType.STRING]: { type: "string" },
  [ScalarType.BOOL]: { type: "boolean" },
  [ScalarType.INT32]: { type: "integer", format: "int32" },
  [ScalarType.UINT32]: { type: "integer", format: "uint32" },
  [ScalarType.INT64]: { type: "string", format: "int64" },
  [ScalarType.UINT64]: { type: "string", format: "uint64" },
  [ScalarType.FLOAT]: { type: "number", format: "float" },
  [ScalarType.DOUBLE]: { type: "number", format: "double" },
  [ScalarType.BYTES]: { type: "string", contentEncoding: "base64" },
};

/** The contract has no maps, and only lists of messages. */
function fieldSchema(field: DescField, schemas: Record<string, Schema>): Schema {
  if (field.fieldKind === "list") return { type: "array", items: messageSchema(field.message!, schemas) };
  if (field.message) return messageSchema(field.message, schemas);
  if (field.enum) return enumReference(field.enum, schemas);
  return SCALARS[field.scalar!]!;
}

const messageSchema = (message: DescMessage, schemas: Record<string, Schema>): Schema =>
  WELL_KNOWN[message.typeName] ?? reference(message, schemas);

const nameOf = (typeName: string) => typeName.replace(/^vendor\.(biosec\.v1\.)?/, "");

/** Without the fields of a request that are in its path. */
function reference(message: DescMessage, schemas: Record<string, Schema>, inPath: readonly string[] = []): Schema {
  const name = nameOf(message.typeName);
  if (!(name in schemas)) {
    const schema: Schema = described({ type: "object" }, WORDS[message.typeName]);
    schemas[name] = schema; // before its fields, so that a message may contain itself
    const fields = message.fields.filter((field) => !inPath.includes(field.name));
    const properties = fields.map((field) => [
      field.jsonName,
      described(fieldSchema(field, schemas), fieldWords(field)),
    ]);
    const required = fields.filter((field) => getOption(field, mandatory)).map((field) => field.jsonName);
    // The context lists all four fields as mandatory. Some operations need fewer and report what is missing.
    Object.assign(schema, { properties: Object.fromEntries(properties) });
    if (required.length > 0 && name !== "Context") schema.required = required;
  }
  return { $ref: `#/components/schemas/${name}` };
}

function enumReference(enumeration: DescEnum, schemas: Record<string, Schema>): Schema {
  const name = nameOf(enumeration.typeName);
  const said = enumeration.values.flatMap((value) => {
    const words = WORDS[`${enumeration.typeName}.${value.name}`];
    return words === undefined ? [] : `${value.name}: ${words}`;
  });
  const words = [WORDS[enumeration.typeName], ...said].filter((one) => one !== undefined);
  schemas[name] ??= described(
    { type: "string", enum: enumeration.values.map((value) => value.name) },
    words.length > 0 ? words.join(" ") : undefined,
  );
  return { $ref: `#/components/schemas/${name}` };
}
