import { createHash, scryptSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { auditTo, loggableClientId } from "../../src/token/audit.js";
import { parseBasic } from "../../src/token/basic.js";
import { basicAuthorization } from "../../src/token/cache.js";
import { formatClientId, parseClientId } from "../../src/token/client-id.js";
import { systemRandom } from "../../src/token/clock.js";
import { errorResponse, OAuthError, type OAuthErrorCode } from "../../src/token/errors.js";
import { createSecrets } from "../../src/token/secret.js";
import { generatePassword } from "../../src/token/users.js";

const header = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

describe("the Basic header", () => {
  test("RFC 6749 §2.3.1's own example", () => {
    expect(parseBasic("Basic czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3")).toEqual({
      clientId: "s6BhdRkqt3",
      secret: "7Fjfp0ZBr1KtDRbnfVdmIw",
    });
  });

  test("RFC 7617's own examples", () => {
    expect(parseBasic("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")).toEqual({ clientId: "Aladdin", secret: "open sesame" });
    expect(parseBasic("Basic dGVzdDoxMjPCow==")).toEqual({ clientId: "test", secret: "123£" });
  });

  test("reads back whatever a client form-encodes (RFC 6749 appendix B)", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 1 }),
        fc.string({ unit: "grapheme" }),
        (clientId, secret) => {
          expect(parseBasic(basicAuthorization(clientId, secret))).toEqual({ clientId, secret });
        },
      ),
    );
    expect(parseBasic(header("a+b%2Bc:%25"))).toEqual({ clientId: "a b+c", secret: "%" });
  });

  test("a raw application client id is split at its last colon", () => {
    const id = "appID:0190:geo:eu:clientName:default";
    expect(parseBasic(header(`${id}:s3cret-_`))).toEqual({ clientId: id, secret: "s3cret-_" });
    expect(parseBasic(header(`${id.replaceAll(":", "%3A")}:s3cret-_`))).toEqual({ clientId: id, secret: "s3cret-_" });
  });

  test.each([
    [undefined, "send the client id and secret"],
    [null, "send the client id and secret"],
    ["", "send the client id and secret"],
    ["Basic", "is not base64"],
    ["basic ", "is not base64"],
    ["Bearer abc", "is not Basic"],
    [header("id:secret").replace("Basic", "Bearer"), "is not Basic"],
    [`${header("id:secret")} b`, "is not base64"],
    ["Basic ===", "is not base64"],
    [header("nocolon"), "has no colon"],
    [header(":secret"), "has no colon"],
    [header("%:x"), "is not form-encoded"],
  ])("%j is refused", (value, why) => {
    expect(() => parseBasic(value)).toThrow(
      expect.objectContaining({ code: "invalid_client", status: 401, message: expect.stringContaining(why) }),
    );
  });
});

describe("errors", () => {
  test.each<[OAuthErrorCode, number]>([
    ["invalid_request", 400],
    ["invalid_client", 401],
    ["invalid_grant", 400],
    ["unauthorized_client", 400],
    ["unsupported_grant_type", 400],
    ["invalid_scope", 400],
    ["invalid_target", 400],
    ["invalid_token", 401],
    ["insufficient_scope", 403],
    ["access_denied", 403],
    ["temporarily_unavailable", 429],
    ["not_found", 404],
    ["conflict", 409],
    ["server_error", 500],
  ])("%s is answered %i, with characters that fit into a header", async (error, status) => {
    const response = errorResponse(new OAuthError(error, 'say "hé"\n'));
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error, error_description: "say 'h?'?" });
    expect(response.headers.get("Cache-Control")).toBe("no-store");
  });
});

describe("the log", () => {
  test("has a line for every event, and only names that we gave out", () => {
    const lines: unknown[][] = [];
    const write = (level: string) => (message: string, fields: object) => lines.push([level, message, fields]);
    const audit = auditTo({ info: write("info"), warn: write("warn"), error: write("error") });
    const address = "192.0.2.1";
    audit({ event: "token-issued", audience: "runtime", clientId: "c", scope: "bio", jti: "j", address });
    audit({
      event: "client-refused",
      audience: "runtime",
      clientId: loggableClientId("a secret in the wrong field"),
      address,
    });
    audit({
      event: "client-refused",
      audience: "runtime",
      clientId: loggableClientId("appID:a:geo:b:clientName:c"),
      address,
    });
    audit({ event: "sign-in-refused", user: null, address });
    audit({ event: "sign-in", user: "olga", address });
    audit({ event: "managed", user: "olga", method: "POST", route: "/management/v1/keys/rotate", status: 201 });
    audit({ event: "failure", stack: "Error: x" });
    expect(lines).toEqual([
      ["info", "runtime token issued", { client: "c", address }],
      ["warn", "runtime client refused", { address }],
      ["warn", "runtime client refused", { client: "appID:a:geo:b:clientName:c", address }],
      ["warn", "sign-in refused", { address }],
      ["info", "signed in", { client: "olga", address }],
      ["info", "managed", { client: "olga", operation: "POST /management/v1/keys/rotate", status: "201" }],
      ["error", "a request of the token service failed", { stack: "Error: x" }],
    ]);
  });
});

describe("client ids", () => {
  test("are read as they are written", () => {
    const segment = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/);
    fc.assert(
      fc.property(segment, segment, segment, (applicationId, geography, clientName) => {
        const parts = { applicationId, geography, clientName };
        expect(parseClientId(formatClientId(parts))).toEqual(parts);
      }),
    );
    for (const text of [
      "",
      "appID:",
      "appID:a",
      "appID:a:geo:b:clientName:",
      "appID:a:geo:b:clientName:c:d",
      "x:a:geo:b:clientName:c",
      "appID:-a:geo:b:clientName:c",
      "appID:a:geo:b c:clientName:c",
      `appID:a:geo:b:clientName:${"c".repeat(65)}`,
    ])
      expect(parseClientId(text)).toBeNull();
  });
});

describe("secrets", () => {
  const secrets = createSecrets(systemRandom, { n: 1024, r: 8, p: 1 });

  test("are 256 random bits in characters that need no escaping, all different", () => {
    const many = Array.from({ length: 100 }, () => secrets.generate());
    expect(new Set(many).size).toBe(100);
    for (const secret of many) expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  test("are 144 random bits if they are passwords for people", () => {
    expect(generatePassword(systemRandom)).toMatch(/^[\w-]{24}$/);
  });

  test("that people choose are hashed at OWASP's cost, generated ones by SHA-256", async () => {
    const { hash } = createSecrets(systemRandom);
    expect(await hash("chosen by a person", "chosen")).toMatch(/^scrypt\$32768\$8\$3\$/);
    const generated = await hash("generated", "generated");
    const [, salt, digest] = /^sha256\$([\w-]{22})\$([\w-]{43})$/.exec(generated)!;
    const expected = createHash("sha256")
      .update(Buffer.from(salt!, "base64url"))
      .update("generated")
      .digest("base64url");
    expect(digest).toBe(expected);
  });

  test.each(["generated", "chosen"] as const)(
    "%s: the right one matches, again and again; others do not",
    async (strength) => {
      const record = await secrets.hash("right", strength);
      expect(await secrets.hash("right", strength)).not.toBe(record);
      for (let i = 0; i < 3; i++) {
        expect(await secrets.matches("right", record, strength)).toBe(true);
        expect(await secrets.matches("wrong", record, strength)).toBe(false);
        expect(await secrets.matches("", record, strength)).toBe(false);
      }
      expect(await secrets.matches("right", null, strength)).toBe(false);
      expect(await secrets.matches("right", "nonsense", strength)).toBe(false);
    },
  );

  test("are kept as scrypt of any other library makes them: a salt of 16 bytes, a hash of 32", async () => {
    expect(await secrets.hash("right", "chosen")).toMatch(/^scrypt\$1024\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
    const salt = Buffer.alloc(16, 7);
    const hash = scryptSync("right", salt, 32, { N: 2048, r: 4, p: 2 });
    const record = ["scrypt", 2048, 4, 2, salt.toString("base64url"), hash.toString("base64url")].join("$");
    expect(await secrets.matches("right", record, "chosen")).toBe(true);
    expect(await secrets.matches("wrong", record, "chosen")).toBe(false);
    for (const broken of [record.slice(0, -1), record.replace("scrypt", "bcrypt"), record.replace("2048", "")])
      expect(await secrets.matches("right", broken, "chosen")).toBe(false);
  });

  test("that version 0.1.0 generated still match: it kept them like passwords", async () => {
    const record = await secrets.hash("right", "chosen");
    for (let i = 0; i < 2; i++) {
      expect(await secrets.matches("right", record, "generated")).toBe(true);
      expect(await secrets.matches("wrong", record, "generated")).toBe(false);
    }
  });

  test("passwords are compared as typed on any keyboard (NFKC)", async () => {
    const record = await secrets.hash("caf\u00e9 password", "chosen");
    expect(await secrets.matches("cafe\u0301 password", record, "chosen")).toBe(true);
  });
});
