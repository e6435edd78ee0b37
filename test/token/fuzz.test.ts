import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { en as refusals } from "../../src/token/refusals/en.js";
import { type Box, basic, createBox, createRuntimeClient } from "./box.js";

/** Untrusted input: every answer must be one of the documented ones. */
describe("no request makes the service fail", () => {
  let box: Box;
  beforeEach(() => {
    box = createBox();
  });

  const headerText = fc.string({ unit: fc.constantFrom(...' !"%+,-./0:;=ABCabc~') });
  const answered = async (response: Response, allowed: number[]) => {
    expect(allowed).toContain(response.status);
    if (response.status < 400) return;
    const { refusal, ...body } = (await response.json()) as Record<string, unknown>;
    expect(body).toEqual({
      error: expect.any(String),
      error_description: expect.stringMatching(/^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/),
    });
    expect([undefined, ...Object.keys(refusals)]).toContain(refusal);
  };

  test.each(["/oauth2/token", "/oauth-server/oauth/token"])("%s", async (path) => {
    const { clientId, secret } = await createRuntimeClient(box);
    const authorization = fc.oneof(
      headerText,
      headerText.map((text) => basic(text, text)),
      fc.constant(basic(clientId, secret)),
      headerText.map((text) => `Basic ${text}`),
    );
    const body = fc.oneof(
      fc.string(),
      fc
        .dictionary(
          fc.constantFrom("grant_type", "scope", "client_id", "code", "x"),
          fc.oneof(fc.string(), fc.constantFrom("client_credentials", "authorization_code", "bio", clientId)),
        )
        .map((fields) => new URLSearchParams(fields).toString()),
    );
    await fc.assert(
      fc.asyncProperty(
        authorization,
        body,
        fc.constantFrom("application/x-www-form-urlencoded", "text/plain", "application/json"),
        async (header, text, type) => {
          const response = await box.fetch(path, {
            method: "POST",
            headers: { Authorization: header.trim(), "Content-Type": type },
            body: text,
          });
          await answered(response, [200, 400, 401, 429]);
          // The throttle would soon refuse everything else.
          box.advance(3_600_001);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("agentAvailability", async () => {
    const { registration, secret } = await box.service.registrations.register({ name: "Shop", sites: ["306"] });
    const { access_token } = await box.service.engagementToken({
      client: { clientId: registration.clientId, secret },
      scope: null,
      address: "x",
    });
    const value = fc.oneof(fc.string(), fc.constantFrom("306", "JSON", "19001", "__proto__"));
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom("siteID", "businessUnitID", "output", "agentGroupID"), value),
        async (query) => {
          const response = await box.fetch(
            `/engagementAPI/v2/customer/agentAvailability?${new URLSearchParams(query)}`,
            { method: "POST", headers: { Authorization: `Bearer ${access_token}` } },
          );
          await answered(response, [200, 400, 403]);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("the management interface", async () => {
    const user = await box.service.users.create({ name: "olga", role: "owner", password: "correct horse battery" });
    const { credential, secret } = await box.service.credentials.create(user, { kind: "service", label: "job" });
    const { access_token } = await box.service.clientCredentials({
      client: { clientId: credential.clientId, secret },
      scope: "platform-api",
      address: "x",
    });
    const part = fc.oneof(
      fc.constantFrom(
        "applications",
        "clients",
        "secret",
        "registrations",
        "users",
        "olga",
        "sites",
        "business-units",
        "agents",
        "hours",
        "keys",
        "me",
        "credentials",
        "__proto__",
      ),
      fc.webSegment(),
    );
    const path = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join("/"));
    const body = fc.oneof(
      fc.json(),
      fc
        .record({
          name: fc.anything(),
          role: fc.anything(),
          sites: fc.anything(),
          timeZone: fc.string(),
          weekly: fc.dictionary(fc.string(), fc.anything()),
        })
        .map((value) => JSON.stringify(value, (_, v) => (typeof v === "bigint" ? String(v) : v))),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE"),
        path,
        body,
        async (method, where, text) => {
          // This would delete Olga together with her credential.
          fc.pre(!(method === "DELETE" && where.includes("olga")) && !(method === "PATCH" && where.includes("olga")));
          const response = await box.fetch(`/management/v1/${where}`, {
            method,
            headers: { Authorization: `Bearer ${access_token}`, "Content-Type": "application/json" },
            ...(method !== "GET" && { body: text }),
          });
          await answered(response, [200, 201, 204, 400, 404, 409]);
        },
      ),
      { numRuns: 400 },
    );
  });

  test("authorization", async () => {
    const query = fc.dictionary(
      fc.constantFrom(
        "client_id",
        "redirect_uri",
        "response_type",
        "scope",
        "state",
        "code_challenge",
        "prompt",
        "request",
        "claims",
      ),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(query, async (parameters) => {
        const response = await box.fetch(`/oauth2/authorize?${new URLSearchParams(parameters)}`);
        expect(response.status).toBe(400);
        expect(response.headers.get("Content-Type")).toContain("text/html");
      }),
      { numRuns: 50 },
    );
    expect((await box.fetch("/oauth2/authorize/nobody")).status).toBe(400);
    expect((await box.fetch("/oauth2/interaction/nobody")).status).toBe(403);
    expect((await box.fetch("/oauth2/nothing")).status).toBe(404);
  });
});
