import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { z } from "zod";
import { nearest } from "../contract/nearest.js";
import { reportInput, schemaFault } from "../contract/schema-fault.js";
import { mostWorkers } from "../engine/threads.js";
import { lineSchema } from "../telephony/line.js";
import { createPeerAddress } from "../token/peer-address.js";
import { type ConfigurationOverrides, configurationSets } from "../voiceprint/configuration-set.js";
import { reasonOf } from "./file-fault.js";

/**
 * Settings of a box. A flag overrides an environment variable, which overrides the configuration file, which overrides
 * the default. Everything is validated before anything is opened, and unknown names are refused.
 */

const seconds = z.number().positive().max(86_400);
const bytes = z.number().int().positive();
const anyText = z.string().min(1);
/** The space at the end of a line of an env file is part of the value: used as it is, it would name another, empty store. */
const nonEmpty = anyText.refine((text) => text === text.trim(), { error: "must not begin or end with a space" });

export const isPostgres = (location: string) => /^postgres(ql)?:/.test(location);

/** Whether a store is a folder, rather than in memory or a PostgreSQL server. */
export const isFolder = (store: string) => store !== "memory" && !isPostgres(store);

/** Any other URL is a mistake: used as a path it would create a folder of that name. */
const folderOrPostgres = nonEmpty
  .refine((text) => isPostgres(text) || !/^[a-z][a-z0-9+.-]*:\/\//i.test(text), {
    error: "must be a folder or postgres://…",
  })
  // A socket's folder is given as a parameter, without a host.
  .refine((text) => !isPostgres(text) || URL.canParse(text.replace("@/", "@socket/")), {
    error:
      "must be postgres://user:password@host:port/database, with # / ? and @ in a password written as %23 %2F %3F and %40",
  });

/** Whoever can change an answer over http could add a key of their own and sign any token. Other schemes would be read as a path. */
const keyLocation = nonEmpty.refine(
  (text) => {
    if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return true;
    const { protocol, hostname } = URL.canParse(text) ? new URL(text) : { protocol: "", hostname: "" };
    return ["https:", "file:"].includes(protocol) || (protocol === "http:" && isLoopback(hostname));
  },
  { error: "must be an https URL or a file (http only on this machine)" },
);

const issuerSchema = z.strictObject({
  /** The `iss` claim of its tokens. */
  issuer: nonEmpty,
  /** Where its public keys are: an https URL (http on this machine), or a file. */
  jwks: keyLocation,
  /** The `aud` claim that its tokens must have. */
  audience: nonEmpty,
  /** The claim that lists the biometric scopes (`gk_scope_id`s) of a token. */
  scopesClaim: nonEmpty.default("gk_scopes"),
});

const tlsSchema = z.strictObject({
  /** Files in PEM format. */
  cert: nonEmpty,
  key: nonEmpty,
});

function isProxy(text: string): boolean {
  try {
    createPeerAddress([text]);
    return true;
  } catch {
    return false;
  }
}

const isOrigin = (text: string): boolean =>
  URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text;

export const configSchema = z.strictObject({
  /** Address to listen on; an IPv6 address may be in brackets. Any address other than loopback requires tokens. */
  host: nonEmpty.overwrite((text) => text.replace(/^\[(.*)\]$/, "$1")).default("127.0.0.1"),
  /** 0 takes any free port. */
  port: z.number().int().min(0).max(65_535).default(8080),
  /** `memory`, a folder (embedded), or postgres://… */
  store: folderOrPostgres.default(() => join(dataFolder(), "store")),
  /** `vivavoce-2`, `vivavoce-2-accurate` (fewer errors over telephones, about twice the CPU time), or a model file. */
  model: nonEmpty.optional(),
  /** Models for the new prints of individual scopes: a name or a file as in `model`, by scope. */
  scopeModels: z.record(z.string(), nonEmpty).default({}),
  /** Models for scoring older prints until they have moved, in addition to those that ship with the box. */
  olderModels: z.array(nonEmpty).default([]),
  /** A calibration file from `vivavoce calibrate`; by default the model's own calibration. */
  calibration: nonEmpty.optional(),
  /** Keys that seal voices, templates and audio at rest. */
  seal: z
    .strictObject({
      /** Where the keys are stored: a folder or another postgres://…; by default next to an embedded store. */
      keys: folderOrPostgres.optional(),
      /**
       * The key that seals those keys, as 64 hexadecimal digits or base64: from a file, from the output of a command (a
       * KMS), or as text.
       */
      masterKeyFile: nonEmpty.optional(),
      masterKeyCommand: anyText.optional(),
      masterKey: anyText.optional(),
      /** The previous master key, needed until all keys are wrapped by the new one. */
      previousMasterKeyFile: nonEmpty.optional(),
      previousMasterKeyCommand: anyText.optional(),
      previousMasterKey: anyText.optional(),
    })
    .prefault({}),
  /** The public address, if it differs from host and port (behind a proxy). The issuer and the printed lines use it. */
  publicUrl: z
    .url({ protocol: /^https?$/ })
    .refine((text) => !URL.canParse(text) || new URL(text).href === `${new URL(text).origin}/`, {
      error: "must have no path: a proxy must forward everything on this host to the box",
    })
    .optional(),
  /** Trusted proxies, by address or network (`10.0.0.0/8`): the box believes their `X-Forwarded-For`. */
  trustProxy: z.array(z.string().refine(isProxy, "must be an address or a network such as 10.0.0.0/8")).default([]),
  /** Pages of these origins may call from a browser: exact origins such as `https://app.example.com`. */
  cors: z
    .strictObject({
      origins: z
        .array(z.string().refine(isOrigin, "must be an origin such as https://app.example.com, without a path"))
        .default([]),
    })
    .prefault({}),
  /** Folder of the page served at `/`; by default the page of the package. */
  page: nonEmpty.optional(),
  /** Where `vivavoce evaluate` writes the figures that the operator view shows. */
  evaluation: nonEmpty.default(() => join(dataFolder(), "last-evaluation.json")),
  tls: tlsSchema.optional(),
  auth: z
    .strictObject({
      /** False lets everybody in and is allowed on loopback only. */
      required: z.boolean().default(true),
      /** Issue tokens here, at /oauth2/token. */
      ownIssuer: z.boolean().default(true),
      /** Other issuers whose tokens are accepted. */
      issuers: z.array(issuerSchema).default([]),
    })
    .prefault({}),
  limits: z
    .strictObject({
      /** Recordings processed at the same time; also the number of engine workers. */
      concurrentAudio: z
        .number()
        .int()
        .min(1)
        .max(mostWorkers)
        .default(() => Math.min(mostWorkers, availableParallelism())),
      /** Calls that may wait for a worker; the next one gets BUSY. */
      queuedAudio: z.number().int().min(0).max(100_000).default(64),
      /** Bytes of a message or a JSON body. */
      messageBytes: bytes.default(4 * 1024 * 1024),
      /** Bytes of one recording. */
      mediaBytes: bytes.default(64 * 1024 * 1024),
      /** Bytes of all recordings being uploaded at the same time; the next one gets BUSY. */
      uploadingBytes: bytes.default(512 * 1024 * 1024),
      /** Time from the last byte of a request to its response. */
      callSeconds: seconds.default(60),
      /** Time for the headers, and for the first bytes of a connection. */
      headerSeconds: seconds.default(10),
      /** Time for a whole message or JSON body. */
      readSeconds: seconds.default(30),
      /** Time for a whole recording, which may be uploaded while it is spoken. */
      mediaReadSeconds: seconds.default(900),
      /** Longest pause between the bytes of a recording. */
      mediaIdleSeconds: seconds.default(20),
      /** Live calls at the same time; the next one gets BUSY. */
      liveCalls: z.number().int().min(0).max(100_000).default(200),
      /** Live calls of one scope at the same time; by default as many as `liveCalls`. */
      liveCallsPerScope: z.number().int().min(1).max(100_000).optional(),
      /** Bytes per second of one live call; a faster sender waits. 48 kHz stereo floats need 384,000. */
      liveBytesPerSecond: bytes.default(800_000),
      /** Time for a whole live call. */
      liveCallSeconds: seconds.default(14_400),
      /** A live call ends if nothing arrives for this long. */
      liveIdleSeconds: seconds.default(20),
      /** A live call is decided if nobody speaks for this long. */
      liveSilenceSeconds: seconds.default(300),
      /** Sustained calls per second of one client; 0 sets no limit. */
      callsPerSecond: z.number().min(0).default(200),
      /** Calls of one client at once before the rate applies. */
      callBurst: z.number().int().min(1).default(400),
      /** Jobs of one scope that have not ended, on all replicas; the next one gets QUOTA_EXCEEDED. */
      jobsPerScope: z.number().int().min(1).max(100_000).default(100),
      jobBytesPerScope: z.number().int().min(0).default(268_435_456),
      /** How long a stop waits for accepted calls. */
      stopSeconds: seconds.default(30),
    })
    .prefault({}),
  /** Lines on which telephone systems deliver calls. */
  telephony: z.array(lineSchema).default([]),
  log: z.strictObject({ level: z.enum(["debug", "info", "warn", "error", "silent"]).default("info") }).prefault({}),
  metrics: z.strictObject({ access: z.enum(["open", "token", "off"]).default("open") }).prefault({}),
  /** How long the audio of a stopped session is kept. */
  mediaRetentionSeconds: z.number().min(0).default(0),
  /**
   * Whether to decode compressed recordings with ffmpeg, if it is installed; false accepts only WAV and headerless
   * audio.
   */
  compressedAudio: z.boolean().default(true),
  /** Whether clients may export voiceprints (ExportVoiceprintProfile); importing needs no permission. */
  allowExport: z.boolean().default(false),
  /** Configuration sets by id, each with the values that differ from a built-in one (`basedOn`). */
  configsets: z.record(z.string(), z.record(z.string(), z.unknown()) as z.ZodType<ConfigurationOverrides>).default({}),
});

/** All settings of a box, checked, with defaults filled in. */
export type ServerConfig = z.output<typeof configSchema>;
/** Settings of a box as a user writes them: all are optional. */
export type ServerConfigInput = z.input<typeof configSchema>;

/** Settings that cannot be used. The message names each one and its source. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export function dataFolder(): string {
  return join(process.env.XDG_DATA_HOME || join(home(), ".local", "share"), "vivavoce");
}

/** A user id that the system does not know has no home. Container runtimes then set this one. */
export function home(): string {
  try {
    return homedir();
  } catch {
    return "/";
  }
}

type Json = { [key: string]: unknown };

/** Every setting by its dotted name, with its schema behind defaults. */
function settingsIn(schema: z.core.$ZodType, name = ""): [string, z.core.$ZodType][] {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional)
    return settingsIn(schema.unwrap(), name);
  if (!(schema instanceof z.ZodObject)) return [[name, schema]];
  const inner: [string, z.core.$ZodType][] = Object.entries(schema.shape);
  return inner.flatMap(([part, of]) => settingsIn(of, name === "" ? part : `${name}.${part}`));
}

const SETTINGS = settingsIn(configSchema);

/** `limits.queuedAudio` is VIVAVOCE_QUEUED_AUDIO: limits and master keys are named without their group. */
function variableOf(setting: string): string {
  const words = setting.replace(/^limits\.|^seal\.(?!keys$)/, "").replace(/\.|(?=[A-Z])/g, "_");
  return `VIVAVOCE_${words.toUpperCase()}`;
}

/** The setting for each environment variable. Values other than strings are JSON. */
export const ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  SETTINGS.map(([setting]) => [variableOf(setting), setting]),
);

/** Variables that are not settings of the box: the configuration file, those of the command line and of the tests. */
const OTHER_VARIABLES = new Set([
  "VIVAVOCE_CONFIG",
  "VIVAVOCE_URL",
  "VIVAVOCE_TOKEN",
  "VIVAVOCE_CLIENT_ID",
  "VIVAVOCE_CLIENT_SECRET",
  "VIVAVOCE_PASSPHRASE",
  "VIVAVOCE_DEBUG",
  "VIVAVOCE_TEST_POSTGRES",
]);

/** What Kubernetes adds to each container for a service named `vivavoce`, among it VIVAVOCE_PORT=tcp://10.0.0.1:8080. */
const isServiceLink = (name: string, value: string) =>
  /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) ||
  (name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value));

/** The source of a flag, and of `--set`. */
const COMMAND_LINE = "the command line";

/** Where `loadConfig` reads: a file, the environment, and flags of the command line. */
export interface ConfigSources {
  /** Flags by setting, in dotted names: `{ "limits.queuedAudio": 8 }`. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env?: NodeJS.ProcessEnv;
  /** Path of the configuration file; `VIVAVOCE_CONFIG` when absent. */
  readonly file?: string | undefined;
}

/** Reads settings from file, environment and flags. Throws a `ConfigError` that lists everything that is wrong. */
export function loadConfig(sources: ConfigSources = {}): ServerConfig {
  const env = sources.env ?? process.env;
  const from = new Map<string, string>();
  const path = sources.file || env.VIVAVOCE_CONFIG;
  const settings = path ? readConfigFile(path) : {};
  if (path) from.set("", path);
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("VIVAVOCE_") || !value || OTHER_VARIABLES.has(name) || isServiceLink(name, value)) continue;
    const setting = ENVIRONMENT[name];
    if (setting === undefined)
      throw new ConfigError(`${name}: unknown setting${nearest(name, Object.keys(ENVIRONMENT))}`);
    assign(settings, setting, fromText(setting, value, name));
    from.set(setting, name);
  }
  for (const [setting, value] of Object.entries(sources.flags ?? {})) {
    if (value === undefined) continue;
    assign(settings, setting, typeof value === "string" ? fromText(setting, value, COMMAND_LINE) : value);
    from.set(setting, COMMAND_LINE);
  }
  return validated(settings, from);
}

function validated(settings: Json, from: ReadonlyMap<string, string>): ServerConfig {
  const parsed = configSchema.safeParse(settings, reportInput);
  if (!parsed.success) {
    const named = (setting: string) => {
      const source =
        [...from].find(([name]) => setting === name || setting.startsWith(`${name}.`))?.[1] ?? from.get("");
      return source === undefined ? setting : `${setting} (${source})`;
    };
    const problems = parsed.error.issues.flatMap((issue) => {
      const setting = issue.path.join(".");
      if (issue.code !== "unrecognized_keys") return `${named(setting)}: ${schemaFault(issue)}`;
      return issue.keys.map((key) => {
        const unknown = [...issue.path, key].join(".");
        return `${named(unknown)}: unknown setting${nearest(unknown, Object.values(ENVIRONMENT))}`;
      });
    });
    throw new ConfigError(problems.join("\n"));
  }
  const config = parsed.data;
  if (!config.auth.required && !isLoopback(config.host))
    throw new ConfigError(
      `auth.required: tokens can be switched off only on a loopback address such as 127.0.0.1, got ${config.host}`,
    );
  if (config.auth.required && !config.auth.ownIssuer && config.auth.issuers.length === 0)
    throw new ConfigError("auth: tokens are required but no issuer is trusted; set auth.ownIssuer or auth.issuers");
  if (config.tls) checkTls(config.tls);
  const names = config.telephony.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new ConfigError(`telephony: two lines are named "${twice}"; give each a different name`);
  const sets = ofSetting("configsets", () => configurationSets(config.configsets));
  for (const [i, { configset }] of config.telephony.entries()) {
    if (sets.has(configset)) continue;
    const known = [...sets.keys()];
    throw new ConfigError(
      `telephony.${i}.configset: there is no configuration set "${configset}"${nearest(configset, known)}`,
    );
  }
  if (config.page && !existsSync(config.page)) throw new ConfigError(`page: ${config.page}: no such folder`);
  for (const names of [MASTER_KEY, PREVIOUS_MASTER_KEY]) {
    const given = names.filter((name) => config.seal[name] !== undefined);
    if (given.length > 1) throw new ConfigError(`seal: set only one of ${given.join(" and ")}`);
  }
  if (config.seal.keys && isPostgres(config.seal.keys) && !MASTER_KEY.some((name) => config.seal[name]))
    throw new ConfigError("seal.masterKeyFile: keys in a database need a master key; create one: openssl rand -hex 32");
  if (isPostgres(config.store) && !config.seal.keys)
    throw new ConfigError(
      "seal.keys: a PostgreSQL store keeps its keys elsewhere; set seal.keys to another postgres://… (several replicas) or to a folder (one box)",
    );
  return isFolder(config.store) ? { ...config, limits: fitted(config.limits, settings.limits as Limits) } : config;
}

type Limits = Partial<ServerConfig["limits"]> | undefined;

/** An embedded store takes many times the size of a recording, beside memory of its own: a small container would be killed. */
function fitted(limits: ServerConfig["limits"], given: Limits): ServerConfig["limits"] {
  const room = Math.floor((process.constrainedMemory() || Number.POSITIVE_INFINITY) / 32);
  const mediaBytes = given?.mediaBytes ?? Math.min(limits.mediaBytes, room);
  const uploadingBytes = given?.uploadingBytes ?? Math.max(mediaBytes, Math.min(limits.uploadingBytes, room));
  return { ...limits, mediaBytes, uploadingBytes };
}

/** Settings that can supply a master key. */
const MASTER_KEY = ["masterKeyFile", "masterKeyCommand", "masterKey"] as const;
const PREVIOUS_MASTER_KEY = ["previousMasterKeyFile", "previousMasterKeyCommand", "previousMasterKey"] as const;

export const replacesMasterKey = ({ seal }: Pick<ServerConfig, "seal">): boolean =>
  PREVIOUS_MASTER_KEY.some((name) => seal[name] !== undefined);

function checkTls({ cert, key }: { readonly cert: string; readonly key: string }): void {
  const [certificate, secret] = [cert, key].map((file) => ofSetting(`tls: ${file}`, () => readFileSync(file)));
  ofSetting(`tls: ${cert} and ${key} must be a certificate (PEM) and its key`, () =>
    createSecureContext({ cert: certificate, key: secret }),
  );
}

/** Whatever fails in `work` is a fault of this setting. */
export function ofSetting<T>(setting: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new ConfigError(`${setting}: ${reasonOf(error)}`);
  }
}

/** host: of a socket or of a URL, which has IPv6 in brackets. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** The origin for callers. A wildcard address cannot be called: then it is loopback. */
export function ownUrl({ publicUrl, host, port, tls }: ServerConfig, openPort = port): string {
  if (publicUrl) return new URL(publicUrl).origin;
  const address = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  // Without the standard port of its scheme, as browsers write it.
  return new URL(`${tls ? "https" : "http"}://${address}:${openPort}`).origin;
}

function readConfigFile(path: string): Json {
  // Editors of Windows write a byte order mark.
  const text = ofSetting(path, () => readFileSync(path, "utf8").replace(/^\uFEFF/, ""));
  const value = ofSetting(`${path}: not valid JSON`, () => parsed(text));
  if (!isObject(value)) throw new ConfigError(`${path}: must be a JSON object`);
  const twice = nameGivenTwice(text);
  if (twice !== null) throw new ConfigError(`${path}: "${twice}" is given twice in one object; join the two`);
  return value;
}

/** JSON.parse would ignore the first of the two. json: valid JSON. */
function nameGivenTwice(json: string): string | null {
  const objects: Set<string>[] = [];
  for (const [token, name] of json.matchAll(/[{}]|"((?:[^"\\]|\\.)*)"\s*:|"(?:[^"\\]|\\.)*"/g)) {
    if (token === "{") objects.push(new Set());
    else if (token === "}") objects.pop();
    else if (name !== undefined) {
      if (objects.at(-1)!.has(name)) return name;
      objects.at(-1)!.add(name);
    }
  }
  return null;
}

/** The message of JSON.parse quotes the text, which may contain a secret. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error((error as Error).message.replace(/, (\.{3})?".*/s, ""));
  }
}

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function assign(settings: Json, dotted: string, value: unknown): void {
  const names = dotted.split(".");
  const last = names.pop()!;
  let at = settings;
  for (const name of names) {
    if (!isObject(at[name])) at[name] = {};
    at = at[name] as Json;
  }
  at[last] = value;
}

const settingsOf = (...types: readonly string[]): ReadonlySet<string> =>
  new Set(SETTINGS.filter(([, { _zod }]) => types.includes(_zod.def.type)).map(([setting]) => setting));
const TEXT_SETTINGS = settingsOf("string", "enum");
/** Lists and objects are not repeated in errors: telephone lines have passwords. */
const JSON_SETTINGS = settingsOf("array", "record");

function fromText(setting: string, text: string, source: string): unknown {
  if (TEXT_SETTINGS.has(setting)) return text;
  try {
    return JSON.parse(text);
  } catch {
    const fault = JSON_SETTINGS.has(setting)
      ? `must be JSON with its quotes, such as ["a"] or {"a": "b"}, got ${text.length} characters that are not JSON`
      : `must be a number, true or false, got "${text}"`;
    throw new ConfigError(`${setting} (${source}): ${fault}`);
  }
}
