/** Requests made from the contract's own descriptors, so that new operations are tested too. */

import { MAX } from "uuid";
import { METHODS } from "../../dist/contract/operations.js";
import { httpBindings } from "../../dist/server/http/bindings.js";

export const BINDINGS = httpBindings(METHODS);

/**
 * A request of this message as JSON with the contract's field names. `ids` gives an id for a field's name; every choice and every
 * optional field is set or left out at random.
 */
export function requestOf(desc, ids, random, depth = 0) {
  const json = {};
  const chosen = new Map(desc.oneofs.map((oneof) => [oneof, random.pick(oneof.fields)]));
  for (const field of desc.fields) {
    if (field.oneof && chosen.get(field.oneof) !== field) continue;
    const value = fieldValue(field, ids, random, depth);
    if (value !== undefined) json[field.name] = value;
  }
  return json;
}

function fieldValue(field, ids, random, depth) {
  if (field.fieldKind === "list" || field.fieldKind === "map") return undefined;
  if (field.fieldKind === "enum") return random.pick(field.enum.values).number;
  if (field.fieldKind === "message") {
    const { typeName } = field.message;
    if (typeName.endsWith(".UniqueId")) return { value: ids(field.name) };
    if (typeName.endsWith(".ListOfUniqueId")) return { unique_ids: [{ value: ids(field.name.replace(/s$/, "")) }] };
    if (typeName.endsWith(".UniqueIdAndTag")) return { unique_id: { value: ids(`${field.name}_id`) }, tag: "" };
    if (typeName.startsWith("google.protobuf.") || depth > 2) return undefined;
    return requestOf(field.message, ids, random, depth + 1);
  }
  switch (field.scalar) {
    case 8:
      return random.chance(0.5);
    case 9:
      if (field.name === "configset_id") return "ivr-text-dependent";
      // Has the form of an id: a name would be refused in any case. After all ids, so that two requests of a kind get the same page.
      return field.name === "page_token" ? MAX : ids(field.name);
    case 12:
      return Buffer.from("RIFF").toString("base64");
    default:
      return 1;
  }
}

/** The request in the form of one of its HTTP bindings. */
export function httpRequestOf(binding, json) {
  const rest = structuredClone(json);
  const path = binding.segments
    .map((segment) => {
      if ("literal" in segment) return segment.literal;
      const names = segment.variable.split(".");
      const value = names.reduce((at, name) => at?.[name], rest) ?? "none";
      delete rest[names[0]];
      return encodeURIComponent(value);
    })
    .join("/");
  if (binding.body === "*")
    return { verb: binding.verb, path: `/${path}`, type: "application/json", body: JSON.stringify(rest) };
  const bytes = binding.body ? Buffer.from("RIFF") : undefined;
  if (binding.body) delete rest[binding.body.field.name];
  const query = new URLSearchParams(flattened(rest)).toString();
  return { verb: binding.verb, path: `/${path}?${query}`, type: "application/octet-stream", body: bytes };
}

function flattened(json, prefix = "") {
  return Object.entries(json).flatMap(([name, value]) => {
    if (typeof value !== "object") return [[`${prefix}${name}`, String(value)]];
    if (Array.isArray(value)) return [];
    return flattened(value, `${prefix}${name}.`);
  });
}
