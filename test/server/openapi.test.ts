import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { openApi } from "../../src/server/http/openapi.js";
import { rehearse } from "./rehearsal.js";

const PROTO = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "proto", "vendor");
const sources = readdirSync(PROTO, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".proto"))
  .map((name) => readFileSync(join(PROTO, name), "utf8").replace(/\/\/.*$/gm, ""))
  .join("\n");

interface Schema {
  type?: string;
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  required?: string[];
  enum?: string[];
}
interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; schema: Schema }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, unknown>;
}
const camelCase = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const options = { serverUrl: "http://127.0.0.1:8080", version: "1" };
const api = openApi(options) as {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: { bearer: object } };
};
const operations = Object.entries(api.paths).flatMap(([path, verbs]) =>
  Object.entries(verbs).map(([verb, operation]) => ({ path, verb, ...operation })),
);

/** The fields of a request with a body that are in its path instead, by the schema of the request. */
const inPathOf = new Map(
  operations.flatMap(({ path, requestBody }) => {
    const schema = /[^/]+$/.exec(requestBody?.content["application/json"]?.schema.$ref ?? "")?.[0];
    const fields = [...path.matchAll(/\{(\w+)/g)].map(([, field]) => camelCase(field!));
    return schema && fields.length > 0 ? [[schema, fields] as const] : [];
  }),
);

/** Read from the text of the .proto files, not by the code that writes the description. */
describe("the OpenAPI description agrees with the proto files", () => {
  it("has every method at its verb and path, and no other", () => {
    const declared = [
      ...sources.matchAll(/rpc (\w+)\([^{]*?\{\s*option \(google\.api\.http\) = \{ (\w+): "([^"]+)"/g),
    ].map(([, name, verb, path]) => `${name} ${verb} ${path}`);
    expect(declared.length).toBeGreaterThan(25);
    expect(operations.map(({ operationId, verb, path }) => `${operationId} ${verb} ${path}`).sort()).toEqual(
      declared.sort(),
    );
  });

  it("has every field of every message it refers to", () => {
    for (const [, name, body] of sources.matchAll(/message (\w+) \{([\s\S]*?)\n\}/g)) {
      const schema = Object.entries(api.components.schemas).find(([key]) => key.split(".").at(-1) === name);
      if (!schema) continue;
      const fields = [...body!.matchAll(/^\s+(?:repeated )?[\w.]+ (\w+) = \d+/gm)].map(([, field]) =>
        camelCase(field!),
      );
      const inPath = inPathOf.get(schema[0]) ?? [];
      expect(Object.keys(schema[1].properties ?? {}), name).toEqual(fields.filter((field) => !inPath.includes(field)));
    }
  });

  it("has every value of every enumeration", () => {
    for (const [, name, body] of sources.matchAll(/enum (\w+) \{([\s\S]*?)\n\}/g)) {
      const values = [...body!.matchAll(/^\s+(\w+) = \d+;/gm)].map(([, value]) => value);
      const found = Object.entries(api.components.schemas).filter(
        ([key, schema]) => key.split(".").at(-1) === name && schema.enum?.length === values.length,
      );
      expect(
        found.some(([, schema]) => JSON.stringify(schema.enum) === JSON.stringify(values)),
        name,
      ).toBe(true);
    }
  });

  it("has a type for every field, and for what is in a list", () => {
    const isTyped = (schema: Schema): boolean =>
      schema.type === "array" ? isTyped(schema.items!) : schema.type !== undefined || schema.$ref !== undefined;
    const fields = Object.values(api.components.schemas).flatMap(({ properties = {} }) => Object.entries(properties));
    expect(fields.length).toBeGreaterThan(200);
    expect(fields.filter(([, schema]) => !isTyped(schema))).toEqual([]);
    expect(api.components.schemas.ListOfUniqueId!.properties!.uniqueIds).toMatchObject({
      type: "array",
      items: { $ref: "#/components/schemas/UniqueId" },
    });
  });

  it("requires the mandatory fields of each message; of the context, each operation says which it needs", () => {
    let mandatory = 0;
    for (const [, name, body] of sources.matchAll(/message (\w+) \{([\s\S]*?)\n\}/g)) {
      const [key, schema] =
        Object.entries(api.components.schemas).find(([key]) => key.split(".").at(-1) === name) ?? [];
      if (!schema) continue;
      const inPath = inPathOf.get(key!) ?? [];
      const required = [...body!.matchAll(/^\s+(?:repeated )?[\w.]+ (\w+) = \d+ \[\(vendor\.rpc\.mandatory\)/gm)].map(
        ([, field]) => camelCase(field!),
      );
      mandatory += required.length;
      const inBody = required.filter((field) => !inPath.includes(field));
      expect([name, schema.required]).toEqual([name, inBody.length > 0 && name !== "Context" ? inBody : undefined]);
    }
    expect(mandatory).toBeGreaterThan(30);
  });

  it("has a field that is in the path not also in the body", () => {
    expect([...inPathOf]).toHaveLength(6);
    expect(api.components.schemas.TrainRequest!.properties).not.toHaveProperty("gkVoiceprintProfileId");
    expect(api.components.schemas.TrainRequest!.required).toEqual(["context"]);
  });

  it("has each parameter once, those of the path as required texts, and a body where the binding has one", () => {
    for (const { path, verb, operationId, parameters = [], requestBody } of operations) {
      const inPath = [...path.matchAll(/\{(.+?)\}/g)].map(([, name]) => name);
      const names = parameters.map(({ name }) => name);
      expect(new Set(names).size, operationId).toBe(names.length);
      const ofPath = parameters.filter((one) => one.in === "path");
      expect(ofPath).toEqual(inPath.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } })));
      const hasBody = verb === "post" || /members$/.test(path);
      expect([operationId, requestBody?.required]).toEqual([operationId, hasBody ? true : undefined]);
      // Without a body, and with one of bytes, everything else is in the query.
      expect([operationId, names.includes("context.gk_scope_id.value")]).toEqual([
        operationId,
        !hasBody || operationId === "AddMediaSegment",
      ]);
    }
    expect(operations.filter(({ parameters }) => parameters?.length === 0)).toEqual([]);
  });

  it("has the first sentence of a comment as the summary, and the others as the description", () => {
    const find = (id: string) => operations.find(({ operationId }) => operationId === id)!;
    const { summary, description } = find("StopSession");
    expect([summary, description]).toEqual([
      "Stops a session.",
      "Its audio is deleted, unless the box is configured to keep it longer.",
    ]);
    expect(find("StopEngagement")).not.toHaveProperty("description");
  });

  it("says where tokens come from, if the box issues them", () => {
    expect(api.components.securitySchemes.bearer).toEqual({ type: "http", scheme: "bearer", bearerFormat: "JWT" });
    const tokenUrl = "http://127.0.0.1:8080/oauth2/token";
    const own = openApi({ ...options, tokenUrl }) as typeof api;
    expect(own.components.securitySchemes.bearer).toMatchObject({
      type: "oauth2",
      flows: { clientCredentials: { tokenUrl } },
    });
  });

  it("has no dangling reference", () => {
    for (const [, name] of JSON.stringify(api).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      expect(api.components.schemas).toHaveProperty([name!]);
    }
  });

  it("binds path and query by dotted names, and a recording as bytes", () => {
    const status = operations.find(({ operationId }) => operationId === "GetEnrollStatus")!;
    expect(status.parameters).toContainEqual(
      expect.objectContaining({ name: "gk_voiceprint_profile_id.value", in: "path" }),
    );
    expect(status.parameters).toContainEqual(
      expect.objectContaining({ name: "context.gk_scope_id.value", in: "query" }),
    );
    const upload = operations.find(({ operationId }) => operationId === "AddMediaSegment")!;
    expect(Object.keys(upload.requestBody!.content)).toContain("audio/wav");
    expect(upload.parameters!.map(({ name }) => name)).not.toContain("chunk");
  });

  it("is served", async () => {
    const response = await rehearse().service.app.request("/openapi.json");
    expect(((await response.json()) as { openapi: string }).openapi).toBe("3.1.0");
  });

  it("is served compressed to whoever accepts that, and not again to whoever has it", async () => {
    const { app } = rehearse().service;
    const plain = await app.request("/openapi.json");
    const zipped = await app.request("/openapi.json", { headers: { "accept-encoding": "br, gzip" } });
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(gunzipSync(await zipped.arrayBuffer()).toString()).toBe(await plain.text());
    const tag = plain.headers.get("etag")!;
    for (const seen of [tag, `W/${tag}`, `"another", ${tag}`]) {
      const again = await app.request("/openapi.json", { headers: { "if-none-match": seen } });
      expect([again.status, await again.text()]).toEqual([304, ""]);
    }
    expect((await app.request("/openapi.json", { headers: { "if-none-match": '"another"' } })).status).toBe(200);
  });
});

describe("the description has a text", () => {
  const { tags, paths, components } = openApi({ serverUrl: "http://127.0.0.1:8080", version: "1" }) as {
    tags: { name: string; description?: string }[];
    paths: Record<string, Record<string, { operationId: string; summary?: string }>>;
    components: {
      schemas: Record<string, { description?: string; properties?: Record<string, Record<string, unknown>> }>;
    };
  };

  it("for every service and every operation", () => {
    expect(tags.filter(({ description }) => !description)).toEqual([]);
    const all = Object.values(paths).flatMap((verbs) => Object.values(verbs));
    expect(all.filter(({ summary }) => !summary).map(({ operationId }) => operationId)).toEqual([]);
  });

  it("for an enumeration whose values are explained", () => {
    expect(components.schemas.ConsentState!.description).toContain("CONSENT_STATE_WITHDRAWN: Consent was withdrawn");
  });

  it("for every field of a request: its own, or that of its type", () => {
    const silent = Object.entries(components.schemas)
      .filter(([name]) => name.endsWith("Request"))
      .flatMap(([name, { properties = {} }]) =>
        Object.entries(properties)
          .filter(([, schema]) => {
            const type = /schemas\/(.+)$/.exec(String(schema.$ref))?.[1];
            return !schema.description && !(type && components.schemas[type]!.description);
          })
          .map(([field]) => `${name}.${field}`),
      );
    expect(silent).toEqual([]);
  });
});
