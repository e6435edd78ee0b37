import { createRegistry, type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { http } from "../../src/contract/gen/google/api/annotations_pb.js";
import { file_vendor_biosec_v1_audio_attacks } from "../../src/contract/gen/vendor/biosec/v1/audio/attacks_pb.js";
import { file_vendor_biosec_v1_common } from "../../src/contract/gen/vendor/biosec/v1/common_pb.js";
import { file_vendor_biosec_v1_engagements } from "../../src/contract/gen/vendor/biosec/v1/engagements_pb.js";
import { file_vendor_biosec_v1_groups } from "../../src/contract/gen/vendor/biosec/v1/groups_pb.js";
import { file_vendor_biosec_v1_media } from "../../src/contract/gen/vendor/biosec/v1/media_pb.js";
import { file_vendor_biosec_v1_profiles } from "../../src/contract/gen/vendor/biosec/v1/profiles_pb.js";
import { file_vendor_biosec_v1_sessions } from "../../src/contract/gen/vendor/biosec/v1/sessions_pb.js";
import { file_vendor_biosec_v1_voiceprints } from "../../src/contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { context_needs, mandatory, mandatory_choice } from "../../src/contract/gen/vendor/rpc/mandatory_pb.js";
import { file_vendor_rpc_status } from "../../src/contract/gen/vendor/rpc/status_pb.js";
import { StatusCode, StatusError } from "../../src/contract/index.js";
import { transportCodes } from "../../src/contract/status-codes.js";
import { bindings, choices, enumerations, mandatoryFields, messages } from "./specification.js";

const registry = createRegistry(
  file_vendor_biosec_v1_audio_attacks,
  file_vendor_biosec_v1_common,
  file_vendor_biosec_v1_engagements,
  file_vendor_biosec_v1_groups,
  file_vendor_biosec_v1_media,
  file_vendor_biosec_v1_profiles,
  file_vendor_biosec_v1_sessions,
  file_vendor_biosec_v1_voiceprints,
  file_vendor_rpc_status,
);

const wrappers: Record<string, string> = {
  "google.protobuf.FloatValue": "?Float",
  "google.protobuf.Int32Value": "?Int32",
  "google.protobuf.BoolValue": "?Bool",
  "google.protobuf.Duration": "Duration",
};

const short = (typeName: string) =>
  wrappers[typeName] ?? typeName.replace(/^vendor\.biosec\.v1\./, "").replace(/^vendor\./, "");

function typeOf(field: DescField): string {
  const scalars: Record<number, string> = { 5: "int32", 8: "bool", 9: "string" };
  if (field.fieldKind === "list") return `*${short(field.message?.typeName ?? field.enum?.typeName ?? "")}`;
  if (field.fieldKind === "message") return short(field.message.typeName);
  if (field.fieldKind === "enum") return short(field.enum.typeName);
  return field.fieldKind === "scalar" ? (scalars[field.scalar] ?? `scalar ${field.scalar}`) : field.fieldKind;
}

describe("messages", () => {
  test.each(Object.keys(messages))("%s", (name) => {
    const message = registry.getMessage(name) as DescMessage;
    const fields = Object.fromEntries(message.fields.map((field) => [field.name, [field.number, typeOf(field)]]));
    expect(fields).toEqual(messages[name]);
  });

  test.each(Object.keys(choices))("the choices of %s", (name) => {
    const message = registry.getMessage(name) as DescMessage;
    const found = Object.fromEntries(
      message.oneofs.map((oneof) => [oneof.name, oneof.fields.map((field) => field.name)]),
    );
    expect(found).toEqual(choices[name]);
    for (const oneof of message.oneofs) expect(hasOption(oneof, mandatory_choice)).toBe(oneof.name !== "score");
  });

  test("every choice in the messages of the specification is in the tables", () => {
    const withChoices = Object.keys(messages).filter((name) => registry.getMessage(name)!.oneofs.length > 0);
    expect(withChoices.sort()).toEqual(Object.keys(choices).sort());
  });

  test.each(Object.keys(messages))("the mandatory fields of %s", (name) => {
    const message = registry.getMessage(name) as DescMessage;
    const found = message.fields.filter((field) => hasOption(field, mandatory)).map((field) => field.name);
    expect(found).toEqual(mandatoryFields[name] ?? []);
  });
});

test.each(Object.keys(enumerations))("%s", (name) => {
  const found = registry.getEnum(name)!.values.map((value) => [value.name, value.number]);
  expect(Object.fromEntries(found)).toEqual(enumerations[name]);
});

describe("operations", () => {
  test.each(
    Object.entries(bindings).flatMap(([service, methods]) =>
      Object.entries(methods).map((m) => [service, ...m] as const),
    ),
  )("%s.%s is %s", (service, name, binding) => {
    const method = registry.getService(`vendor.biosec.v1.${service}`)!.methods.find((one) => one.name === name)!;
    const rule = getOption(method, http);
    expect(`${rule.pattern.case} ${String(rule.pattern.value)}`).toBe(binding);
    if (service === "VoiceprintsProcessor") {
      expect(method.input.typeName).toBe(`vendor.biosec.v1.${name}Request`);
      expect(method.output.typeName).toBe(`vendor.biosec.v1.${name}Response`);
    }
    expect(method.input.fields[0]!.name).toBe("context");
    expect(hasOption(method.input.fields[0]!, mandatory)).toBe(true);
    expect(method.output.fields[0]).toMatchObject({ name: "status", number: 1 });
    // Path variables must name existing fields.
    for (const [, path] of binding.matchAll(/\{([^}]+)\}/g)) {
      const [field, value] = path!.split(".");
      const id = method.input.fields.find((one) => one.name === field)!;
      expect(id.message!.fields.map((one) => one.name)).toContain(value);
    }
  });

  test("the nine operations need the whole context, StartEngagement only the scope", () => {
    for (const method of registry.getService("vendor.biosec.v1.VoiceprintsProcessor")!.methods)
      expect(hasOption(method.input, context_needs)).toBe(false);
    const start = registry.getMessage("vendor.biosec.v1.StartEngagementRequest")!;
    expect(getOption(start, context_needs)).toEqual(["gk_scope_id"]);
  });

  test("AddMediaSegment is a client stream", () => {
    const media = registry.getService("vendor.biosec.v1.MediaProcessor")!;
    expect(media.methods[0]!.methodKind).toBe("client_streaming");
  });
});

/** In the notation of the tables. */
const transports: Record<string, readonly [http: number, grpc: number]> = {
  OK: [200, 0],
  BAD_REQUEST: [400, 3],
  INVALID_REQUEST: [400, 3],
  CANCELLED: [499, 1],
  DEADLINE_EXCEEDED: [504, 4],
  NOT_AUTHORIZED: [401, 16],
  PERMISSION_DENIED: [403, 7],
  NOT_FOUND: [404, 5],
  ALREADY_EXISTS: [409, 6],
  NOT_IMPLEMENTED: [501, 12],
  TOO_LARGE: [413, 8],
  BUSY: [503, 14],
  OBSOLETE: [410, 9],
  RATE_EXCEEDED: [429, 8],
  QUOTA_EXCEEDED: [429, 8],
  INTERNAL_ERROR: [500, 13],
};

test.each(Object.entries(transports))("status %s", (name, [status, grpc]) => {
  expect(transportCodes(StatusCode[name as keyof typeof StatusCode])).toEqual({ http: status, grpc });
});

test("a StatusError can be logged as JSON, also with a time to retry", () => {
  const status = { statusCode: StatusCode.BUSY, message: "try again", retryAfter: { seconds: 2n } };
  expect(JSON.parse(JSON.stringify(new StatusError(status)))).toEqual({
    name: "StatusError",
    message: "try again",
    status: { statusCode: "BUSY", message: "try again", retryAfter: "2s" },
  });
});
