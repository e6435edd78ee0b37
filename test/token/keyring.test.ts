import { decodeProtectedHeader, generateKeyPair } from "jose";
import { describe, expect, test } from "vitest";
import { createTokenService } from "../../src/token/service.js";
import { type Box, basic, createBox, createRuntimeClient, form, ISSUER } from "./box.js";

const issue = async (box: Box, clientId: string, secret: string): Promise<string> => {
  const response = await box.fetch(
    "/oauth2/token",
    form(basic(clientId, secret), { grant_type: "client_credentials", scope: "bio" }),
  );
  return ((await response.json()) as { access_token: string }).access_token;
};
const kid = (token: string): string => decodeProtectedHeader(token).kid ?? "";
const published = async (box: Box) =>
  ((await (await box.fetch("/oauth2/jwks")).json()) as { keys: Record<string, string>[] }).keys;

describe("signing keys", () => {
  test("the published keys have no private part", async () => {
    const box = createBox();
    const keys = await published(box);
    expect(keys).toHaveLength(1);
    expect(Object.keys(keys[0]!).sort()).toEqual(["alg", "e", "kid", "kty", "n", "use"]);
    expect(await (await box.fetch("/.well-known/jwks.json")).json()).toEqual({ keys });
  });

  test("a rotation refuses no token that is still valid, and publishes the new key before it signs", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const old = await issue(box, clientId, secret);
    const { kid: next } = await box.service.keyring.rotate();
    expect((await published(box)).map((key) => key.kid)).toEqual([kid(old), next]);
    expect(kid(await issue(box, clientId, secret))).toBe(kid(old));
    box.advance(60_000);
    const fresh = await issue(box, clientId, secret);
    expect(kid(fresh)).toBe(next);
    for (const token of [old, fresh]) await box.service.runtime.verify(token, "bio");
    box.advance(830_000);
    await box.service.runtime.verify(old, "bio");
    box.advance(3_700_000);
    expect((await published(box)).map((key) => key.kid)).toEqual([next]);
  });

  test("an old key is published until its last token has expired, and leaves the ring with the next rotation", async () => {
    const box = createBox();
    const { kid: first } = await box.service.keyring.signer();
    const { kid: second } = await box.service.keyring.rotate();
    // It signs for another minute; its last token is valid for an hour and five seconds.
    const lastMs = 60_000 + 3_605_000;
    box.advance(lastMs - 1);
    expect((await published(box)).map((key) => key.kid)).toEqual([first, second]);
    box.advance(1);
    expect((await published(box)).map((key) => key.kid)).toEqual([second]);
    const { kid: third } = await box.service.keyring.rotate();
    expect((await box.service.keyring.list()).map((key) => key.kid)).toEqual([second, third]);
  });

  test("with a clock that was set back, the first key signs and revocations of other replicas are still noticed", async () => {
    const box = createBox();
    const other = createTokenService({ documents: box.service.documents, issuer: ISSUER, clock: { now: box.now } });
    const { clientId, secret } = await createRuntimeClient(box);
    await issue(box, clientId, secret);
    box.advance(-86_400_000);
    await box.service.runtime.verify(await issue(box, clientId, secret), "bio");
    box.advance(-86_400_000);
    const { kid: next } = await other.keyring.rotate({ revoke: true });
    expect(kid(await issue(box, clientId, secret))).toBe(next);
  });

  test("a leaked key and its tokens are refused at once", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const old = await issue(box, clientId, secret);
    await box.service.keyring.rotate({ revoke: true });
    box.advance(11_000);
    await expect(box.service.runtime.verify(old, "bio")).rejects.toMatchObject({ code: "invalid_token" });
    await box.service.runtime.verify(await issue(box, clientId, secret), "bio");
  });

  test("calls that began with a token of a leaked key end, also on replicas; those of a replaced key go on", async () => {
    const box = createBox();
    const other = createTokenService({ documents: box.service.documents, issuer: ISSUER, clock: { now: box.now } });
    const { clientId, secret } = await createRuntimeClient(box);
    const first = await box.service.runtime.verify(await issue(box, clientId, secret), "bio");
    await box.service.keyring.rotate();
    box.advance(4_000_000);
    const second = await box.service.runtime.verify(await issue(box, clientId, secret), "bio");
    await box.service.keyring.rotate();
    box.advance(6_000);
    for (const { runtime } of [box.service, other])
      expect([await runtime.isRevoked(first), await runtime.isRevoked(second)]).toEqual([false, false]);
    await box.service.keyring.rotate({ revoke: true });
    expect(await box.service.runtime.isRevoked(second)).toBe(true);
    box.advance(6_000);
    expect(await other.runtime.isRevoked(second)).toBe(true);
    // The key of the first was replaced before any leaked.
    expect(await other.runtime.isRevoked(first)).toBe(false);
    await box.service.keyring.rotate();
    box.advance(6_000);
    expect(await other.runtime.isRevoked(second)).toBe(true);
    const fresh = await box.service.runtime.verify(await issue(box, clientId, secret), "bio");
    expect(await other.runtime.isRevoked(fresh)).toBe(false);
  });

  test("keys are replaced automatically when they are old", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const first = kid(await issue(box, clientId, secret));
    box.advance(90 * 86_400_000);
    await issue(box, clientId, secret);
    expect(await published(box)).toHaveLength(1);
    box.advance(1);
    expect(kid(await issue(box, clientId, secret))).toBe(first);
    expect(await published(box)).toHaveLength(2);
    box.advance(60_000);
    expect(kid(await issue(box, clientId, secret))).not.toBe(first);
  });

  test("many clients that ask at once when a key is old, on two replicas, get one new key", async () => {
    let now = Date.UTC(2026, 10, 16);
    let made = 0;
    const options = {
      clock: { now: () => now },
      keys: {
        async generateKey() {
          made++;
          return generateKeyPair("RS256", { extractable: true });
        },
      },
    };
    const box = createBox(options);
    const { clientId, secret } = await createRuntimeClient(box);
    await issue(box, clientId, secret);
    const replica = createBox({ ...options, documents: box.service.documents });
    now += 91 * 86_400_000;
    await Promise.all(Array.from({ length: 10 }, (_, i) => issue(i % 2 ? box : replica, clientId, secret)));
    expect(await published(box)).toHaveLength(2);
    // One on each replica, of which one was stored.
    expect(made).toBe(3);
  });

  test("after a rotation with the clock set back, the new key signs for as long as it is published", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    await box.service.keyring.rotate();
    box.advance(-3_600_000);
    const { kid: next } = await box.service.keyring.rotate();
    for (const ms of [60_000, 3_600_000, 7_200_000]) {
      box.advance(ms);
      expect(kid(await issue(box, clientId, secret))).toBe(next);
      expect((await published(box)).map((key) => key.kid)).toContain(next);
    }
  });

  test("a key that was made while the clock was years ahead is replaced when the clock is right", async () => {
    const box = createBox();
    const { clientId, secret } = await createRuntimeClient(box);
    const ahead = kid(await issue(box, clientId, secret));
    box.advance(-5 * 365 * 86_400_000);
    await box.service.runtime.verify(await issue(box, clientId, secret), "bio");
    box.advance(60_000);
    const token = await issue(box, clientId, secret);
    expect(kid(token)).not.toBe(ahead);
    await box.service.runtime.verify(token, "bio");
    expect(await published(box)).toHaveLength(2);
  });

  test("replicas that start together share the first key and follow each other's rotations", async () => {
    const box = createBox();
    const other = createTokenService({ documents: box.service.documents, issuer: ISSUER, clock: { now: box.now } });
    const [a, b] = await Promise.all([box.service.keyring.signer(), other.keyring.signer()]);
    expect(a.kid).toBe(b.kid);
    const { clientId, secret } = await createRuntimeClient(box);
    const { kid: next } = await other.keyring.rotate();
    box.advance(60_001);
    const token = await issue(box, clientId, secret);
    expect(kid(token)).toBe(next);
    await other.runtime.verify(token, "bio");
  });

  test("a key that another replica revoked signs for less than five seconds", async () => {
    const box = createBox();
    const other = createTokenService({ documents: box.service.documents, issuer: ISSUER, clock: { now: box.now } });
    const { kid: first } = await box.service.keyring.signer();
    const { kid: next } = await other.keyring.rotate({ revoke: true });
    box.advance(4_999);
    expect((await box.service.keyring.signer()).kid).toBe(first);
    box.advance(1);
    expect((await box.service.keyring.signer()).kid).toBe(next);
  });

  test("a token of a key that another replica made a moment ago is accepted", async () => {
    const box = createBox();
    const replica = createBox({ documents: box.service.documents });
    const { clientId, secret } = await createRuntimeClient(box);
    await box.service.runtime.verify(await issue(box, clientId, secret), "bio");
    await replica.service.keyring.rotate({ revoke: true });
    const token = await issue(replica, clientId, secret);
    box.advance(1_000);
    await box.service.runtime.verify(token, "bio");
  });

  test.each(["ES256", "RS256", "EdDSA"] as const)("%s", async (algorithm) => {
    const box = createBox({ algorithm });
    const { clientId, secret } = await createRuntimeClient(box);
    const token = await issue(box, clientId, secret);
    expect(decodeProtectedHeader(token)).toMatchObject({ alg: algorithm, typ: "at+jwt" });
    await box.service.runtime.verify(token, "bio");
  });

  test("an issuer that is not an origin, and equal audiences, are refused", () => {
    const { documents } = createBox().service;
    for (const issuer of ["", "box", "https://box.example/", "https://box.example/path", "ftp://box.example"]) {
      expect(() => createTokenService({ documents, issuer })).toThrow(TypeError);
    }
    expect(() =>
      createTokenService({ documents, issuer: ISSUER, audiences: { runtime: "a", tooling: "a", engagement: "b" } }),
    ).toThrow(TypeError);
  });
});
