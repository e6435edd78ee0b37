import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  ConfigError,
  type ConfigSources,
  configSchema,
  ENVIRONMENT,
  isFolder,
  loadConfig,
  ownUrl,
} from "../../src/server/config.js";
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

it.each([
  ["/var/lib/vivavoce", true],
  ["postgres-data", true],
  ["memory", false],
  ["postgres://db/voices", false],
  ["postgresql://db/voices", false],
])("a store %s is a folder: %s", (store, expected) => {
  expect(isFolder(store)).toBe(expected);
});

describe("in a container of 512 MB", () => {
  const MiB = 1024 * 1024;
  const sizes = (limits: object, store = "/voices") => {
    const memory = vi.spyOn(process, "constrainedMemory").mockReturnValue(512 * MiB);
    const { mediaBytes, uploadingBytes } = loadConfig({ env: {}, file: file({ store, limits }) }).limits;
    memory.mockRestore();
    return [mediaBytes / MiB, uploadingBytes / MiB];
  };

  it("recordings fit in memory beside an embedded store, unless their size is set", () => {
    expect(sizes({})).toEqual([16, 16]);
    expect(sizes({ mediaBytes: 20 * MiB })).toEqual([20, 20]);
    expect(sizes({ uploadingBytes: 40 * MiB })).toEqual([16, 40]);
    expect(sizes({}, "memory")).toEqual([64, 512]);
  });
});

describe("precedence", () => {
  // As on a machine without a limit.
  beforeEach(() => void vi.spyOn(process, "constrainedMemory").mockReturnValue(0));
  afterEach(() => vi.restoreAllMocks());

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
      host: "127.0.0.1",
      port: 8080,
      scopeModels: {},
      olderModels: [],
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
      jobsPerScope: 100,
      jobBytesPerScope: 268_435_456,
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

  it("has its data in the user's folder, or where the environment says", () => {
    try {
      vi.stubEnv("XDG_DATA_HOME", "");
      expect(loadConfig({ env: {} }).store).toBe(join(homedir(), ".local", "share", "vivavoce", "store"));
      vi.stubEnv("XDG_DATA_HOME", "/data");
      expect(loadConfig({ env: {} })).toMatchObject({
        store: "/data/vivavoce/store",
        evaluation: "/data/vivavoce/last-evaluation.json",
      });
      expect(loadConfig({ env: { VIVAVOCE_EVALUATION: "/tmp/figures.json" } }).evaluation).toBe("/tmp/figures.json");
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it("ignores variables that are empty or of other programs, and flags that are not given", () => {
    const env = { VIVAVOCE_HOST: "", VIVAVOCE_PORT: "5", VIVAVOCE_TOKEN: "x", VIVAVOCE_URL: "http://box", PORT: "6" };
    expect(loadConfig({ env, flags: { port: undefined } })).toMatchObject({ host: "127.0.0.1", port: 5 });
  });

  it("ignores what Kubernetes sets in each container for services named vivavoce and vivavoce-grpc", () => {
    const env = {
      VIVAVOCE_SERVICE_HOST: "10.96.7.5",
      VIVAVOCE_SERVICE_PORT: "8080",
      VIVAVOCE_SERVICE_PORT_HTTP: "8080",
      VIVAVOCE_PORT: "tcp://10.96.7.5:8080",
      VIVAVOCE_PORT_8080_TCP: "tcp://10.96.7.5:8080",
      VIVAVOCE_PORT_8080_TCP_PROTO: "tcp",
      VIVAVOCE_PORT_20000_UDP_ADDR: "10.96.7.5",
      VIVAVOCE_GRPC_SERVICE_HOST: "10.96.7.6",
      VIVAVOCE_GRPC_PORT: "tcp://10.96.7.6:443",
    };
    expect(loadConfig({ env })).toEqual(loadConfig({ env: {} }));
    expect(() => loadConfig({ env: { VIVAVOCE_GRPC_PORT: "443" } })).toThrow("VIVAVOCE_GRPC_PORT: unknown setting");
  });

  it("takes a text as it is and everything else as JSON, from the environment and from flags", () => {
    const env = { VIVAVOCE_STORE: "123", VIVAVOCE_LOG_LEVEL: "warn", VIVAVOCE_TRUST_PROXY: '["10.0.0.0/8"]' };
    const config = loadConfig({ env, flags: { host: "::1", compressedAudio: "false", "limits.callBurst": "7" } });
    expect(config).toMatchObject({ store: "123", log: { level: "warn" }, trustProxy: ["10.0.0.0/8"], host: "::1" });
    expect(config).toMatchObject({ compressedAudio: false, limits: { callBurst: 7 } });
  });

  it("replaces a group in the file that is not one", () => {
    const path = file({ limits: null, log: [] });
    const config = loadConfig({ env: {}, file: path, flags: { "limits.callBurst": 7, "log.level": "error" } });
    expect(config).toMatchObject({ limits: { callBurst: 7 }, log: { level: "error" } });
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

describe("the address of a box", () => {
  const url = (settings: Record<string, unknown>, port?: number) =>
    ownUrl(configSchema.parse({ port: 8080, ...settings }), port);
  const tls = { cert: "c", key: "k" };

  it.each([
    [{}, "http://127.0.0.1:8080"],
    [{ tls }, "https://127.0.0.1:8080"],
    [{ host: "0.0.0.0" }, "http://127.0.0.1:8080"],
    [{ host: "::" }, "http://127.0.0.1:8080"],
    [{ host: "[::]" }, "http://127.0.0.1:8080"],
    [{ host: "::1" }, "http://[::1]:8080"],
    [{ host: "[FD00::1]" }, "http://[fd00::1]:8080"],
    [{ host: "box.example" }, "http://box.example:8080"],
    [{ port: 80 }, "http://127.0.0.1"],
    [{ port: 443 }, "http://127.0.0.1:443"],
    [{ port: 443, tls }, "https://127.0.0.1"],
    [{ publicUrl: "https://voice.example/" }, "https://voice.example"],
    [{ publicUrl: "https://VOICE.example:443" }, "https://voice.example"],
  ])("with %j is an origin: %s", (settings, expected) => {
    expect(url(settings)).toBe(expected);
    expect(new URL(expected).origin).toBe(expected);
  });

  it("has the port that was free, if any was asked for", () => {
    expect(url({ port: 0 }, 41_234)).toBe("http://127.0.0.1:41234");
  });
});

describe("an invalid setting is refused before anything is opened, with its name and source", () => {
  const secret = "a secret of the line";
  const twilioLine = { name: "a", dialect: "twilio", scope: "bank", authToken: secret };
  it.each<readonly [ConfigSources, RegExp]>([
    [{ flags: { port: 70000 } }, /^port \(the command line\): must be at most 65535, got 70000$/],
    [{ flags: { port: "x" } }, /^port \(the command line\): must be a number, true or false, got "x"$/],
    [
      { env: { VIVAVOCE_TELEPHONY: '[{"dialect":"twilio","authToken":"a secret of Twilio"' } },
      /^telephony \(VIVAVOCE_TELEPHONY\): must be JSON with its quotes, .*, got 53 characters that are not JSON$/,
    ],
    [{ env: { VIVAVOCE_SCOPE_MODELS: "{bank}" } }, /^scopeModels .*, got 6 characters that are not JSON$/],
    [{ flags: { port: 1.5 } }, /^port \(the command line\): must be a whole number, got 1.5$/],
    [{ flags: { store: "" } }, /^store \(the command line\): must not be empty$/],
    [{ env: { VIVAVOCE_STORE: "/data/store " } }, /^store \(VIVAVOCE_STORE\): must not begin or end with a space$/],
    [{ env: { VIVAVOCE_HOST: "127.0.0.1 " } }, /^host \(VIVAVOCE_HOST\): must not begin or end with a space$/],
    [
      { env: { VIVAVOCE_STORE: "postgres://u:se#cret@db/v" } },
      /^store \(VIVAVOCE_STORE\): must be postgres:(?!.*cret).*%23/,
    ],
    [{ flags: { store: "mysql://db/voices" } }, /^store \(the command line\): must be a folder or postgres:\/\/…$/],
    [{ env: { VIVAVOCE_CALL_SECONDS: "0" } }, /^limits.callSeconds \(VIVAVOCE_CALL_SECONDS\): must be above 0, got 0$/],
    [{ flags: { publicUrl: "https://x.example/voice" } }, /^publicUrl \(the command line\): must have no path/],
    [{ flags: { publicUrl: "foo" } }, /^publicUrl \(the command line\): must be an address such as https:/],
    [
      { flags: { "auth.issuers": [{ issuer: "x", jwks: "y" }] } },
      /^auth.issuers.0.audience \(the command line\): is missing$/,
    ],
    [
      { flags: { "auth.issuers": [{ issuer: "x", jwks: "http://login.example/keys", audience: "box" }] } },
      /^auth.issuers.0.jwks \(the command line\): must be an https URL or a file \(http only on this machine\)$/,
    ],
    [
      { flags: { "auth.issuers": [{ issuer: "x", jwks: "htps://login.example/keys", audience: "box" }] } },
      /^auth.issuers.0.jwks \(the command line\): must be an https URL or a file \(http only on this machine\)$/,
    ],
    [
      { flags: { "auth.issuers": [{ issuer: "x", jwks: "https://", audience: "box" }] } },
      /^auth.issuers.0.jwks \(the command line\): must be an https URL or a file \(http only on this machine\)$/,
    ],
    [
      { flags: { telephony: [{ name: "a", dialect: "fax" }] } },
      /^telephony.0.dialect \(the command line\): must be audiosocket, rtp, .* or audiohook$/,
    ],
    [
      { flags: { telephony: [{ ...twilioLine, configset: "text-indepedent" }] } },
      /^telephony.0.configset: there is no configuration set "text-indepedent" \(did you mean text-independent\?\)$/,
    ],
    [
      { flags: { telephony: [{ ...twilioLine, webhook: { url: "https://me:password@x.example/", secret } }] } },
      /^telephony.0.webhook.url \(the command line\): must have no user name and password; .* webhook.secret$/,
    ],
    [
      { flags: { telephony: [{ ...twilioLine, watchlist: "fraudsters" }] } },
      /^telephony.0.watchlist \(the command line\): must be the id of a watchlist, as "vivavoce watchlist list" shows it$/,
    ],
    [
      { flags: { telephony: [{ ...twilioLine, scope: "x".repeat(129) }] } },
      /^telephony.0.scope \(the command line\): must be 1 to 128 characters without control characters$/,
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

  it.each([
    ["port", 0, 65_535],
    ["limits.concurrentAudio", 1, 256],
    ["limits.queuedAudio", 0, 100_000],
    ["limits.liveCalls", 0, 100_000],
    ["limits.liveCallsPerScope", 1, 100_000],
    ["limits.jobsPerScope", 1, 100_000],
    ["limits.callBurst", 1, Number.MAX_SAFE_INTEGER],
    ["limits.messageBytes", 1, Number.MAX_SAFE_INTEGER],
    ["limits.callSeconds", 0.001, 86_400],
  ])("%s is from %d to %d", (setting, least, most) => {
    const given = (value: number) => () => loadConfig({ env: {}, flags: { [setting]: value } });
    for (const value of [least, most]) expect(given(value)).not.toThrow();
    for (const value of [least - 1, most + 1]) expect(given(value)).toThrow(`${setting} (the command line): must be`);
  });

  it.each(["limits.callsPerSecond", "mediaRetentionSeconds"])("%s is 0 or more", (setting) => {
    const given = (value: number) => () => loadConfig({ env: {}, flags: { [setting]: value } });
    for (const value of [0, 0.5, 1e9]) expect(given(value)).not.toThrow();
    expect(given(-0.1)).toThrow(`${setting} (the command line): must be`);
  });

  it.each(["https://app.example.com", "http://127.0.0.1:3000"])("%s is an origin", (origin) => {
    expect(loadConfig({ env: {}, flags: { "cors.origins": [origin] } }).cors.origins).toEqual([origin]);
  });

  it.each([
    "https://app.example.com/",
    "https://app.example.com/page",
    "app.example.com",
    "https://",
    "wss://app.example.com",
    "*",
  ])("%s is not an origin", (origin) => {
    expect(() => loadConfig({ env: {}, flags: { "cors.origins": [origin] } })).toThrow(/must be an origin such as/);
  });

  it("a proxy is an address or a network", () => {
    const given = (proxy: string) => () => loadConfig({ env: {}, flags: { trustProxy: [proxy] } });
    for (const proxy of ["10.0.0.1", "10.0.0.0/8", "fd00::/8"]) expect(given(proxy)).not.toThrow();
    for (const proxy of ["proxy.example.com", "10.0.0.0/33"])
      expect(given(proxy)).toThrow(/must be an address or a network/);
  });

  it("a page must exist", () => {
    expect(loadConfig({ env: {}, flags: { page: folder } }).page).toBe(folder);
    expect(() => loadConfig({ env: {}, flags: { page: "/nowhere/page" } })).toThrow(
      new ConfigError("page: /nowhere/page: no such folder"),
    );
  });

  it("each telephone line has its own name", () => {
    const line = (name: string) => ({ name, dialect: "audiosocket", scope: "bank", port: 0 });
    const given = (...names: string[]) => loadConfig({ env: {}, flags: { telephony: names.map(line) } });
    expect(given("a", "b").telephony).toHaveLength(2);
    expect(() => given("a", "b", "a")).toThrow('telephony: two lines are named "a"; give each a different name');
  });

  it("a key has one source, and keys in a database have a master key", () => {
    const given = (seal: Record<string, string>, store = "/store") =>
      loadConfig({ env: {}, flags: { store, seal } }).seal;
    for (const seal of [
      { keys: "/keys" },
      { masterKey: "a", previousMasterKey: "b" },
      { keys: "postgres://a/keys", masterKeyCommand: "a" },
      { keys: "postgresql://a/keys", masterKeyFile: "a" },
    ])
      expect(given(seal)).toEqual(seal);
    expect(given({ keys: "/keys" }, "postgres://a/b")).toEqual({ keys: "/keys" });
    expect(() => given({ keys: "postgres://a/keys" })).toThrow(/keys in a database need a master key/);
    expect(() => given({ keys: "postgres://a/keys", previousMasterKey: "b" })).toThrow(/need a master key/);
    expect(() => given({ masterKeyFile: "a", masterKeyCommand: "b", masterKey: "c" })).toThrow(
      "seal: set only one of masterKeyFile and masterKeyCommand and masterKey",
    );
    expect(() => given({ previousMasterKey: "a", previousMasterKeyFile: "b" })).toThrow(
      "seal: set only one of previousMasterKeyFile and previousMasterKey",
    );
  });

  it.each(["keys.json", "/etc/keys.json", "file:///etc/keys.json", "http://127.0.0.1:9/keys", "http://[::1]:9/keys"])(
    "keys of another issuer may be at %s",
    (jwks) => {
      const issuers = [{ issuer: "https://login", jwks, audience: "box" }];
      expect(loadConfig({ flags: { "auth.issuers": issuers }, env: {} }).auth.issuers[0]!.jwks).toBe(jwks);
    },
  );

  it("tokens of other issuers are enough, and without tokens no issuer is needed", () => {
    const issuers = [{ issuer: "https://login", jwks: "https://login/keys", audience: "box" }];
    const given = (auth: Record<string, unknown>) => loadConfig({ env: {}, flags: { auth } }).auth;
    expect(given({ ownIssuer: false, issuers }).issuers).toEqual([{ ...issuers[0], scopesClaim: "gk_scopes" }]);
    expect(given({ ownIssuer: false, required: false }).required).toBe(false);
  });

  it("does not repeat a secret", () => {
    const line = { name: "a", dialect: "jambonz", scope: "default", user: "u", password: "sesame" };
    expect(() => loadConfig({ env: {}, flags: { telephony: [line] } })).toThrow(
      "telephony.0.password (the command line): must have at least 8 characters, got 6",
    );
    expect(() => loadConfig({ env: {}, file: file('{ "seal": { "masterKey": c0ffee } }') })).toThrow(
      /config\.json: not valid JSON: Unexpected token 'c'$/,
    );
  });

  it("names an unknown key of the file, and a file that is not JSON", () => {
    expect(() => loadConfig({ env: {}, file: file({ prot: 1 }) })).toThrow(
      `prot (${join(folder, "config.json")}): unknown setting (did you mean port?)`,
    );
    expect(() => loadConfig({ env: {}, file: file("{") })).toThrow(/config\.json/);
    expect(() => loadConfig({ env: {}, file: file("[]") })).toThrow(/must be a JSON object/);
  });

  it("a file may begin with a byte order mark, but must not give a name twice", () => {
    expect(loadConfig({ env: {}, file: file('\uFEFF{"port":5}') }).port).toBe(5);
    const lines = '"scopeModels":{"a\\"}:{":"x","host":"y"},"page":"{\\"host\\":","host":"::1"';
    expect(() => loadConfig({ env: {}, file: file(`{${lines}}`) })).toThrow(/^page: /);
    for (const twice of [
      `{${lines},"limits":{"callBurst":5},"limits" : {}}`,
      '{"limits":{"limits":{},"x":1,"limits":1}}',
    ])
      expect(() => loadConfig({ env: {}, file: file(twice) })).toThrow(
        /config\.json: "limits" is given twice in one object/,
      );
  });

  it("lets tokens be switched off on loopback", () => {
    for (const host of ["127.0.0.1", "localhost", "::1", "[::1]", "127.1.2.3"]) {
      expect(loadConfig({ env: {}, flags: { host, "auth.required": false } }).auth.required).toBe(false);
    }
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com"]) {
      expect(() => loadConfig({ env: {}, flags: { host, "auth.required": false } })).toThrow(/loopback/);
    }
  });
});

it.each([null, undefined, {}, { port: 8080 }, { limits: {} }, { limits: {}, log: {} }])(
  "startBox(%j) says where a configuration comes from",
  async (given) => {
    const started = startBox(given as never);
    await expect(started).rejects.toThrow(ConfigError);
    await expect(started).rejects.toThrow("startBox needs a complete configuration: startBox(loadConfig(");
  },
);
