import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { auditTo, loggableClientId } from "../../src/token/audit.js";
import { parseBasic } from "../../src/token/basic.js";
import { basicAuthorization } from "../../src/token/cache.js";
import { formatClientId, parseClientId } from "../../src/token/client-id.js";
import { systemRandom } from "../../src/token/clock.js";
import { createSecrets } from "../../src/token/secret.js";

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
    undefined,
    null,
    "",
    "Basic",
    "basic ",
    "Bearer abc",
    header("id:secret").replace("Basic", "Bearer"),
    "Basic a b",
    "Basic ===",
    header("nocolon"),
    header(":secret"),
    header("%:x"),
  ])("%j is refused", (value) => {
    expect(() => parseBasic(value)).toThrow(expect.objectContaining({ code: "invalid_client", status: 401 }));
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

  test("that people choose are hashed at OWASP's cost, generated ones at a low cost", async () => {
    const { hash } = createSecrets(systemRandom);
    expect(await hash("chosen by a person", "chosen")).toMatch(/^scrypt\$32768\$8\$3\$/);
    expect(await hash("generated", "generated")).toMatch(/^scrypt\$16\$8\$1\$/);
  });

  test.each(["generated", "chosen"] as const)(
    "%s: the right one matches, again and again; others do not",
    async (strength) => {
      const record = await secrets.hash("right", strength);
      expect(record).toMatch(/^scrypt\$\d+\$8\$\d+\$/);
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

  test("passwords are compared as typed on any keyboard (NFKC)", async () => {
    const record = await secrets.hash("caf\u00e9 password", "chosen");
    expect(await secrets.matches("cafe\u0301 password", record, "chosen")).toBe(true);
  });
});
