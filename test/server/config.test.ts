import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfigError, configSchema, ENVIRONMENT, loadConfig } from "../../src/server/config.js";
import { startBox } from "../../src/server/start.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "vivavoce-config-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function file(content: unknown): string {
  const path = join(folder, "config.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

describe("precedence", () => {
  it("is flag, environment, file, default", () => {
    const path = file({ port: 1, host: "::1", limits: { queuedAudio: 1, callSeconds: 1 }, store: "/from/file" });
    const env = { VIVAVOCE_PORT: "2", VIVAVOCE_QUEUED_AUDIO: "2", VIVAVOCE_STORE: "/from/env" };
    const config = loadConfig({ flags: { port: 3 }, env, file: path });
    expect(config.port).toBe(3);
    expect(config.store).toBe("/from/env");
    expect(config.limits.queuedAudio).toBe(2);
    expect(config.limits.callSeconds).toBe(1);
    expect(config.host).toBe("::1");
    expect(config.auth.required).toBe(true);
    expect(config.limits.mediaBytes).toBe(64 * 1024 * 1024);
  });

  it("has these defaults", () => {
    const { evaluation, limits, ...config } = loadConfig({ env: {} });
    expect(evaluation).toMatch(/\.json$/);
    expect(config).toMatchObject({
      auth: { required: true, ownIssuer: true, issuers: [] },
      cors: { origins: [] },
      trustProxy: [],
      telephony: [],
      log: { level: "info" },
      metrics: { access: "open" },
      mediaRetentionSeconds: 0,
      compressedAudio: true,
      allowExport: false,
      configsets: {},
    });
    const { concurrentAudio, ...others } = limits;
    expect(concurrentAudio).toBeGreaterThanOrEqual(1);
    expect(others).toEqual({
      queuedAudio: 64,
      messageBytes: 4 * 1024 * 1024,
      mediaBytes: 64 * 1024 * 1024,
      uploadingBytes: 512 * 1024 * 1024,
      callSeconds: 60,
      headerSeconds: 10,
      readSeconds: 30,
      mediaReadSeconds: 900,
      mediaIdleSeconds: 20,
      liveCalls: 200,
      liveBytesPerSecond: 800_000,
      liveCallSeconds: 14_400,
      liveIdleSeconds: 20,
      liveSilenceSeconds: 300,
      callsPerSecond: 200,
      callBurst: 400,
      stopSeconds: 30,
    });
  });

  it("finds the file through the environment", () => {
    expect(loadConfig({ env: { VIVAVOCE_CONFIG: file({ port: 5 }) } }).port).toBe(5);
  });

  it("has a variable for every setting that exists, and none for one that does not", () => {
    const settings = (schema: unknown, prefix: string): string[] =>
      Object.entries(shapeOf(schema)!).flatMap(([name, inner]) =>
        shapeOf(inner) ? settings(inner, `${prefix}${name}.`) : [`${prefix}${name}`],
      );
    expect(settings(configSchema, "").sort()).toEqual(Object.values(ENVIRONMENT).sort());
  });
});

/** The fields of a zod object, looked for behind optional and default wrappers. */
function shapeOf(schema: unknown): Record<string, unknown> | null {
  let at = schema as { shape?: Record<string, unknown>; def?: { innerType?: unknown } } | undefined;
  for (; at; at = at.def?.innerType as typeof at) if (at.shape) return at.shape;
  return null;
}

describe("an invalid setting is refused before anything is opened, with its name and source", () => {
  it.each([
    [{ flags: { port: 70000 } }, /^port \(the command line\): must be at most 65535, got 70000$/],
    [{ flags: { port: "x" } }, /^port \(the command line\): must be a number, true, false or JSON, got "x"$/],
    [{ flags: { port: 1.5 } }, /^port \(the command line\): must be a whole number, got 1.5$/],
    [{ flags: { store: "" } }, /^store \(the command line\): must not be empty$/],
    [{ flags: { store: "mysql://db/voices" } }, /^store \(the command line\): must be a folder or postgres:\/\/…$/],
    [{ env: { VIVAVOCE_CALL_SECONDS: "0" } }, /^limits.callSeconds \(VIVAVOCE_CALL_SECONDS\): must be above 0, got 0$/],
    [{ flags: { publicUrl: "foo" } }, /^publicUrl \(the command line\): must be an address such as https:/],
    [
      { flags: { "auth.issuers": [{ issuer: "x", jwks: "y" }] } },
      /^auth.issuers.0.audience \(the command line\): is missing$/,
    ],
    [
      { flags: { telephony: [{ name: "a", dialect: "fax" }] } },
      /^telephony.0.dialect \(the command line\): must be audiosocket, rtp, .* or audiohook$/,
    ],
    [{ env: { VIVAVOCE_PORT: "eighty" } }, /VIVAVOCE_PORT.*"eighty"/],
    [{ env: { VIVAVOCE_PROT: "80" } }, /VIVAVOCE_PROT: unknown setting \(did you mean VIVAVOCE_PORT\?\)/],
    [
      { env: { VIVAVOCE_LOG_LEVEL: "loud" } },
      /^log\.level \(VIVAVOCE_LOG_LEVEL\): must be debug, info, warn, error or silent, got "loud"$/,
    ],
    [{ env: { VIVAVOCE_COLOR_OF_THE_BOX: "red" } }, /VIVAVOCE_COLOR_OF_THE_BOX: unknown setting$/],
    [
      { flags: { host: "0.0.0.0", "auth.required": false } },
      /only on a loopback address such as 127.0.0.1, got 0.0.0.0/,
    ],
    [{ flags: { "auth.ownIssuer": false } }, /no issuer is trusted/],
    [{ flags: { "tls.cert": "/nowhere/c", "tls.key": "/nowhere/k" } }, /tls: \/nowhere\/c: no such file/],
    [{ flags: { "tls.cert": "/nowhere/c" } }, /^tls\.key: is missing$/],
    [
      { flags: { "limits.queudAudio": 1 } },
      /queudAudio \(the command line\): unknown setting \(did you mean limits\.queuedAudio\?\)/,
    ],
    [{ env: { VIVAVOCE_CONFIGSETS: '{"bank":{"basedOn":"nope"}}' } }, /configsets: .*"bank".*no built-in set "nope"/],
    [{ flags: { configsets: { bank: { minSnr: 3 } } } }, /configsets: .*minSnr/],
    [
      { flags: { telephony: [{ name: "rtp", dialect: "rtp", scope: "bank", ports: [20_999, 20_000] }] } },
      /telephony\.0\.ports \(the command line\): must be the first and the last port/,
    ],
    [{ file: "/nowhere/config.json" }, /no such file/],
    [{ file: "/" }, /^\/: this is a folder, not a file$/],
    [{ flags: { store: "postgres://a/b" } }, /seal\.keys/],
    [{ flags: { store: "postgres://a/b", "seal.keys": "postgres://c/d" } }, /seal\.masterKeyFile/],
    [
      { flags: { "seal.masterKeyFile": "a", "seal.masterKeyCommand": "b" } },
      /one of masterKeyFile and masterKeyCommand/,
    ],
  ])("%j", (sources, message) => {
    expect(() => loadConfig({ env: {}, ...sources })).toThrow(message);
  });

  it("does not repeat a secret", () => {
    const line = { name: "a", dialect: "jambonz", scope: "default", user: "u", password: "sesame" };
    expect(() => loadConfig({ env: {}, flags: { telephony: [line] } })).toThrow(
      "telephony.0.password (the command line): must have at least 8 characters, got 6",
    );
  });

  it("names an unknown key of the file, and a file that is not JSON", () => {
    expect(() => loadConfig({ env: {}, file: file({ prot: 1 }) })).toThrow(/prot/);
    expect(() => loadConfig({ env: {}, file: file("{") })).toThrow(/config\.json/);
    expect(() => loadConfig({ env: {}, file: file("[]") })).toThrow(/must be a JSON object/);
  });

  it("lets tokens be switched off on loopback", () => {
    for (const host of ["127.0.0.1", "localhost", "::1", "127.1.2.3"]) {
      expect(loadConfig({ env: {}, flags: { host, "auth.required": false } }).auth.required).toBe(false);
    }
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com"]) {
      expect(() => loadConfig({ env: {}, flags: { host, "auth.required": false } })).toThrow(/loopback/);
    }
  });
});

it.each([null, undefined, {}, { port: 8080 }])("startBox(%j) says where a configuration comes from", async (given) => {
  const started = startBox(given as never);
  await expect(started).rejects.toThrow(ConfigError);
  await expect(started).rejects.toThrow("startBox needs a complete configuration: startBox(loadConfig(");
});
