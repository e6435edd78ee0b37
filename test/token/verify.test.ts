import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { base64url, exportJWK, exportSPKI, FlattenedSign, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { bearerError, createVerifier, type TrustedIssuer } from "../../src/token/verify.js";

const NOW = Date.UTC(2026, 10, 16, 10, 0, 0);
const S = NOW / 1000;
const clock = { now: () => NOW };
const ISS = "https://issuer.example";

const keys = await generateKeyPair("ES256", { extractable: true });
const otherKeys = await generateKeyPair("ES256", { extractable: true });
const jwk = { ...(await exportJWK(keys.publicKey)), kid: "k1", alg: "ES256" };

const base: JWTPayload = {
  iss: ISS,
  aud: "runtime",
  sub: "c1",
  client_id: "c1",
  scope: "bio tts",
  gk_scopes: ["a", "b"],
  iat: S,
  exp: S + 900,
};

const sign = (
  claims: JWTPayload = base,
  { key = keys.privateKey as CryptoKey | Uint8Array, header = {} } = {},
): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ alg: "ES256", kid: "k1", ...header }).sign(key, { crit: { x: true } });

const trusted: TrustedIssuer = { issuer: ISS, keys: { keys: [jwk] }, audience: "runtime" };
const verifier = createVerifier({ issuers: [trusted], clock });

const refused = (token: string, from = verifier) => expect(from.verify(token, "bio")).rejects;

describe("a good token", () => {
  test("gives access to its scopes and biometric scopes", async () => {
    const token = await verifier.verify(await sign(), "bio");
    expect(token).toMatchObject({ issuer: ISS, subject: "c1", clientId: "c1", expiresAt: S + 900 });
    expect([...token.scopes]).toEqual(["bio", "tts"]);
    expect([...token.gkScopes]).toEqual(["a", "b"]);
  });

  test("names its client as client_id, azp or sub, and its scopes as scope or scp", async () => {
    const { client_id: _, sub: __, scope: ___, ...bare } = base;
    const read = async (claims: JWTPayload, from = verifier) => {
      const { clientId, subject, scopes, jti } = await from.verify(await sign({ ...bare, ...claims }));
      return { clientId, subject, scopes: [...scopes], jti };
    };
    expect(await read({})).toEqual({ clientId: "", subject: "", scopes: [], jti: null });
    expect(await read({ sub: "s", scp: ["nlu"], jti: "j" })).toEqual({
      clientId: "s",
      subject: "s",
      scopes: ["nlu"],
      jti: "j",
    });
    expect(await read({ sub: "s", azp: "a", client_id: 7, scope: "bio  tts ", scp: "nlu" })).toMatchObject({
      clientId: "a",
      scopes: ["bio", "tts"],
    });
    expect(await read({ sub: "s", azp: 7 })).toMatchObject({ clientId: "s" });
    expect(await read({ azp: "a", client_id: "c" })).toMatchObject({ clientId: "c" });
    const renamed = createVerifier({ issuers: [{ ...trusted, scopeClaim: "permissions" }], clock });
    expect(await read({ permissions: ["bio"], scope: "tts" }, renamed)).toMatchObject({ scopes: ["bio"] });
  });

  test("has at most 16,384 characters", async () => {
    /** Base64 has no text of 4n + 1 characters, so the header is padded as well. */
    const ofLength = async (length: number) => {
      for (const note of ["", "x", "xx"]) {
        const padded = (pad: number) => sign({ ...base, pad: "x".repeat(pad) }, { header: { note } });
        const pad = Math.floor(((length - (await padded(0)).length) * 3) / 4);
        for (const token of [await padded(pad - 1), await padded(pad), await padded(pad + 1)])
          if (token.length === length) return token;
      }
      throw new Error(`no token of ${length} characters`);
    };
    await verifier.verify(await ofLength(16_384), "bio");
    await refused(await ofLength(16_385)).toMatchObject({ message: "the token is malformed" });
  });

  test("without the claim gives access to no biometric scope", async () => {
    const { gk_scopes: _, ...claims } = base;
    expect((await verifier.verify(await sign(claims), "bio")).gkScopes.size).toBe(0);
    for (const odd of [7, null, {}, [7, ""]])
      expect((await verifier.verify(await sign({ ...base, gk_scopes: odd }))).gkScopes.size).toBe(0);
  });

  test("is accepted within the clock skew, but not beyond", async () => {
    await verifier.verify(await sign({ ...base, exp: S - 29 }));
    await refused(await sign({ ...base, exp: S - 31 })).toMatchObject({
      code: "invalid_token",
      message: "Access Token Expired",
    });
    await verifier.verify(await sign({ ...base, iat: S + 29 }));
    await refused(await sign({ ...base, iat: S + 31 })).toMatchObject({ code: "invalid_token" });
    await refused(await sign({ ...base, nbf: S + 31 })).toMatchObject({ code: "invalid_token" });
    expect(() => createVerifier({ issuers: [trusted], clockSkewS: 301 })).toThrow(RangeError);
    createVerifier({ issuers: [trusted], clockSkewS: 300 });
    expect(() => createVerifier({ issuers: [{ ...trusted, clockSkewS: -1 }] })).toThrow(RangeError);
  });
});

describe("a bad token is refused with 401 invalid_token", () => {
  let good: string;
  beforeAll(async () => {
    good = await sign();
  });

  const cases: [string, () => Promise<string> | string, RegExp][] = [
    ["forged with another key", () => sign(base, { key: otherKeys.privateKey }), /signature/],
    ["of another audience", () => sign({ ...base, aud: "tooling" }), /aud/],
    ["without an audience", () => sign({ ...base, aud: undefined as never }), /aud/],
    ["of another issuer", () => sign({ ...base, iss: "https://evil.example" }), /issuer/],
    ["of an issuer that differs by a slash", () => sign({ ...base, iss: `${ISS}/` }), /issuer/],
    ["without an issuer", () => sign({ ...base, iss: undefined as never }), /issuer/],
    ["without an end", () => sign({ ...base, exp: undefined as never }), /exp/],
    ["expired", () => sign({ ...base, exp: S - 3600 }), /^Access Token Expired$/],
    ["with an unknown key id", () => sign(base, { header: { kid: "k2" } }), /key/],
    ["with a critical header we do not know", () => sign(base, { header: { crit: ["x"], x: 1 } }), /malformed/],
    [
      "with a payload that is not encoded (RFC 7797)",
      async () => {
        const payload = base64url.encode(JSON.stringify(base));
        const { protected: header, signature } = await new FlattenedSign(new TextEncoder().encode(payload))
          .setProtectedHeader({ alg: "ES256", kid: "k1", b64: false, crit: ["b64"] })
          .sign(keys.privateKey);
        return `${header}.${payload}.${signature}`;
      },
      /malformed/,
    ],
    ["with a broken header", () => `e30x.${base64url.encode(JSON.stringify(base))}.AAAA`, /malformed/],
    ["empty", () => "", /malformed/],
    ["not a token", () => "abc.def", /malformed/],
    ["too long", () => `${"a".repeat(20_000)}.b.c`, /malformed/],
    [
      "unsigned (alg none)",
      () => `${base64url.encode('{"alg":"none"}')}.${base64url.encode(JSON.stringify(base))}.`,
      /malformed|algorithm/,
    ],
    [
      "signed with the public key as a secret (algorithm confusion)",
      async () =>
        sign(base, { key: new TextEncoder().encode(await exportSPKI(keys.publicKey)), header: { alg: "HS256" } }),
      /algorithm/,
    ],
  ];

  test.each(["sub", "jti"])("whose %s is not a text", async (claim) => {
    await refused(await sign({ ...base, [claim]: 7 })).toMatchObject({
      code: "invalid_token",
      message: `the token's ${claim} must be a string`,
    });
  });

  test.each(cases)("%s", async (_, make, why) => {
    await refused(await make()).toMatchObject({
      code: "invalid_token",
      status: 401,
      message: expect.stringMatching(why),
    });
  });

  test("truncated anywhere", async () => {
    for (let length = 0; length < good.length; length += 7)
      await refused(good.slice(0, length)).toMatchObject({ code: "invalid_token" });
  });

  test("with any one character changed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(good.length - 1), fc.constantFrom(..."ABab01-_."), async (at, character) => {
        // The last character of a base64url part has bits that no decoder reads.
        fc.pre(good[at] !== character && good[at + 1] !== "." && at !== good.length - 1);
        await expect(verifier.verify(good.slice(0, at) + character + good.slice(at + 1))).rejects.toMatchObject({
          code: "invalid_token",
        });
      }),
      { numRuns: 150 },
    );
  });

  test("any text is refused without a crash", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), async (text) => {
        await expect(verifier.verify(text)).rejects.toMatchObject({ code: "invalid_token" });
      }),
    );
  });

  test("the challenge follows RFC 6750", async () => {
    await expect(verifier.authorize(undefined, "bio")).rejects.toMatchObject({
      status: 401,
      headers: { "WWW-Authenticate": 'Bearer realm="vivavoce", scope="bio"' },
    });
    await expect(verifier.authorize(null)).rejects.toMatchObject({
      headers: { "WWW-Authenticate": 'Bearer realm="vivavoce"' },
    });
    await expect(verifier.authorize("Basic abc", "bio")).rejects.toMatchObject({ status: 401 });
    for (const nothing of ["Bearer", "Bearer ", "bearer   "])
      await expect(verifier.authorize(nothing, "bio")).rejects.toMatchObject({ status: 401 });
    await expect(verifier.authorize("Bearer a b", "bio")).rejects.toMatchObject({
      status: 400,
      code: "invalid_request",
    });
    await expect(verifier.authorize(`Bearer ${good}x`, "bio")).rejects.toMatchObject({
      headers: { "WWW-Authenticate": expect.stringContaining('error="invalid_token"') },
    });
    expect((await verifier.authorize(`bearer ${good}`, "bio")).clientId).toBe("c1");
    const missing = {
      status: 403,
      code: "insufficient_scope",
      headers: { "WWW-Authenticate": expect.stringContaining('scope="asr"') },
    };
    await expect(verifier.authorize(`Bearer ${good}`, "asr")).rejects.toMatchObject(missing);
  });

  test("RFC 6750 §3's own example of a challenge", () => {
    expect(
      bearerError("invalid_token", "The access token expired", { realm: "example" }).headers["WWW-Authenticate"],
    ).toBe('Bearer realm="example", error="invalid_token", error_description="The access token expired"');
  });
});

describe("the examples of RFC 7515 and RFC 7519", () => {
  const example = {
    header: "eyJhbGciOiJFUzI1NiJ9",
    payload: "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
    signature: "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
  };
  const joe = createVerifier({
    issuers: [
      {
        issuer: "joe",
        audience: "anyone",
        keys: {
          keys: [
            {
              kty: "EC",
              crv: "P-256",
              x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
              y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
            },
          ],
        },
      },
    ],
    clock: { now: () => 1_300_819_000_000 },
  });

  test("RFC 7515 A.3: the signature is valid, and the missing audience is refused", async () => {
    await expect(joe.verify(Object.values(example).join("."))).rejects.toMatchObject({
      message: expect.stringContaining("aud"),
    });
    const forged = `${example.header}.${example.payload}.A${example.signature.slice(1)}`;
    await expect(joe.verify(forged)).rejects.toMatchObject({ message: expect.stringContaining("signature") });
  });

  test("RFC 7519 §3.1: a symmetric signature is refused", async () => {
    const hs256 =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    await expect(joe.verify(hs256)).rejects.toMatchObject({ message: expect.stringContaining("algorithm") });
  });
});

describe("a token seen before", () => {
  test("is refused from the second it expires, and for a scope it does not have", async () => {
    let now = NOW;
    const moving = createVerifier({ issuers: [trusted], clock: { now: () => now }, clockSkewS: 0 });
    const token = await sign({ ...base, exp: S + 20 });
    for (const seconds of [0, 1, 19.9]) {
      now = NOW + seconds * 1000;
      await moving.verify(token, "bio");
      await expect(moving.verify(token, "nlu")).rejects.toMatchObject({ code: "insufficient_scope" });
    }
    now = NOW + 20_000;
    await refused(token, moving).toMatchObject({ message: "Access Token Expired" });
    // After a clock is set back, a token is not valid at a time for which it was not verified.
    now = NOW - 3_600_000;
    await refused(token, moving).toMatchObject({ code: "invalid_token" });
  });

  test("is refused when its key is removed or replaced under the same name", async () => {
    const other = { ...(await exportJWK(otherKeys.publicKey)), kid: "k1", alg: "ES256" };
    for (const left of [[], [other]]) {
      let now = NOW;
      let published = [jwk];
      const source = async () => ({ keys: published });
      const moving = createVerifier({ issuers: [{ ...trusted, keys: source }], clock: { now: () => now } });
      const token = await sign();
      await moving.verify(token, "bio");
      await moving.verify(token, "bio");
      published = left;
      now += 10_000;
      await moving.verify(token, "bio");
      now += 1;
      await refused(token, moving).toMatchObject({ code: "invalid_token" });
    }
  });
});

describe("keys from a function", () => {
  const opened = () => {
    const state = { now: NOW, published: [jwk], reads: 0 };
    const source = async () => {
      state.reads++;
      return { keys: state.published };
    };
    return {
      state,
      verifier: createVerifier({ issuers: [{ ...trusted, keys: source }], clock: { now: () => state.now } }),
    };
  };

  test("are read at most once a second for tokens that name unknown keys, or none", async () => {
    const { state, verifier: counting } = opened();
    await counting.verify(await sign(), "bio");
    state.published = [jwk, { ...(await exportJWK(otherKeys.publicKey)), kid: "k2", alg: "ES256" }];
    const next = await sign(base, { key: otherKeys.privateKey, header: { kid: "k2" } });
    state.now += 999;
    for (const kid of ["a", "b", "k2"])
      await refused(await sign(base, { header: { kid } }), counting).toThrow("unknown");
    expect(state.reads).toBe(1);
    state.now += 1;
    await counting.verify(next, "bio");
    expect(state.reads).toBe(2);
    for (const kid of ["a", undefined])
      await refused(await sign(base, { header: { kid } }), counting).toThrow("unknown");
    expect(state.reads).toBe(2);
  });

  test("are read again after the clock was set back", async () => {
    const { state, verifier: counting } = opened();
    const token = await sign({ ...base, iat: S - 7200 });
    await counting.verify(token, "bio");
    state.published = [];
    state.now -= 3_600_000;
    await refused(token, counting).toMatchObject({ code: "invalid_token" });
  });
});

describe("issuers", () => {
  test("several, each with its own keys, audience, algorithms and claim names", async () => {
    const foreign = await generateKeyPair("RS256", { extractable: true });
    const foreignJwk = { ...(await exportJWK(foreign.publicKey)), kid: "f1" };
    const both = createVerifier({
      issuers: [
        trusted,
        {
          issuer: "https://foreign.example",
          keys: { keys: [foreignJwk] },
          audience: ["voice", "voice2"],
          algorithms: ["RS256"],
          gkScopesClaim: "https://foreign.example/scopes",
        },
      ],
      clock,
    });
    const claims = {
      iss: "https://foreign.example",
      aud: ["x", "voice2"],
      azp: "client",
      sub: "u",
      scp: ["bio"],
      "https://foreign.example/scopes": "s1 s2",
      exp: S + 60,
    };
    const make = (payload: JWTPayload, alg = "RS256", key = foreign.privateKey) =>
      new SignJWT(payload).setProtectedHeader({ alg, kid: alg === "RS256" ? "f1" : "k1" }).sign(key);
    const token = await both.verify(await make(claims), "bio");
    expect(token).toMatchObject({ clientId: "client", subject: "u" });
    expect([...token.gkScopes]).toEqual(["s1", "s2"]);
    // The key of one issuer does not sign for another.
    await refused(await make({ ...claims, iss: ISS, aud: "runtime" }), both).toMatchObject({ code: "invalid_token" });
    await refused(await make(claims, "ES256", keys.privateKey), both).toMatchObject({ code: "invalid_token" });
    expect((await both.verify(await sign())).issuer).toBe(ISS);
  });

  test("the type of the token can be required", async () => {
    const typed = createVerifier({ issuers: [{ ...trusted, type: "at+jwt" }], clock });
    await typed.verify(await sign(base, { header: { typ: "at+jwt" } }));
    await refused(await sign(base, { header: { typ: "JWT" } }), typed).toMatchObject({ code: "invalid_token" });
    await refused(await sign(), typed).toMatchObject({ code: "invalid_token" });
  });

  test("settings that would weaken the check are refused", () => {
    expect(() => createVerifier({ issuers: [] })).toThrow(TypeError);
    for (const algorithm of ["none", "HS256", "dir"])
      expect(() => createVerifier({ issuers: [{ ...trusted, algorithms: [algorithm] }] })).toThrow(TypeError);
    expect(() => createVerifier({ issuers: [{ ...trusted, audience: "" }] })).toThrow(TypeError);
    expect(() => createVerifier({ issuers: [trusted, trusted] })).toThrow(TypeError);
  });

  test("keys in a file, by path or file URL, read again when a new key signs", async () => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-"));
    try {
      const file = join(folder, "jwks.json");
      await writeFile(file, JSON.stringify({ keys: [jwk] }));
      let now = NOW;
      const moving = { now: () => now };
      for (const source of [file, pathToFileURL(file).href]) {
        const fromFile = createVerifier({ issuers: [{ ...trusted, keys: source }], clock: moving });
        await fromFile.verify(await sign());
      }
      const fromFile = createVerifier({ issuers: [{ ...trusted, keys: file }], clock: moving });
      await fromFile.verify(await sign());
      const next = { ...(await exportJWK(otherKeys.publicKey)), kid: "k2", alg: "ES256" };
      await writeFile(file, JSON.stringify({ keys: [jwk, next] }));
      now += 2000;
      await fromFile.verify(await sign(base, { key: otherKeys.privateKey, header: { kid: "k2" } }));
      const missing = createVerifier({ issuers: [{ ...trusted, keys: join(folder, "none.json") }], clock });
      await refused(await sign(), missing).toMatchObject({
        ...{ status: 503, code: "server_error" },
        cause: { code: "ENOENT" },
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("an issuer that cannot be reached is retried every five seconds, however many tokens name it", async () => {
    let requests = 0;
    let now = NOW;
    let status = 500;
    const server = createServer((_, response) => {
      requests++;
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify({ keys: [jwk] }));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const url = new URL(`http://127.0.0.1:${port}/jwks`);
      const remote = createVerifier({ issuers: [{ ...trusted, keys: url }], clock: { now: () => now } });
      const ask = async (jti: number) =>
        refused(await sign({ ...base, jti: String(jti) }), remote).toMatchObject({
          status: 503,
          headers: { "Retry-After": "5" },
        });
      for (let i = 0; i < 20; i++) await ask(i);
      now += 4_999;
      await ask(20);
      expect(requests).toBe(1);
      now += 1;
      await ask(21);
      expect(requests).toBe(2);
      // A clock that is set back does not make the wait longer.
      now -= 3_600;
      await ask(22);
      expect(requests).toBe(3);
      status = 200;
      now += 5_000;
      await remote.verify(await sign(), "bio");
      await remote.verify(await sign({ ...base, jti: "another" }), "bio");
      expect(requests).toBe(4);
    } finally {
      server.close();
    }
  });

  test("keys at a URL, fetched once; a token with an unknown key does not keep others out", async () => {
    let requests = 0;
    const server = createServer((_, response) => {
      requests++;
      response.setHeader("Content-Type", "application/json").end(JSON.stringify({ keys: [jwk] }));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const remote = createVerifier({ issuers: [{ ...trusted, keys: `http://127.0.0.1:${port}/jwks` }], clock });
      const token = await sign();
      for (let i = 0; i < 5; i++) await remote.verify(token, "bio");
      await refused(await sign(base, { header: { kid: "forged" } }), remote).toMatchObject({ status: 401 });
      await remote.verify(await sign({ ...base, jti: "another" }), "bio");
      expect(requests).toBe(1);
    } finally {
      server.close();
    }
  });

  test("keys at a URL are fetched again after ten minutes, and for a new key after half a minute", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW });
    let requests = 0;
    let published = [jwk];
    const server = createServer((_, response) => {
      requests++;
      response.setHeader("Content-Type", "application/json").end(JSON.stringify({ keys: published }));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const remote = createVerifier({ issuers: [{ ...trusted, keys: `http://127.0.0.1:${port}/jwks` }] });
      let count = 0;
      const ask = async (key = keys.privateKey, kid = "k1") =>
        remote.verify(await sign({ ...base, jti: String(count++) }, { key, header: { kid } }), "bio");
      await ask();
      published = [jwk, { ...(await exportJWK(otherKeys.publicKey)), kid: "k2", alg: "ES256" }];
      vi.setSystemTime(NOW + 29_999);
      await expect(ask(otherKeys.privateKey, "k2")).rejects.toThrow("the token's key is unknown");
      vi.setSystemTime(NOW + 30_000);
      await ask(otherKeys.privateKey, "k2");
      expect(requests).toBe(2);
      vi.setSystemTime(NOW + 629_999);
      await ask();
      expect(requests).toBe(2);
      vi.setSystemTime(NOW + 630_000);
      await ask();
      expect(requests).toBe(3);
    } finally {
      vi.useRealTimers();
      server.close();
    }
  });

  test("a forged token that names no key does not keep others out, even if several keys fit", async () => {
    const next = { ...(await exportJWK(otherKeys.publicKey)), kid: "k2", alg: "ES256" };
    const server = createServer((_, response) => {
      response.setHeader("Content-Type", "application/json").end(JSON.stringify({ keys: [jwk, next] }));
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const remote = createVerifier({ issuers: [{ ...trusted, keys: `http://127.0.0.1:${port}/jwks` }], clock });
      await refused(await sign(base, { header: { kid: undefined } }), remote).toMatchObject({ status: 401 });
      await remote.verify(await sign(), "bio");
    } finally {
      server.close();
    }
  });
});
