import fc from "fast-check";
import * as oauth from "oauth4webapi";
import { describe, expect, test } from "vitest";
import { DAYS, type Hours, isOpen } from "../../src/engagement/hours.js";
import { type Box, basic, createBox, createRuntimeClient, form, ISSUER } from "./box.js";

const TOKEN = "/oauth-server/oauth/token";
const AVAILABILITY = "/engagementAPI/v2/customer/agentAvailability";

async function registered(box: Box, sites = ["306"]) {
  const { registration, secret } = await box.service.registrations.register({ name: "Shop", sites });
  return { clientId: registration.clientId, secret };
}

const ask = (box: Box, clientId: string, secret: string, more: Record<string, string> = {}) =>
  box.fetch(TOKEN, form(basic(clientId, secret), { client_id: clientId, grant_type: "client_credentials", ...more }));

const tokenOf = async (box: Box, clientId: string, secret: string) =>
  ((await (await ask(box, clientId, secret)).json()) as { access_token: string }).access_token;

const availability = (box: Box, token: string | null, query = "businessUnitID=19001&output=JSON&siteID=306") =>
  box.fetch(`${AVAILABILITY}?${query}`, { method: "POST", headers: token ? { Authorization: `Bearer ${token}` } : {} });

describe("the engagement token endpoint", () => {
  test("an independent client gets a token with the contract's six fields", async () => {
    const box = createBox({ startAt: Date.now() });
    const { clientId, secret } = await registered(box, ["306", "307"]);
    const server = { issuer: ISSUER, token_endpoint: `${ISSUER}${TOKEN}` };
    const client = { client_id: clientId };
    const options = { [oauth.customFetch]: (url: string, init: RequestInit) => box.fetch(url, init) } as never;
    const response = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      oauth.ClientSecretBasic(secret),
      { client_id: clientId },
      options,
    );
    const result = await oauth.processClientCredentialsResponse(server, client, response);
    expect(Object.keys(result).sort()).toEqual(["access_token", "expires_in", "jti", "scope", "sites", "token_type"]);
    expect(result).toMatchObject({
      token_type: "bearer",
      expires_in: 3600,
      scope: "agent-availability",
      sites: ["306", "307"],
      jti: expect.any(String),
    });
  });

  test("accepts the contract's media type with its charset, and answers no-store", async () => {
    const box = createBox();
    const { clientId, secret } = await registered(box);
    const response = await box.fetch(TOKEN, {
      method: "POST",
      headers: {
        Authorization: basic(clientId, secret),
        "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
      },
      body: `client_id=${clientId}&grant_type=client_credentials`,
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("Cache-Control")).toBe("no-store");
  });

  test("every token has a different jti", async () => {
    const box = createBox();
    const { clientId, secret } = await registered(box);
    const jtis = await Promise.all(
      Array.from(
        { length: 20 },
        async () => ((await (await ask(box, clientId, secret)).json()) as { jti: string }).jti,
      ),
    );
    expect(new Set(jtis).size).toBe(20);
  });

  test("errors", async () => {
    const box = createBox();
    const { clientId, secret } = await registered(box);
    const check = async (response: Response, status: number, error: string) => {
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ error, error_description: expect.any(String) });
    };
    await check(await ask(box, clientId, "wrong"), 401, "invalid_client");
    await check(await ask(box, clientId, secret, { client_id: "other" }), 400, "invalid_request");
    await check(await ask(box, clientId, secret, { client_id: "" }), 400, "invalid_request");
    await check(await ask(box, clientId, secret, { grant_type: "authorization_code" }), 400, "unsupported_grant_type");
    await check(await ask(box, clientId, secret, { grant_type: "" }), 400, "invalid_request");
    await check(await ask(box, clientId, secret, { scope: "bio" }), 400, "invalid_scope");
    await check(await box.fetch(TOKEN), 405, "invalid_request");
  });

  test("the three services refuse one another's clients and tokens", async () => {
    const box = createBox();
    const { clientId, secret } = await registered(box);
    const runtime = await createRuntimeClient(box);
    const user = await box.service.users.create({ name: "olga", role: "owner", password: "correct horse" });
    const tooling = await box.service.credentials.create(user, { kind: "service", label: "job" });
    const grant = { grant_type: "client_credentials" };
    expect((await box.fetch("/oauth2/token", form(basic(clientId, secret), { ...grant, scope: "tts" }))).status).toBe(
      401,
    );
    expect((await ask(box, runtime.clientId, runtime.secret)).status).toBe(401);
    expect((await ask(box, tooling.credential.clientId, tooling.secret)).status).toBe(401);

    const issued = async (id: string, password: string, scope: string) =>
      (
        (await (await box.fetch("/oauth2/token", form(basic(id, password), { ...grant, scope }))).json()) as {
          access_token: string;
        }
      ).access_token;
    const tokens = {
      runtime: await issued(runtime.clientId, runtime.secret, "bio"),
      tooling: await issued(tooling.credential.clientId, tooling.secret, "platform-api"),
      engagement: await tokenOf(box, clientId, secret),
    };
    for (const service of ["runtime", "tooling", "engagement"] as const) {
      for (const [name, token] of Object.entries(tokens)) {
        if (name === service) await box.service[service].verify(token);
        else
          await expect(box.service[service].verify(token)).rejects.toMatchObject({
            code: "invalid_token",
            status: 401,
          });
      }
    }
    expect((await availability(box, tokens.runtime)).status).toBe(401);
    expect((await availability(box, tokens.tooling)).status).toBe(401);
    const manage = (token: string) => box.fetch("/management/v1/me", { headers: { Authorization: `Bearer ${token}` } });
    expect([
      (await manage(tokens.runtime)).status,
      (await manage(tokens.engagement)).status,
      (await manage(tokens.tooling)).status,
    ]).toEqual([401, 401, 200]);
  });
});

describe("agentAvailability", () => {
  test("answers from the agents and hours in the store", async () => {
    const box = createBox();
    const { clientId, secret } = await registered(box);
    const token = await tokenOf(box, clientId, secret);
    const answer = async (query?: string) => (await availability(box, token, query)).json();
    const { agents } = box.service;
    expect(await answer()).toEqual({ availability: false, inHOP: false, status: "offline" });
    await agents.put("306", 19001, { id: "ann", groups: ["sales"] });
    expect(await answer()).toEqual({ availability: false, inHOP: true, status: "offline" });
    await agents.put("306", 19001, { id: "ann", state: "busy" });
    expect(await answer()).toEqual({ availability: false, inHOP: true, status: "busy" });
    await agents.put("306", 19001, { id: "bob", state: "online", groups: ["support"] });
    expect(await answer()).toEqual({ availability: true, inHOP: true, status: "online" });
    const query = "businessUnitID=19001&output=JSON&siteID=306&agentGroupID=";
    expect(await answer(`${query}sales`)).toEqual({ availability: false, inHOP: true, status: "busy" });
    expect(await answer(`${query}support`)).toEqual({ availability: true, inHOP: true, status: "online" });
    expect(await answer(`${query}nobody`)).toMatchObject({ availability: false });
    await agents.setHours("306", 19001, { timeZone: "UTC", weekly: { mon: [["11:00", "12:00"]] }, exceptions: {} });
    expect(await answer()).toEqual({ availability: false, inHOP: false, status: "online" });
    box.advance(3_600_000 - 1);
    expect(await answer()).toMatchObject({ inHOP: false });
    box.advance(1);
    const later = await tokenOf(box, clientId, secret);
    expect(await (await availability(box, later)).json()).toEqual({
      availability: true,
      inHOP: true,
      status: "online",
    });
    await agents.remove("306", 19001, "bob");
    expect(await (await availability(box, later)).json()).toMatchObject({ availability: false, status: "busy" });
  });

  test("removing an unknown agent does not create a business unit", async () => {
    const { agents } = createBox().service;
    const before = await agents.availability("306", 19001);
    await expect(agents.remove("306", 19001, "ann")).rejects.toThrow("agent ann does not exist");
    expect(await agents.availability("306", 19001)).toEqual(before);
    expect(await agents.list()).toEqual([]);
  });

  test("an expired token: 401, Access Token Expired", async () => {
    const box = createBox();
    const { clientId, secret } = await registered(box);
    const token = await tokenOf(box, clientId, secret);
    box.advance(3_600_000 + 10_000);
    const response = await availability(box, token);
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual({ error: "invalid_token", error_description: "Access Token Expired" });
    expect(response.headers.get("WWW-Authenticate")).toContain(
      'error="invalid_token", error_description="Access Token Expired"',
    );
  });

  test("another site: 403 access_denied; an action outside the scope: 403 insufficient_scope", async () => {
    const box = createBox();
    const { clientId, secret } = await registered(box, ["306"]);
    const response = await availability(
      box,
      await tokenOf(box, clientId, secret),
      "businessUnitID=19001&output=JSON&siteID=307",
    );
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ error: "access_denied" });
    const other = await registered(box, ["306"]);
    // Today's registrations have a scope. Earlier versions allowed none.
    await box.service.documents.update("engagement.registrations", other.clientId, (stored) => ({
      ...(stored as object),
      scopes: [],
    }));
    const outside = await availability(box, await tokenOf(box, other.clientId, other.secret));
    expect(outside.status).toBe(403);
    expect(await outside.json()).toMatchObject({ error: "insufficient_scope" });
    expect(outside.headers.get("WWW-Authenticate")).toContain('error="insufficient_scope"');
  });

  test.each([
    ["businessUnitID=1&output=JSON", "siteID is missing"],
    ["siteID=306&output=JSON", "businessUnitID is missing"],
    ["siteID=306&businessUnitID=x&output=JSON", "businessUnitID must be a number of at most 15 digits, got 'x'"],
    ["siteID=306&businessUnitID=1&output=XML", "output must be JSON, got 'XML'"],
    ["siteID=306&siteID=307&businessUnitID=1&output=JSON", "siteID must be given once"],
  ])("%s: 400", async (query, why) => {
    const box = createBox();
    const { clientId, secret } = await registered(box);
    const response = await availability(box, await tokenOf(box, clientId, secret), query);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: "invalid_request", error_description: why });
  });

  test("no token: a bare challenge", async () => {
    const response = await availability(createBox(), null);
    expect(response.status).toBe(401);
    expect(response.headers.get("WWW-Authenticate")).toBe('Bearer realm="vivavoce", scope="agent-availability"');
  });

  test("a lock ends tokens at once; the new registration has another id and secret", async () => {
    const box = createBox();
    const { clientId, secret } = await registered(box);
    const token = await tokenOf(box, clientId, secret);
    expect((await availability(box, token)).status).toBe(200);
    await box.service.registrations.lock(clientId);
    expect((await availability(box, token)).status).toBe(401);
    const refused = await ask(box, clientId, secret);
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ error: "invalid_client" });
    const again = await box.service.registrations.reregister(clientId);
    expect(again.registration).toMatchObject({ name: "Shop", sites: ["306"], replaces: clientId, lockedAt: null });
    expect(again.registration.clientId).not.toBe(clientId);
    expect(again.secret).not.toBe(secret);
    expect((await availability(box, await tokenOf(box, again.registration.clientId, again.secret))).status).toBe(200);
    expect((await availability(box, token)).status).toBe(401);
    await expect(box.service.registrations.lock("nobody")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("hours of operation", () => {
  const at = (text: string): number => Date.parse(text);
  const berlin: Hours = {
    timeZone: "Europe/Berlin",
    weekly: {
      mon: [
        ["09:00", "12:00"],
        ["13:00", "17:30"],
      ],
      fri: [["22:00", "02:00"]],
      sun: [["00:00", "24:00"]],
    },
    exceptions: { "2026-12-25": [], "2026-12-28": [["10:00", "11:00"]] },
  };

  test.each([
    ["2026-11-16T07:59:59Z", false, "Monday, a second before nine"],
    ["2026-11-16T08:00:00Z", true, "nine in winter"],
    ["2026-07-13T07:00:00Z", true, "nine in summer"],
    ["2026-11-16T11:00:00Z", false, "noon"],
    ["2026-11-16T16:29:59Z", true, "before half past five"],
    ["2026-11-16T16:30:00Z", false, "half past five"],
    ["2026-11-17T10:00:00Z", false, "Tuesday"],
    ["2026-11-20T21:00:00Z", true, "Friday night"],
    ["2026-11-21T00:59:59Z", true, "the night goes on"],
    ["2026-11-21T01:00:00Z", false, "and ends"],
    ["2026-11-22T22:59:59Z", true, "all Sunday"],
    ["2026-11-22T23:00:00Z", false, "until midnight there"],
    ["2026-12-25T21:30:00Z", false, "a day off, though a Friday"],
    ["2026-12-28T08:30:00Z", false, "other hours on that Monday"],
    ["2026-12-28T09:30:00Z", true, "the other hours"],
    ["2026-03-29T01:30:00Z", true, "the hour that daylight saving skips"],
  ])("%s: %s (%s)", (time, open) => {
    expect(isOpen(berlin, at(time))).toBe(open);
  });

  test("in UTC they agree with arithmetic on the minutes of the week", () => {
    const minute = fc.integer({ min: 0, max: 1439 });
    const text = (m: number): string =>
      `${String(Math.floor(m / 60)).padStart(2, "0")}:${String(m % 60).padStart(2, "0")}`;
    fc.assert(
      fc.property(fc.nat(6), minute, minute, fc.integer({ min: 0, max: 10_079 }), (day, from, to, now) => {
        const hours: Hours = { timeZone: "UTC", weekly: { [DAYS[day]!]: [[text(from), text(to)]] }, exceptions: {} };
        const start = day * 1440 + from;
        const length = (to - from + 1440) % 1440 || 1440;
        // 2026-11-15 is a Sunday.
        expect(isOpen(hours, at("2026-11-15T00:00:00Z") + now * 60_000)).toBe((now - start + 10_080) % 10_080 < length);
      }),
    );
  });

  test("without hours a unit is always open; malformed hours are refused", async () => {
    expect(isOpen(null, 0)).toBe(true);
    const { agents } = createBox().service;
    const hours = { timeZone: "UTC", weekly: {}, exceptions: {} };
    for (const wrong of [
      { ...hours, timeZone: "Mars/Olympus" },
      { ...hours, weekly: { someday: [] } as never },
      { ...hours, weekly: { mon: [["9:00", "17:00"]] as never } },
      { ...hours, weekly: { mon: [["24:00", "24:00"]] as never } },
      { ...hours, exceptions: { "2026-02-30": [] } },
    ]) {
      await expect(agents.setHours("306", 1, wrong)).rejects.toMatchObject({ code: "invalid_request" });
    }
    await expect(agents.put("3/6", 1, { id: "a" })).rejects.toMatchObject({ code: "invalid_request" });
    await expect(agents.put("306", 1.5, { id: "a" })).rejects.toMatchObject({ code: "invalid_request" });
  });
});
