import { describe, expect, it, vi } from "vitest";
import { throttled } from "../../src/token/client-credentials.js";
import { administerService } from "../../src/token/management-client.js";
import { basic, createBox, createRuntimeClient, form } from "./box.js";

describe("the last owner", () => {
  it("is recognized", async () => {
    const { service } = createBox();
    await service.users.create({ name: "olga", role: "owner", password: "a long password" });
    await service.users.create({ name: "max", role: "member", password: "a long password" });
    const last = { message: expect.stringContaining("the last owner") };
    const take = (name: string) => service.users.keepingAnOwner(name, async () => "taken");
    await expect(take("Olga")).rejects.toMatchObject(last);
    expect(await take("max")).toBe("taken");
    await service.users.change("max", { role: "owner" });
    expect(await take("olga")).toBe("taken");
    await service.users.change("max", { disabled: true });
    await expect(take("olga")).rejects.toMatchObject(last);
  });

  it("is kept by every way to change users", async () => {
    const box = createBox();
    const { users, deleteUser } = administerService(box.service);
    await users.create({ name: "olga", role: "owner", password: "a long password" });
    const last = { code: "conflict", message: expect.stringContaining("the last owner") };
    await expect(users.change("olga", { role: "member" })).rejects.toMatchObject(last);
    await expect(users.change("olga", { disabled: true })).rejects.toMatchObject(last);
    await expect(deleteUser("olga")).rejects.toMatchObject(last);
    // The way back in for an owner who forgot the password.
    await users.change("olga", { password: "another long password" });
    await users.create({ name: "max", role: "owner", password: "a long password" });
    expect(await users.change("olga", { role: "member" })).toMatchObject({ role: "member" });
    await deleteUser("olga");
  });

  it("stays when two owners demote each other at once, and a dead box does not hold up the next change", async () => {
    const box = createBox();
    const { users } = box.service;
    for (const name of ["olga", "max"]) await users.create({ name, role: "owner", password: "a long password" });
    const demote = (name: string) => users.keepingAnOwner(name, () => users.change(name, { role: "member" }));
    const outcomes = await Promise.allSettled([demote("olga"), demote("max")]);
    expect(outcomes.filter(({ status }) => status === "fulfilled").length).toBeLessThanOrEqual(1);
    expect((await users.list()).filter(({ role }) => role === "owner").length).toBeGreaterThanOrEqual(1);

    await users.create({ name: "eva", role: "owner", password: "a long password" });
    void users.keepingAnOwner("eva", () => new Promise(() => {}));
    await new Promise((resolve) => setImmediate(resolve));
    await expect(demote("eva")).rejects.toMatchObject({ message: expect.stringContaining("try again") });
    box.advance(60_000);
    expect(await demote("eva")).toMatchObject({ role: "member" });
  });
});

describe("guessing in a client's name", () => {
  const ask = async (box: ReturnType<typeof createBox>, id: string, secret: string, address: string) => {
    const attempt = box.service.clientCredentials({ client: { clientId: id, secret }, scope: "bio", address });
    return attempt.then(
      () => 200,
      (error: { status: number }) => error.status,
    );
  };

  it("from many addresses does not lock out a client at an address it used before", async () => {
    const box = createBox();
    const client = await createRuntimeClient(box);
    expect(await ask(box, client.clientId, client.secret, "10.0.0.1")).toBe(200);
    for (let i = 0; i < 60; i++) await ask(box, client.clientId, "wrong", `10.1.0.${i}`);
    expect(await ask(box, client.clientId, client.secret, "10.9.9.9")).toBe(429);
    expect(await ask(box, client.clientId, client.secret, "10.0.0.1")).toBe(200);
  });

  it("does not lock out a client at an address that the store could not note at first", async () => {
    const box = createBox();
    const client = await createRuntimeClient(box);
    const use = () => ask(box, client.clientId, client.secret, "10.0.0.1");
    vi.spyOn(box.service.documents, "put").mockRejectedValueOnce(new Error("the database does not answer"));
    expect(await use()).not.toBe(200);
    expect(await use()).toBe(200);
    for (let i = 0; i < 60; i++) await ask(box, client.clientId, "wrong", `10.1.0.${i}`);
    expect(await use()).toBe(200);
  });

  it("is counted up to 50 times in an hour before its name waits", async () => {
    const box = createBox();
    const client = await createRuntimeClient(box);
    const fail = async (from: number, to: number) => {
      for (let i = from; i < to; i++) expect(await ask(box, client.clientId, "wrong", `10.1.0.${i}`)).toBe(401);
    };
    await fail(0, 49);
    expect(await ask(box, client.clientId, client.secret, "10.9.9.1")).toBe(200);
    await fail(49, 99);
    expect(await ask(box, client.clientId, client.secret, "10.9.9.2")).toBe(429);
  });

  it("costs no query but that for the client, and no write", async () => {
    const box = createBox();
    const { documents } = box.service;
    const { clientId } = await createRuntimeClient(box);
    const spies = (["get", "put", "insert", "update", "delete"] as const).map((name) => vi.spyOn(documents, name));
    const calls = () => spies.map((spy) => spy.mock.calls.length);
    for (let i = 0; i < 5; i++) expect(await ask(box, clientId, "wrong", "10.0.0.1")).toBe(401);
    expect(await ask(box, clientId, "wrong", "10.0.0.1")).toBe(429);
    expect(calls()).toEqual([5, 0, 0, 0, 0]);
  });

  it("is remembered for the latest 10,000 names and addresses", async () => {
    const box = createBox();
    const { clientThrottle } = box.service;
    const fail = async (client: string, address: string) => (await clientThrottle.attempt(client, address)).failed();
    const failAll = async () => {
      for (let i = 0; i < 5; i++) await fail("client", "10.0.0.1");
    };
    await failAll();
    // Each has three entries: name, address, and both.
    for (let i = 0; i < 3332; i++) await fail(`other ${i}`, `10.1.${i >> 8}.${i & 255}`);
    await expect(fail("client", "10.0.0.1")).rejects.toMatchObject({ status: 429 });
    await fail("one more", "10.2.0.1");
    // After this wait, a sixth failure would begin a longer one.
    box.advance(1000);
    await failAll();
  });

  it("is forgotten with the success of an attempt that was running when the wait began", async () => {
    const { throttle } = createBox().service;
    const attempt = () => throttle.attempt("client", "203.0.113.7");
    await (await attempt()).failed();
    const right = await attempt();
    for (let i = 0; i < 4; i++) await (await attempt()).failed();
    await expect(attempt()).rejects.toMatchObject({ status: 429 });
    await right.succeeded();
    await attempt();
  });

  it("is not made easier by a secret that the guesser knows", async () => {
    const box = createBox();
    const client = await createRuntimeClient(box);
    for (let i = 0; i < 30; i++) {
      expect(await ask(box, client.clientId, client.secret, "10.0.0.1")).toBe(200);
      expect(await ask(box, `victim-${i}`, "wrong", "10.0.0.1")).toBe(401);
    }
    expect(await ask(box, "victim", "wrong", "10.0.0.1")).toBe(429);
  });

  it("with names of any length is counted for each", async () => {
    const box = createBox();
    const [one, other] = ["1", "2"].map((end) => "n".repeat(20_000) + end) as [string, string];
    for (let i = 0; i < 5; i++) expect(await ask(box, one, "wrong", "10.0.0.1")).toBe(401);
    expect(await ask(box, one, "wrong", "10.0.0.1")).toBe(429);
    expect(await ask(box, other, "wrong", "10.0.0.1")).toBe(401);
  });

  const dayMs = 86_400_000;
  it.each<[string, (box: ReturnType<typeof createBox>, use: () => Promise<unknown>) => Promise<void>, number]>([
    ["it is used once", async () => {}, 30 * dayMs],
    [
      "it is used again within a day, which is not written",
      async (box, use) => {
        box.advance(dayMs - 1);
        await use();
        box.advance(1 - dayMs);
      },
      30 * dayMs,
    ],
    [
      "it is used again a day later",
      async (box, use) => {
        box.advance(dayMs);
        await use();
        box.advance(-dayMs);
      },
      31 * dayMs,
    ],
    [
      "it is used again before that, by a clock that was set back",
      async (box, use) => {
        box.advance(-dayMs);
        await use();
        box.advance(dayMs);
      },
      29 * dayMs,
    ],
  ])("an address is known for thirty days: %s", async (_, more, knownMs) => {
    for (const [ms, status] of [
      [knownMs - 1, 200],
      [knownMs, 429],
    ] as const) {
      const box = createBox();
      const client = await createRuntimeClient(box);
      const use = () => ask(box, client.clientId, client.secret, "10.0.0.1");
      expect(await use()).toBe(200);
      await more(box, use);
      box.advance(ms);
      for (let i = 0; i < 50; i++) await ask(box, client.clientId, "wrong", `10.1.0.${i}`);
      expect(await use()).toBe(status);
    }
  });

  it("from many addresses of one IPv6 network counts as one address", async () => {
    const box = createBox();
    const hosts = Array.from({ length: 30 }, (_, i) => `2001:db8:0:7:${(i + 1).toString(16)}::1`);
    for (const [i, host] of hosts.entries()) expect(await ask(box, `nobody-${i}`, "wrong", host)).toBe(401);
    for (const same of ["2001:db8::7:0:0:0:1", "2001:0DB8:0:0007::2", "2001:db8:0:7:ffff:ffff:ffff:ffff"])
      expect(await ask(box, "nobody", "wrong", same), same).toBe(429);
    // A proxy may write a zone.
    for (const zone of ["a:b:c:d:e:f:g:h", "eth0.1"])
      expect(await ask(box, "nobody", "wrong", `2001:db8:0:7::1%${zone}`)).toBe(429);
    // The last one is an IPv4 address behind NAT64.
    for (const other of ["2001:db8:0:8::1", "2001:db8::7", "::1", "10.0.0.1", "2001:db8:0:7::192.0.2.1"])
      expect(await ask(box, "nobody", "wrong", other), other).toBe(401);
  });

  it("has a bounded delay even if a clock that ran ahead recorded it", async () => {
    const box = createBox();
    const client = await createRuntimeClient(box);
    const year = 365 * 86_400_000;
    box.advance(year);
    for (let i = 0; i < 8; i++) await ask(box, client.clientId, "wrong", "10.0.0.1");
    box.advance(-year);
    const init = form(basic(client.clientId, client.secret), { grant_type: "client_credentials", scope: "bio" });
    const response = await box.fetch("/oauth2/token", init);
    expect(Number(response.headers.get("retry-after") ?? 0)).toBeLessThanOrEqual(15 * 60);
    box.advance(15 * 60_000);
    expect(await ask(box, client.clientId, client.secret, "10.0.0.1")).toBe(200);
  });
});

describe("guessing a person's password", () => {
  it("costs at most one query during a known wait, which ends within a second of its end in another replica", async () => {
    const box = createBox();
    const { documents, throttle } = box.service;
    const [reads, inserts, updates] = (["get", "insert", "update"] as const).map((name) => vi.spyOn(documents, name));
    const calls = () => [reads, inserts, updates].map((spy) => spy!.mock.calls.length);
    const ask = (name: string, address: string) =>
      throttled(throttle, name, address, async () => null, { countFirst: true }).then(
        () => 401,
        (error: { status: number }) => error.status,
      );
    expect(await ask("nobody", "10.0.0.1")).toBe(401);
    expect(calls()).toEqual([3, 3, 0]);
    const entry = ["token.failures", "pair 10.0.0.1 nobody"] as const;
    await documents.put(...entry, { count: 20, until: box.now() + 60_000 });
    expect(await ask("nobody", "10.0.0.1")).toBe(429);
    const before = calls();
    expect(await ask("nobody", "10.0.0.1")).toBe(429);
    expect(calls()).toEqual(before);
    await documents.put("token.failures", "client known", { count: 60, until: box.now() + 5000 });
    for (const from of ["10.0.0.2", "10.0.0.3"]) expect(await ask("known", from)).toBe(429);
    // The second only asks whether they are known at that address.
    expect(calls()).toEqual([before[0]! + 4 + 1, before[1], before[2]]);
    await documents.delete(...entry);
    box.advance(999);
    expect(await ask("nobody", "10.0.0.1")).toBe(429);
    box.advance(1);
    expect(await ask("nobody", "10.0.0.1")).toBe(401);
  });

  it("with names of any length is counted under short keys", async () => {
    const { documents, throttle } = createBox().service;
    await throttled(throttle, "n".repeat(20_000), "10.0.0.1", async () => null, { countFirst: true });
    for (const { id } of await documents.list("token.failures")) expect(id.length).toBeLessThan(200);
  });

  const attempt = (box: ReturnType<typeof createBox>, address: string, right: boolean) =>
    throttled(box.service.throttle, "user olga", address, async () => (right ? true : null), { countFirst: true }).then(
      (found) => (found ? 200 : 401),
      (error: { status: number }) => error.status,
    );

  it("is checked a hundred times at once and twice a second, whoever tries; not where they signed in before", async () => {
    const box = createBox();
    const check = vi.fn(async () => null);
    const guess = (name: string, address: string) =>
      throttled(box.service.throttle, name, address, check, { countFirst: true }).then(
        () => 401,
        (error: { status: number; headers: Record<string, string> }) => [error.status, error.headers["Retry-After"]],
      );
    expect(await attempt(box, "10.0.0.1", true)).toBe(200);
    for (let i = 1; i < 100; i++) expect(await guess(`user ${i}`, `10.1.0.${i}`)).toBe(401);
    expect(await guess("user 100", "10.1.0.100")).toEqual([429, "1"]);
    expect(check).toHaveBeenCalledTimes(99);
    expect(await attempt(box, "10.0.0.1", true)).toBe(200);
    box.advance(500);
    expect(await guess("user 100", "10.1.0.100")).toBe(401);
    expect(await guess("user 101", "10.1.0.101")).toEqual([429, "1"]);
  });

  it("from many addresses, for hours, does not lock them out where they signed in before", async () => {
    const box = createBox();
    expect(await attempt(box, "10.0.0.1", true)).toBe(200);
    for (let i = 0; i < 120; i++) {
      await attempt(box, `10.1.0.${i}`, false);
      box.advance(1000);
    }
    expect(await attempt(box, "10.1.9.9", true)).toBe(429);
    expect(await attempt(box, "10.0.0.1", true)).toBe(200);
    // Whoever shares their address still has few guesses.
    for (let i = 0; i < 5; i++) expect(await attempt(box, "10.0.0.1", false)).toBe(401);
    expect(await attempt(box, "10.0.0.1", false)).toBe(429);
  });

  it("at addresses where they signed in before counts for their name elsewhere", async () => {
    const box = createBox();
    const known = Array.from({ length: 13 }, (_, i) => `10.0.0.${i}`);
    for (const address of known) expect(await attempt(box, address, true)).toBe(200);
    for (const address of known) for (let i = 0; i < 4; i++) expect(await attempt(box, address, false)).toBe(401);
    expect(await attempt(box, "10.9.9.9", true)).toBe(429);
  });

  it("an office of many people can sign in from one address, and none of them gets free guesses by it", async () => {
    const { service } = createBox();
    const signIn = (name: string, right: boolean) =>
      throttled(service.throttle, `user ${name}`, "10.0.0.1", async () => (right ? true : null), {
        countFirst: true,
      }).then(
        (found) => (found ? 200 : 401),
        (error: { status: number }) => error.status,
      );
    for (let i = 0; i < 40; i++) expect(await signIn(`user-${i}`, true)).toBe(200);
    for (let i = 0; i < 29; i++) expect(await signIn(`victim-${i}`, false)).toBe(401);
    expect(await signIn("user-0", true)).toBe(200);
    expect(await signIn("victim-29", false)).toBe(401);
    expect(await signIn("user-0", true)).toBe(429);
  });
});
