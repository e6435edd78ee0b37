/** How long failures, sessions and revocations are remembered, to the millisecond. */
import { describe, expect, it, vi } from "vitest";
import { createMemoryStore } from "../../src/store/memory.js";
import { OPERATOR_PAGE } from "../../src/token/own-pages.js";
import { createRevocations } from "../../src/token/revocations.js";
import { basic, createBox, createRuntimeClient, form } from "./box.js";

const hourMs = 3_600_000;

describe("failures of a client from one address", () => {
  const opened = async () => {
    const box = createBox();
    const client = await createRuntimeClient(box);
    const ask = (secret = client.secret) =>
      box.service
        .clientCredentials({ client: { clientId: client.clientId, secret }, scope: "bio", address: "10.0.0.1" })
        .then(
          () => "granted",
          ({ code, headers }) => (code === "invalid_client" ? "refused" : `wait ${headers["Retry-After"]} s`),
        );
    const fail = async (times: number) => {
      for (let i = 0; i < times; i++) expect(await ask("wrong")).toBe("refused");
    };
    return { box, ask, fail };
  };

  it("cost nothing four times, then a second, then twice as long each time", async () => {
    const { box, ask, fail } = await opened();
    await fail(4);
    expect(await ask()).toBe("granted");
    await fail(5);
    for (const seconds of [1, 2, 4, 8]) {
      expect(await ask()).toBe(`wait ${seconds} s`);
      box.advance(1000 * seconds - 1);
      expect(await ask()).toBe("wait 1 s");
      box.advance(1);
      await fail(1);
    }
    box.advance(16_000);
    expect(await ask()).toBe("granted");
  });

  it("all count that are sent at once", async () => {
    const { ask } = await opened();
    expect(await Promise.all(Array.from({ length: 10 }, () => ask("wrong")))).toEqual(Array(10).fill("refused"));
    expect(await ask()).toBe("wait 32 s");
  });

  it.each([
    [hourMs - 1, "wait 1 s"],
    [hourMs, "granted"],
  ])("are added up for an hour: the fifth after %i ms", async (afterMs, answer) => {
    const { box, ask, fail } = await opened();
    await fail(4);
    box.advance(afterMs);
    await fail(1);
    expect(await ask()).toBe(answer);
  });
});

it.each<[string, (n: number) => [string, string], number]>([
  ["a client from an address", () => ["c", "192.0.2.1"], 900],
  ["an address", (n) => [`client ${n}`, "192.0.2.1"], 60],
  ["the name of a client", (n) => ["c", `192.0.2.${n}`], 5],
])("after failures of %s, nobody waits longer than documented", async (_, who, seconds) => {
  const { service, advance } = createBox();
  const waits: number[] = [];
  for (let n = 0; n < 70 && waits.at(-1) !== seconds; n++) {
    const [client = "", address = ""] = who(n);
    try {
      await (await service.throttle.attempt(client, address)).failed();
    } catch (error) {
      waits.push(Number((error as { headers: Record<string, string> }).headers["Retry-After"]));
      advance(1000 * waits.at(-1)!);
    }
  }
  expect(waits.at(-1)).toBe(seconds);
  expect(Math.max(...waits)).toBe(seconds);
});

it("a browser session lasts for eight hours", async () => {
  const { service, advance } = createBox();
  const user = await service.users.create({ name: "olga", role: "owner", password: "a long password" });
  const { cookie } = await service.sessions.start(user);
  advance(8 * hourMs - 1);
  expect(await service.sessions.find(cookie)).toMatchObject({ user: { name: "olga" } });
  advance(1);
  expect(await service.sessions.find(cookie)).toBeNull();
});

it("a password that is set in the same millisecond ends the sessions of the one before", async () => {
  const { users, sessions } = createBox().service;
  const user = await users.create({ name: "olga", role: "owner", password: "a long password" });
  const { cookie } = await sessions.start(user);
  const changed = await users.change("olga", { password: "another long password" });
  expect(await sessions.find(cookie)).toBeNull();
  expect(await sessions.find((await sessions.start(changed)).cookie)).not.toBeNull();
});

it("revocations of other replicas are read once a second", async () => {
  let now = 0;
  const clock = { now: () => now };
  const { documents } = createMemoryStore(clock);
  const [here, there] = [createRevocations(documents, clock, 900), createRevocations(documents, clock, 900)];
  const reads = vi.spyOn(documents, "list");
  const token = { jti: "j", clientId: "c", gkScopes: new Set<string>(), keyId: null, issuedAt: 0 };
  expect(await here.isRevoked(token)).toBe(false);
  expect(await here.isRevoked(token)).toBe(false);
  await there.revoke(token, 900);
  now = 999;
  expect(await here.isRevoked(token)).toBe(false);
  expect(reads).toHaveBeenCalledTimes(1);
  now = 1000;
  expect(await here.isRevoked(token)).toBe(true);
  expect(await here.isRevoked(token)).toBe(true);
  expect(reads).toHaveBeenCalledTimes(2);
});

it("revocations of other replicas are read also after the clock was set back", async () => {
  let now = 10_000_000;
  const clock = { now: () => now };
  const { documents } = createMemoryStore(clock);
  const [here, there] = [createRevocations(documents, clock, 900), createRevocations(documents, clock, 900)];
  const token = { jti: "j", clientId: "c", gkScopes: new Set<string>(), keyId: null, issuedAt: 0 };
  expect(await here.isRevoked(token)).toBe(false);
  now -= 3_600_000;
  await there.revoke(token, now / 1000 + 900);
  expect(await here.isRevoked(token)).toBe(true);
});

it("a revocation is kept for a minute after the token has expired, because clocks differ", async () => {
  let now = Date.UTC(2026, 10, 16);
  const clock = { now: () => now };
  const { documents } = createMemoryStore(clock);
  const revocations = createRevocations(documents, clock, 900);
  await revocations.revoke({ jti: "j", clientId: "c" }, now / 1000 + 900);
  await revocations.endClient("c");
  now += 959_999;
  expect(await documents.list("revoked-tokens")).toHaveLength(2);
  now += 1;
  expect(await documents.list("revoked-tokens")).toEqual([]);
});

it("a token in its last seconds, which only the clock skew still allows, can be revoked", async () => {
  const box = createBox();
  const { clientId, secret } = await createRuntimeClient(box);
  const client = { clientId, secret };
  const { access_token } = await box.service.clientCredentials({ client, scope: "bio", address: "127.0.0.1" });
  box.advance(902_000);
  await box.service.runtime.verify(access_token);
  expect((await box.fetch("/oauth2/revoke", form(basic(clientId, secret), { token: access_token }))).status).toBe(200);
  await expect(box.service.runtime.verify(access_token)).rejects.toThrow("the token was revoked");
});

it("a client that revokes thousands of tokens ends all that it has, and no others; its later ones are valid", async () => {
  let now = Date.UTC(2026, 10, 16);
  const clock = { now: () => now };
  const { documents } = createMemoryStore(clock);
  const revocations = createRevocations(documents, clock, 900);
  const token = (clientId: string, jti: string) => ({
    jti,
    clientId,
    gkScopes: new Set<string>(),
    keyId: null,
    issuedAt: now / 1000,
  });
  const revoke = (jti: string) => revocations.revoke(token("c1", jti), now / 1000 + 900);
  for (let i = 0; i < 2000; i++) await revoke(`t${i}`);
  expect(await revocations.isRevoked(token("c1", "used"))).toBe(false);
  for (let i = 2000; i < 2100; i++) await revoke(`t${i}`);
  expect(await documents.list("revoked-tokens")).toHaveLength(2001);
  for (const jti of ["t0", "t2099", "used"]) expect(await revocations.isRevoked(token("c1", jti))).toBe(true);
  expect(await revocations.isRevoked(token("c2", "used"))).toBe(false);
  now += 1000;
  expect(await revocations.isRevoked(token("c1", "later"))).toBe(false);
});

it("scopes taken from a client at the same moment on two replicas both end its tokens", async () => {
  const now = Date.UTC(2026, 10, 16);
  const clock = { now: () => now };
  const { documents } = createMemoryStore(clock);
  const [here, there] = [createRevocations(documents, clock, 900), createRevocations(documents, clock, 900)];
  await Promise.all([here.endClient("c1", ["a"]), there.endClient("c1", ["b"])]);
  const third = createRevocations(documents, clock, 900);
  const opening = (...gkScopes: string[]) => ({
    jti: null,
    clientId: "c1",
    gkScopes: new Set(gkScopes),
    keyId: null,
    issuedAt: now / 1000,
  });
  expect(await Promise.all([["a"], ["b", "c"], ["c"]].map((scopes) => third.isRevoked(opening(...scopes))))).toEqual([
    true,
    true,
    false,
  ]);
  await third.endClient("c1");
  expect(await third.isRevoked(opening("c"))).toBe(true);
});

it("a token revoked while the revocations of others are being read is refused from then on", async () => {
  const now = Date.UTC(2026, 10, 16);
  const clock = { now: () => now };
  const { documents } = createMemoryStore(clock);
  let answer: () => void = () => {};
  const { list } = documents;
  documents.list = async (collection) => {
    const listed = await list(collection);
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return listed;
  };
  const revocations = createRevocations(documents, clock, 900);
  const token = { jti: "t1", clientId: "c1", gkScopes: new Set<string>(), keyId: null, issuedAt: now / 1000 };
  const asked = revocations.isRevoked({ ...token, jti: "t2" });
  const revoked = revocations.revoke(token, now / 1000 + 900);
  await new Promise((resolve) => setTimeout(resolve, 10));
  answer();
  await Promise.all([asked, revoked]);
  expect(await revocations.isRevoked(token)).toBe(true);
});

it.each([400, -400])(
  "with a clock that is off by %i days when a password is set, older sessions and tokens end and new ones are valid",
  async (days) => {
    const box = createBox();
    const { users, sessions, credentials } = box.service;
    const before = await users.create({ name: "olga", role: "owner", password: "a long password" });
    const { credential, secret } = await credentials.create(before, { kind: "service", label: "script" });
    const token = async () => {
      const fields = { grant_type: "client_credentials", scope: "platform-api" };
      const response = await box.fetch("/oauth2/token", form(basic(credential.clientId, secret), fields));
      return ((await response.json()) as { access_token: string }).access_token;
    };
    const me = async (accessToken: string) =>
      (await box.fetch("/management/v1/me", { headers: { Authorization: `Bearer ${accessToken}` } })).status;
    const [old, oldToken] = [await sessions.start(before), await token()];
    expect(await me(oldToken)).toBe(200);

    box.advance(days * 86_400_000);
    const after = await users.change("olga", { password: "another long password" });
    box.advance(-days * 86_400_000);
    expect(await sessions.find(old.cookie)).toBeNull();
    expect(await me(oldToken)).toBe(401);
    expect(await sessions.find((await sessions.start(after)).cookie)).not.toBeNull();
    expect(await me(await token())).toBe(200);
  },
);

describe("a clock that is set back by years", () => {
  const years = 5 * 365 * 24 * hourMs;

  it("does not refuse the tokens of a client whose scope was removed and added again", async () => {
    const box = createBox();
    const { application, clientId, secret } = await createRuntimeClient(box, ["a", "b"]);
    const client = { clientId, secret };
    const token = async () =>
      (await box.service.clientCredentials({ client, scope: "bio", address: "127.0.0.1" })).access_token;
    const before = await token();
    await box.service.applications.bindScopes(application.id, clientId, ["a"]);
    await box.service.applications.bindScopes(application.id, clientId, ["a", "b"]);
    box.advance(-years);
    await expect(box.service.runtime.verify(before)).rejects.toThrow("iat is in the future");
    expect((await box.service.runtime.verify(await token())).gkScopes).toEqual(new Set(["a", "b"]));
  });

  it("does not stop sign-ins from being begun", async () => {
    const box = createBox({ pages: [OPERATOR_PAGE] });
    const begin = async () => (await box.fetch(`/oauth2/authorize?client_id=${OPERATOR_PAGE.clientId}`)).status;
    const first = await begin();
    box.advance(-years);
    expect([first, await begin()]).toEqual([400, 400]);
  });
});

it("a clock without a number does not make tokens last forever, and nothing fails", async () => {
  const { documents } = createMemoryStore();
  let now = Date.now() - 2 * hourMs;
  const box = createBox({ documents, clock: { now: () => now } });
  const { clientId, secret } = await createRuntimeClient(box);
  const client = { clientId, secret };
  const token = async () =>
    (await box.service.clientCredentials({ client, scope: "bio", address: "127.0.0.1" })).access_token;
  const old = await token();
  await box.service.runtime.verify(old);
  now = Number.NaN;
  await expect(box.service.runtime.verify(old)).rejects.toThrow("Access Token Expired");
  await box.service.runtime.verify(await token());
});
