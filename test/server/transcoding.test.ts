import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Health } from "../../src/contract/gen/grpc/health/v1/health_pb.js";
import {
  AuthenticationScoreSchema,
  Decision,
  DecisionReason,
  type GetEnrollStatusRequest,
  OwnerType,
  SessionType,
  type StartSessionRequest,
  StatusCode,
  StatusError,
  type VerifyRequest,
  VerifyResponseSchema,
} from "../../src/contract/index.js";
import { METHODS } from "../../src/contract/operations.js";
import type { Guard } from "../../src/server/guard.js";
import { bindingMatcher, httpBindings, parsePath } from "../../src/server/http/bindings.js";
import { openApi } from "../../src/server/http/openapi.js";
import { serveFolder } from "../../src/server/http/static-files.js";
import { Refusal } from "../../src/server/refusal.js";
import { rehearse } from "./rehearsal.js";

const CONTEXT = {
  gk_engagement_id: { value: "e" },
  gk_session_id: { value: "s" },
  gk_scope_id: { value: "scope" },
  configset_id: "ivr-text-dependent",
};

const post = (body: unknown, headers: Record<string, string> = {}) => ({
  method: "POST",
  body: typeof body === "string" ? body : JSON.stringify(body),
  headers: { "content-type": "application/json", ...headers },
});

describe("the contract's endpoint table", () => {
  // Copied from the specification, not read from the proto files.
  it.each([
    ["POST", "/v1/audios/process", "ProcessAudio"],
    ["POST", "/v1/voiceprints/p/enrollment", "Enroll"],
    ["GET", "/v1/voiceprints/p/enrollment-status", "GetEnrollStatus"],
    ["POST", "/v1/voiceprints/p/training", "Train"],
    ["POST", "/v1/voiceprints/watchlist:check-consistency", "CheckWatchlistConsistency"],
    ["POST", "/v1/voiceprints/watchlist%3Acheck-consistency", "CheckWatchlistConsistency"],
    ["POST", "/v1/voiceprints/p/verification", "Verify"],
    ["POST", "/v1/voiceprints/identification", "Identify"],
    ["POST", "/v1/voiceprints/known-fraudsters-detection", "DetectKnownFraudsters"],
    ["POST", "/v1/voiceprints/audio-analysis", "AnalyzeAudio"],
    ["POST", "/v1/engagements/start", "StartEngagement"],
    ["POST", "/v1/engagements/stop", "StopEngagement"],
    ["POST", "/v1/sessions/start", "StartSession"],
    ["POST", "/v1/sessions/stop", "StopSession"],
    ["GET", "/v1/sessions/decision", "GetSessionDecision"],
    ["POST", "/v1/voiceprints/profiles", "CreateVoiceprintProfile"],
    ["GET", "/v1/voiceprints/profiles/gkid", "GetGkVoiceprintProfileId"],
    ["DELETE", "/v1/voiceprints/p", "DeleteVoiceprintProfile"],
    ["POST", "/v1/audios", "AddMediaSegment"],
    ["POST", "/v1/groups", "CreateGroup"],
    ["GET", "/v1/groups/g", "GetGroup"],
    ["DELETE", "/v1/groups/g", "DeleteGroup"],
    ["POST", "/v1/groups/g/members", "AddGroupMembers"],
    ["DELETE", "/v1/groups/g/members", "RemoveGroupMembers"],
    ["POST", "/v1/watchlists", "CreateWatchlist"],
    ["GET", "/v1/watchlists/g", "GetWatchlist"],
    ["DELETE", "/v1/watchlists/g", "DeleteWatchlist"],
    ["POST", "/v1/watchlists/g/members", "AddWatchlistMembers"],
    ["DELETE", "/v1/watchlists/g/members", "RemoveWatchlistMembers"],
    ["POST", "/v1/voiceprints/profiles/status", "StartVoiceprintProfilesStatusJob"],
    ["GET", "/v1/voiceprints/profiles/status/j", "GetVoiceprintProfilesStatusJob"],
  ])("%s %s is %s", async (method, path, operation) => {
    const { service, seen } = rehearse();
    const sent = path === "/v1/audios" ? { body: "bytes" } : method === "GET" ? {} : { ...post({}) };
    const response = await service.app.request(path, { ...sent, method });
    expect(await response.json()).toMatchObject({ status: { statusCode: "OK" } });
    expect(response.status).toBe(200);
    expect(seen[0]!.operation).toBe(operation);
  });

  it("prefers fixed words to variables, and matches variables with whole segments only", () => {
    const match = bindingMatcher(httpBindings(METHODS));
    expect(match("POST", "/v1/voiceprints/identification")).toMatchObject({
      binding: { method: { name: "Identify" } },
    });
    expect(match("GET", "/v1/voiceprints//enrollment-status")).toBeNull();
    expect(match("GET", "/v1/voiceprints/%E0%A4%A/enrollment-status")).toBe("malformed");
    // Not even decoded: it may have thousands of words, and no binding is as long.
    expect(match("GET", `/v1${"/word".repeat(5000)}/%E0%A4%A`)).toBeNull();
    expect(() => parsePath("/v1/x-{a}")).toThrow(/whole segments/);
    expect(() => httpBindings([Health.method.check])).toThrow("Check has no HTTP binding with a verb");
  });
});

describe("JSON in", () => {
  it("accepts snake_case, camelCase, enum names and numbers", async () => {
    const { service, seen } = rehearse();
    await service.app.request(
      "/v1/sessions/start",
      post({ context: CONTEXT, session_type: "SESSION_TYPE_IVR", external_id: "a" }),
    );
    await service.app.request(
      "/v1/sessions/start",
      post({ context: { gkScopeId: { value: "scope" } }, sessionType: 2, externalId: "a" }),
    );
    const [snake, camel] = seen.map(({ request }) => request as StartSessionRequest);
    expect(snake).toMatchObject({ sessionType: SessionType.IVR, externalId: "a" });
    expect(camel).toMatchObject({ sessionType: SessionType.IVR, externalId: "a" });
    expect(snake!.context!.gkScopeId!.value).toBe("scope");
  });

  it("names the values of an enumeration if another one is given", async () => {
    const { service } = rehearse();
    const bad = await service.app.request("/v1/sessions/start", post({ context: CONTEXT, session_type: "FAX" }));
    expect(bad.status).toBe(400);
    const { message } = ((await bad.json()) as { status: { message: string } }).status;
    expect(message).toMatch(/^session_type: expected SESSION_TYPE_CALL_CENTER, .* or its number, got "FAX"$/);
  });

  it("takes a member of a choice that is null as absent", async () => {
    const { service, seen } = rehearse();
    const audio = { gk_media_segment_id: { value: "m" }, gk_processed_audio_id: null };
    const response = await service.app.request("/v1/voiceprints/p/verification", post({ context: CONTEXT, ...audio }));
    expect(response.status).toBe(200);
    expect((seen[0]!.request as VerifyRequest).audio).toMatchObject({
      case: "gkMediaSegmentId",
      value: { value: "m" },
    });
  });

  it.each([
    { gk_voiceprint_profile_id: null },
    { gkVoiceprintProfileId: null },
    { gkVoiceprintProfileId: { value: null } },
    { gkVoiceprintProfileId: {} },
    { gkVoiceprintProfileId: { value: "p" } },
  ])("takes a field of the path from there if the body has %j", async (given) => {
    const { service, seen } = rehearse();
    const response = await service.app.request("/v1/voiceprints/p/training", post({ context: CONTEXT, ...given }));
    expect(response.status).toBe(200);
    expect(seen[0]!.request).toMatchObject({ gkVoiceprintProfileId: { value: "p" } });
  });

  it.each([
    [{ gk_voiceprint_profile_id: "q" }, 'gk_voiceprint_profile_id: expected an object such as {"value": …}, got "q"'],
    [{ gkVoiceprintProfileId: ["p"] }, 'gk_voiceprint_profile_id: expected an object such as {"value": …}, got ["p"]'],
    [{ nothing: null }, "nothing: unknown field"],
  ])("says what is wrong with %j although the path has the field", async (given, message) => {
    const { service } = rehearse();
    const response = await service.app.request("/v1/voiceprints/p/training", post({ context: CONTEXT, ...given }));
    expect(await response.json()).toMatchObject({ status: { statusCode: "BAD_REQUEST", message } });
  });

  it.each([
    [{ context: { gk_scope_id: "a" } }, 'context.gk_scope_id: expected an object such as {"value": …}, got "a"'],
    [
      { gk_voiceprint_profile_ids: { unique_ids: ["a"] } },
      'gk_voiceprint_profile_ids.unique_ids: expected a list of objects such as {"value": …}, got ["a"]',
    ],
    [
      { gk_voiceprint_profile_ids: { unique_ids: { value: "a" } } },
      'gk_voiceprint_profile_ids.unique_ids: expected a list of objects such as {"value": …}, got {"value":"a"}',
    ],
    [
      { context: { gk_scope_id: { value: "a" }, gkScopeId: { value: "a" } } },
      "context.gk_scope_id: given twice, as gk_scope_id and gkScopeId",
    ],
    [
      { gk_media_segment_id: { value: "m" }, gk_processed_audio_id: { value: "p" } },
      "audio: only one of gk_media_segment_id and gk_processed_audio_id may be set",
    ],
  ])("says what is wrong with %j", async (body, message) => {
    const { service } = rehearse();
    const response = await service.app.request("/v1/voiceprints/identification", post(body));
    const field = message.slice(0, message.indexOf(":"));
    expect(await response.json()).toMatchObject({
      status: { statusCode: "BAD_REQUEST", message, fieldViolations: [{ field, violation: "malformed" }] },
    });
  });

  it("refuses a field of the query that is given in both spellings", async () => {
    const { service } = rehearse();
    const query = "context.gk_scope_id.value=a&context.gkScopeId.value=b";
    const response = await service.app.request(`/v1/groups?${query}`);
    const violation = { field: "context.gkScopeId.value", violation: "malformed" };
    expect(await response.json()).toMatchObject({
      status: { statusCode: "INVALID_REQUEST", fieldViolations: [violation] },
    });
  });

  it("accepts the contract's own camelCase names", async () => {
    const { service, seen } = rehearse();
    await service.app.request(
      "/v1/voiceprints/audio-analysis",
      post({ context: CONTEXT, syntheticSpeechDetectionParameters: {} }),
    );
    expect(seen[0]!.request).toHaveProperty("syntheticSpeechDetectionParameters.$typeName");
  });

  it("copies path variables to the message, and refuses a body that contradicts them", async () => {
    const { service, seen } = rehearse();
    const good = await service.app.request(
      "/v1/voiceprints/p%201/verification",
      post({ context: CONTEXT, gk_media_segment_id: { value: "m" } }),
    );
    expect(good.status).toBe(200);
    const request = seen[0]!.request as VerifyRequest;
    expect(request.gkVoiceprintProfileId!.value).toBe("p 1");
    expect(request.audio).toMatchObject({ case: "gkMediaSegmentId" });
    const bad = await service.app.request(
      "/v1/voiceprints/p/verification",
      post({ gkVoiceprintProfileId: { value: "q" } }),
    );
    expect(bad.status).toBe(400);
    expect(await bad.json()).toMatchObject({
      status: { statusCode: "INVALID_REQUEST", fieldViolations: [{ violation: "contradicts" }] },
    });
  });

  it.each([
    [{ gk_voiceprint_profile_id: "p" }, 'gk_voiceprint_profile_id: expected an object such as {"value": …}, got "p"'],
    [{ gkVoiceprintProfileId: [1] }, 'gk_voiceprint_profile_id: expected an object such as {"value": …}, got [1]'],
    [
      { gk_voiceprint_profile_id: { value: "p" }, gkVoiceprintProfileId: { value: "q" } },
      "gk_voiceprint_profile_id: given twice, as gk_voiceprint_profile_id and gkVoiceprintProfileId",
    ],
  ])("does not replace a wrong body value by the path variable: %j", async (body, message) => {
    const { service, seen } = rehearse();
    const response = await service.app.request("/v1/voiceprints/p/verification", post(body));
    expect(await response.json()).toMatchObject({ status: { statusCode: "BAD_REQUEST", message } });
    expect(seen).toEqual([]);
  });

  it.each([
    [{ gk_voiceprint_profile_id: null }],
    [{ gkVoiceprintProfileId: { value: null } }],
    [{ gkVoiceprintProfileId: { value: "p" } }],
  ])("takes the path variable where the body has none or the same: %j", async (body) => {
    const { service, seen } = rehearse();
    const given = { context: CONTEXT, gk_media_segment_id: { value: "m" }, ...body };
    expect((await service.app.request("/v1/voiceprints/p/verification", post(given))).status).toBe(200);
    expect((seen[0]!.request as VerifyRequest).gkVoiceprintProfileId!.value).toBe("p");
  });

  it("binds dotted query names in both spellings", async () => {
    const { service, seen } = rehearse();
    const query = "context.gk_scope_id.value=scope&context.gkSessionId.value=s&context.configset_id=ivr";
    const response = await service.app.request(`/v1/voiceprints/p/enrollment-status?${query}`);
    expect(response.status).toBe(200);
    expect((seen[0]!.request as GetEnrollStatusRequest).context).toMatchObject({
      gkScopeId: { value: "scope" },
      gkSessionId: { value: "s" },
      configsetId: "ivr",
    });
  });

  it.each([
    ["an unknown parameter", "/v1/voiceprints/p/enrollment-status?nonsense=1", "unknown"],
    ["a field of a text", "/v1/voiceprints/p/enrollment-status?context.configset_id.value=1", "unknown"],
    ["a message without a field", "/v1/voiceprints/p/enrollment-status?context=1", "malformed"],
    [
      "a parameter given twice",
      "/v1/voiceprints/p/enrollment-status?context.configset_id=a&context.configset_id=b",
      "malformed",
    ],
    ["a list of messages", "/v1/groups/g/members?gk_owner_ids.unique_ids=a", "malformed", "DELETE"],
    ["the bytes of a recording as a parameter", "/v1/audios?chunk=AAAA", "malformed", "POST"],
    ["parameters beside a body", "/v1/sessions/start?external_id=a", "unknown", "POST"],
    ["a parameter of the path", "/v1/voiceprints/p/enrollment-status?gk_voiceprint_profile_id.value=q", "malformed"],
  ])("refuses %s", async (_, path, violation, method = "GET") => {
    const response = await rehearse().service.app.request(path, { method });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      status: { statusCode: "INVALID_REQUEST", fieldViolations: [{ violation }] },
    });
  });

  it.each([
    ["no JSON", "{", "application/json"],
    ["no object", "[]", "application/json"],
    ["an unknown field", '{"nonsense":1}', "application/json"],
    ["a wrong type", '{"context":5}', "application/json"],
    ["an unknown enum name", '{"session_type":"SESSION_TYPE_MOON"}', "application/json"],
    ["a form", "a=b", "application/x-www-form-urlencoded"],
    ["XML", "<a/>", "text/xml"],
  ])("answers %s with BAD_REQUEST", async (_, body, type) => {
    const response = await rehearse().service.app.request("/v1/sessions/start", post(body, { "content-type": type }));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ status: { statusCode: "BAD_REQUEST" } });
  });

  it.each([
    ["/v1/sessions/start", { nonsense: 1 }, "nonsense"],
    ["/v1/sessions/start", { context: { gkScopeId: { value: 5 } } }, "context.gk_scope_id.value"],
    ["/v1/sessions/start", { context: { gk_scope_id: { name: "x" } } }, "context.gk_scope_id.name"],
    ["/v1/sessions/start", { context: CONTEXT, sessionType: "MOON" }, "session_type"],
    [
      "/v1/groups",
      { context: CONTEXT, gkOwnerIds: { uniqueIds: [{ value: "a" }, { value: true }] } },
      "gk_owner_ids.unique_ids[1].value",
    ],
    ["/v1/groups", { context: CONTEXT, gkOwnerIds: { uniqueIds: [{ value: "a" }, 5] } }, "gk_owner_ids.unique_ids"],
    ["/v1/groups", { gkOwnerIds: { uniqueIds: [{ value: "a" }] }, context: 5 }, "context"],
    ["/v1/audios/process", { isForEnrollment: { value: true } }, "is_for_enrollment"],
    ["/v1/audios/process", { channelSelector: { channel: { value: 1 } } }, "channel_selector.channel"],
  ])("names the field that does not fit, with the whole way to it: %s %j", async (path, body, field) => {
    const response = await rehearse().service.app.request(path, post(body));
    expect(await response.json()).toMatchObject({
      status: { message: expect.stringContaining(`${field}: `), fieldViolations: [{ field }] },
    });
  });

  it.each([
    ["/v1/voiceprints/%E0%A4%A/training", {}, "the path is not properly percent-encoded"],
    ["/v1/sessions/start", { "content-encoding": "gzip" }, "the body must be sent without content encoding, got gzip"],
    ["/v1/audios", { "content-encoding": "gzip" }, "the body must be sent without content encoding, got gzip"],
    ["/v1/sessions/start", { "content-type": "text/xml" }, "the content type must be application/json, got text/xml"],
  ])("says what is wrong with a request to %s with %j", async (path, headers, message) => {
    const response = await rehearse().service.app.request(path, { method: "POST", body: "{}", headers });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ status: { statusCode: "BAD_REQUEST", message } });
  });

  it("refuses a body that is not UTF-8", async () => {
    const body = Buffer.from('{"external_id":"caf\xe9"}', "latin1");
    const headers = { "content-type": "application/json" };
    const response = await rehearse().service.app.request("/v1/sessions/start", { method: "POST", body, headers });
    expect(await response.json()).toMatchObject({
      status: { statusCode: "BAD_REQUEST", message: "the body is not UTF-8" },
    });
  });

  it("takes a body without content encoding that says so, and repeats only the beginning of a long header", async () => {
    const { service } = rehearse();
    const send = (headers: Record<string, string>) => service.app.request("/v1/sessions/start", post("{}", headers));
    expect((await send({ "content-encoding": "identity" })).status).toBe(200);
    expect((await send({ "content-type": "application/vnd.bank+json; charset=utf-8" })).status).toBe(200);
    const messageOf = async (headers: Record<string, string>) =>
      ((await (await send(headers)).json()) as { status: { message: string } }).status.message;
    const long = "x".repeat(200);
    expect(await messageOf({ "content-type": long })).toBe(
      `the content type must be application/json, got ${long.slice(0, 80)}`,
    );
    expect(await messageOf({ "content-encoding": long })).toBe(
      `the body must be sent without content encoding, got ${long.slice(0, 40)}`,
    );
  });

  it("repeats only the beginning of a long value", async () => {
    const { service } = rehearse();
    const messageOf = async (body: object) => {
      const response = await service.app.request("/v1/sessions/start", post({ context: CONTEXT, ...body }));
      return ((await response.json()) as { status: { message: string } }).status.message;
    };
    const long = "x".repeat(200);
    for (const body of [{ session_type: long }, { context: long }])
      expect((await messageOf(body)).split("got ")[1]).toBe(`"${long.slice(0, 99)}`);
  });

  it.each(["application/json", "multipart/form-data; boundary=x"])("refuses a recording sent as %s", async (type) => {
    const sent = { method: "POST", body: "RIFF", headers: { "content-type": type } };
    const response = await rehearse().service.app.request("/v1/audios", sent);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      status: { message: expect.stringContaining("sent as audio/wav or application/octet-stream") },
    });
  });

  it("takes every parameter of the description in a query: texts, numbers, enumerations by name and number", async () => {
    const api = openApi({ serverUrl: "http://box", version: "1" }) as {
      paths: Record<string, Record<string, { parameters?: { name: string; in: string; schema: Schema }[] }>>;
      components: { schemas: Record<string, { enum?: string[] }> };
    };
    type Schema = { type?: string; $ref?: string };
    const examples = ({ type, $ref }: Schema): string[] => {
      if (type === "string") return ["text"];
      if (type === "integer") return ["7"];
      return [api.components.schemas[$ref!.split("/").at(-1)!]!.enum![1]!, "1"];
    };
    let sent = 0;
    for (const [path, verbs] of Object.entries(api.paths))
      for (const [verb, { parameters = [] }] of Object.entries(verbs))
        for (const { name, schema } of parameters.filter((one) => one.in === "query"))
          for (const value of examples(schema)) {
            const url = `${path.replaceAll(/\{.*?\}/g, "id")}?${name}=${value}`;
            const response = await rehearse().service.app.request(url, { method: verb.toUpperCase() });
            expect([url, response.status]).toEqual([url, 200]);
            sent++;
          }
    expect(sent).toBeGreaterThan(40);
    const { service, seen } = rehearse();
    for (const type of ["OWNER_TYPE_FRAUDSTER", "2"])
      await service.app.request(`/v1/voiceprints/profiles?owner_type=${type}&page_size=7`);
    for (const { request } of seen) expect(request).toMatchObject({ ownerType: OwnerType.FRAUDSTER, pageSize: 7 });
    expect(seen).toHaveLength(2);
  });

  it("reads the members to remove from the query if DELETE has no body", async () => {
    const { service, seen } = rehearse();
    const member = "gk_voiceprint_profile_ids.unique_ids.value";
    const path = `/v1/groups/g/members?context.gk_scope_id.value=s&${member}=p1&${member}=p2`;
    expect((await service.app.request(path, { method: "DELETE" })).status).toBe(200);
    expect(seen[0]).toMatchObject({
      operation: "RemoveGroupMembers",
      request: { gkGroupId: { value: "g" }, gkVoiceprintProfileIds: { uniqueIds: [{ value: "p1" }, { value: "p2" }] } },
    });
  });

  it("answers any body with a status, and never crashes", async () => {
    const { service } = rehearse();
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.json(),
          fc.string(),
          fc.uint8Array().map((bytes) => new Blob([bytes as BlobPart])),
        ),
        async (body) => {
          const response = await service.app.request("/v1/sessions/start", {
            method: "POST",
            body,
            headers: { "content-type": "application/json" },
          });
          expect([200, 400]).toContain(response.status);
          expect(((await response.json()) as { status: { statusCode: string } }).status.statusCode).toMatch(
            /OK|BAD_REQUEST/,
          );
        },
      ),
      { numRuns: 300 },
    );
  });

  it("survives any path and query", async () => {
    const { service } = rehearse();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string(), { maxLength: 5 }), fc.string(), async (segments, query) => {
        const path = segments.map(encodeURIComponent).join("/");
        const response = await service.app.request(`/v1/${path}?${encodeURIComponent(query)}=x`);
        expect([200, 400, 404]).toContain(response.status);
        await response.json();
      }),
      { numRuns: 300 },
    );
  });

  it("passes ids with slashes and dots on unchanged", async () => {
    const { service, seen } = rehearse();
    await service.app.request(
      `/v1/voiceprints/${encodeURIComponent("../../etc/passwd")}/training`,
      post({ context: CONTEXT }),
    );
    expect(seen[0]!.request).toMatchObject({ gkVoiceprintProfileId: { value: "../../etc/passwd" } });
  });
});

describe("JSON out", () => {
  it("is canonical: camelCase, enum names, bare wrappers, durations in seconds", async () => {
    const { service } = rehearse({
      verify: () =>
        create(VerifyResponseSchema, {
          status: { statusCode: StatusCode.OK },
          result: {
            decision: Decision.AUTHENTIC,
            reason: DecisionReason.VOICEPRINT_MATCH,
            voiceClassScore: 12.5,
            authenticationScore: create(AuthenticationScoreSchema, { biometricScore: 0.5 }),
            riskEngineResult: { risk: 7 },
            audioDetails: { netAudio: { seconds: 3n, nanos: 500_000_000 } },
          },
        }),
    });
    const response = await service.app.request(
      "/v1/voiceprints/p/verification",
      post({ context: CONTEXT }, { "x-request-id": "mine-1" }),
    );
    expect(response.headers.get("x-request-id")).toBe("mine-1");
    expect(await response.json()).toEqual({
      status: { statusCode: "OK", requestId: "mine-1" },
      result: {
        decision: "DECISION_AUTHENTIC",
        reason: "DECISION_REASON_VOICEPRINT_MATCH",
        voiceClassScore: 12.5,
        authenticationScore: { biometricScore: 0.5 },
        riskEngineResult: { risk: 7 },
        audioDetails: { netAudio: "3.500s" },
      },
    });
  });

  // decisions.md: HTTP codes of the statuses
  it.each([
    [StatusCode.BAD_REQUEST, 400],
    [StatusCode.INVALID_REQUEST, 400],
    [StatusCode.CANCELLED, 499],
    [StatusCode.DEADLINE_EXCEEDED, 504],
    [StatusCode.NOT_AUTHORIZED, 401],
    [StatusCode.PERMISSION_DENIED, 403],
    [StatusCode.NOT_FOUND, 404],
    [StatusCode.ALREADY_EXISTS, 409],
    [StatusCode.NOT_IMPLEMENTED, 501],
    [StatusCode.TOO_LARGE, 413],
    [StatusCode.BUSY, 503],
    [StatusCode.OBSOLETE, 410],
    [StatusCode.RATE_EXCEEDED, 429],
    [StatusCode.QUOTA_EXCEEDED, 429],
    [StatusCode.INTERNAL_ERROR, 500],
  ])("status %i is HTTP %i, and the body is nothing but the status", async (statusCode, http) => {
    const { service } = rehearse({
      train: () => {
        throw new StatusError({ statusCode, message: "because" });
      },
    });
    const response = await service.app.request("/v1/voiceprints/p/training", post({ context: CONTEXT }));
    expect(response.status).toBe(http);
    const body = (await response.json()) as { status: Record<string, unknown> };
    expect(Object.keys(body)).toEqual(["status"]);
    expect(body.status).toMatchObject({ statusCode: StatusCode[statusCode], message: "because" });
    expect(body.status.requestId).toBe(response.headers.get("x-request-id"));
  });

  it.each([1000, 1001])("shortens a message of %d characters to 1000", async (length) => {
    const long = "a".padEnd(length, "b");
    const refuse = () => {
      throw new StatusError({ statusCode: StatusCode.NOT_FOUND, message: long });
    };
    const response = await rehearse({ train: refuse }).service.app.request("/v1/voiceprints/p/training", post("{}"));
    const { message } = ((await response.json()) as { status: { message: string } }).status;
    expect(message).toBe(length > 1000 ? `${long.slice(0, 1000)}…` : long);
  });

  it.each([
    ["a".repeat(64), true],
    ["a".repeat(65), false],
    ["one two", false],
  ])("keeps the request id %s if it is short and safe to log", async (id, isKept) => {
    const { service, logged } = rehearse();
    const { headers } = await service.app.request("/v1/sessions/start", post("{}", { "x-request-id": id }));
    expect(headers.get("x-request-id") === id).toBe(isKept);
    expect(logged[0]!.requestId).toBe(headers.get("x-request-id"));
  });

  it("reveals only the request id of an unexpected error", async () => {
    const { service, logged } = rehearse({
      train: () => {
        throw new Error("secret detail");
      },
    });
    const response = await service.app.request(
      "/v1/voiceprints/p/training",
      post({ context: CONTEXT }, { "x-request-id": "look-me-up" }),
    );
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("secret detail");
    expect(logged.find((line) => line.level === "error")).toMatchObject({
      requestId: "look-me-up",
      operation: "Train",
    });
  });
});

describe("everything else", () => {
  it("answers unknown paths with 404, and wrong verbs with 405 and the allowed ones", async () => {
    const { service } = rehearse();
    const nowhere = await service.app.request("/v1/nowhere");
    expect(nowhere.status).toBe(404);
    expect(await nowhere.json()).toMatchObject({ status: { statusCode: "NOT_FOUND" } });
    const verb = await service.app.request("/v1/sessions/decision", { method: "POST", body: "{}" });
    expect(verb.status).toBe(405);
    expect(verb.headers.get("allow")).toBe("GET");
    expect(await verb.json()).toMatchObject({ status: { message: "POST is not allowed here; use GET" } });
    expect((await service.app.request("/healthz", { method: "POST" })).status).toBe(405);
  });

  it("says that a path is for WebSockets, with 426, in HTTP/1.1 and HTTP/2", async () => {
    const { service } = rehearse();
    expect((await service.app.request("/v1/live")).headers.get("upgrade")).toBe("websocket");
    await service.listen();
    const message = "/v1/live is for WebSockets only; connect to it with a WebSocket over HTTP/1.1";
    try {
      const plain = await fetch(`${service.url}/v1/live`);
      expect(plain.status).toBe(426);
      expect(plain.headers.get("upgrade")).toBe("websocket");
      expect(await plain.json()).toMatchObject({ status: { statusCode: "BAD_REQUEST", message } });
      const session = http2.connect(service.url);
      const stream = session.request({ ":path": "/v1/live" });
      const [headers] = await once(stream, "response");
      expect(headers[":status"]).toBe(426);
      expect(await text(stream)).toContain(message);
      session.destroy();
    } finally {
      await service.stop();
    }
  });

  it("has health, readiness and metrics", async () => {
    const { service } = rehearse();
    expect((await service.app.request("/healthz")).status).toBe(200);
    expect((await service.app.request("/readyz")).status).toBe(200);
    await service.app.request("/v1/voiceprints/p/training", post({ context: CONTEXT }));
    const metrics = await (await service.app.request("/metrics")).text();
    expect(metrics).toMatch(/vivavoce_call_seconds_count\{operation="Train",protocol="http",status="OK"\} 1/);
    expect(metrics).toContain("vivavoce_queue_waiting 0");
    expect(metrics).toContain('vivavoce_impostor_exceeded{list="watchlist",promised="0.1"} 300');
    expect(metrics).toContain('vivavoce_impostor_rate{list="watchlist",promised="0.1"} 0.3');
    expect(metrics).toContain('vivavoce_promise_holds{list="watchlist",promised="0.1"} 0');
    expect(metrics).toContain('vivavoce_promise_holds{list="watchlist",promised="0.01"} 1');
    expect(metrics).not.toContain('vivavoce_promise_holds{list="watchlist",promised="0.001"}');
  });

  it("metrics are for everybody, for clients with a token, or for nobody", async () => {
    const guard: Guard = {
      async admit(authorization) {
        if (authorization !== "Bearer good") throw new Refusal(StatusCode.NOT_AUTHORIZED, "no token");
        return { id: "a", mayTouch: () => true };
      },
    };
    const asked = async (access: "open" | "token" | "off", headers = {}) => {
      const { service } = rehearse({}, { metrics: { access } }, guard);
      const response = await service.app.request("/metrics", { headers });
      return [response.status, response.headers.get("content-type")!.split(";")[0]];
    };
    expect(await asked("open")).toEqual([200, "text/plain"]);
    expect(await asked("token")).toEqual([401, "application/json"]);
    expect(await asked("token", { authorization: "Bearer good" })).toEqual([200, "text/plain"]);
    expect(await asked("off", { authorization: "Bearer good" })).toEqual([404, "application/json"]);
  });

  it("is not ready while it does not work", async () => {
    const { service } = rehearse({}, {}, undefined, () => Promise.reject(new Error("the store is gone")));
    const response = await service.app.request("/readyz");
    expect([response.status, await response.text()]).toEqual([503, "not ready\n"]);
    expect(await (await service.app.request("/healthz")).text()).toBe("ok\n");
  });

  it.each(["POST", "PUT", "PATCH", "DELETE"])("refuses %s where one can only read", async (method) => {
    const { service } = rehearse();
    for (const path of ["/healthz", "/readyz", "/metrics", "/openapi.json"]) {
      const response = await service.app.request(path, { method });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "GET"]);
    }
    expect((await service.app.request("/telephony/desk/calls", { method })).status).toBe(404);
  });

  it("follows Prometheus's naming rules: only counters end with _total, and every metric has a help text", async () => {
    const { service } = rehearse();
    const metrics = await (await service.app.request("/metrics")).text();
    const types = [...metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => ({ name: name!, type }));
    expect(types.length).toBeGreaterThan(30);
    expect(types.filter(({ name, type }) => (type === "counter") !== name.endsWith("_total"))).toEqual([]);
    expect(types.filter(({ name }) => !new RegExp(`^# HELP ${name} \\S`, "m").test(metrics))).toEqual([]);
  });

  it("logs neither ids of people nor audio", async () => {
    const { service, logged } = rehearse();
    await service.app.request(
      "/v1/voiceprints/profiles",
      post({ context: CONTEXT, person_id: "Ada Lovelace", profile_tag: "phone" }),
    );
    expect(logged).toHaveLength(1);
    expect(JSON.stringify(logged)).not.toMatch(/Ada|phone/);
    expect(logged[0]).toMatchObject({ operation: "CreateVoiceprintProfile", status: "OK", protocol: "http" });
  });

  it("serves the files of a page and no others", async () => {
    const folder = mkdtempSync(join(tmpdir(), "vivavoce-page-"));
    try {
      mkdirSync(join(folder, "page", "assets"), { recursive: true });
      writeFileSync(join(folder, "page", "index.html"), "<p>hello");
      writeFileSync(join(folder, "page", "assets", "a.js"), "1");
      writeFileSync(join(folder, "secret"), "secret");
      const page = serveFolder(join(folder, "page"));
      const get = (path: string, headers = {}) => page(new Request(`http://box${path}`, { headers }));
      const root = get("/")!;
      expect(await root.text()).toBe("<p>hello");
      expect(root.headers.get("content-type")).toMatch(/^text\/html/);
      expect(root.headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(get("/", { "if-none-match": root.headers.get("etag")! })!.status).toBe(304);
      expect(get("/assets/a.js")!.headers.get("content-type")).toMatch(/javascript/);
      expect(root.headers.get("cache-control")).toBe("no-cache");
      expect(get("/assets/a.js")!.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(get("/", { "if-none-match": `W/${root.headers.get("etag")}` })!.status).toBe(304);
      expect(get("/", { "if-none-match": '"another"' })!.status).toBe(200);
      expect(page(new Request("http://box/", { method: "POST" }))).toBeNull();
      const below = serveFolder(join(folder, "page"), "/operator/");
      for (const path of ["/operator/", "/operator/index.html"])
        expect(await below(new Request(`http://box${path}`))!.text()).toBe("<p>hello");
      const immutable = below(new Request("http://box/operator/assets/a.js"))!.headers.get("cache-control");
      expect(immutable).toContain("immutable");
      for (const path of ["/../secret", "/%2e%2e/secret", "/..%2fsecret", "/assets", "/nothing"])
        expect(get(path)).toBeNull();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
