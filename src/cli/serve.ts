import { type Command, Option } from "commander";
import { ConfigError, isLoopback, loadConfig, type ServerConfig } from "../server/config.js";
import { keepHeapSmall } from "../server/heap.js";
import { folderOf, type Peer } from "../server/open-store.js";
import type { Box, FirstStart } from "../server/start.js";
import { StoreError } from "../store/errors.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { firstStartLines, kept } from "./first-start.js";
import { MODEL } from "./model-option.js";
import { wholeNumber } from "./shared-options.js";

interface Options {
  readonly config?: string;
  readonly host?: string;
  readonly port?: number;
  readonly store?: string;
  readonly model?: string;
  readonly calibration?: string;
  readonly publicUrl?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly auth: boolean;
  readonly logLevel?: string;
  readonly set?: string[];
  readonly json?: boolean;
}

const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"];

export function serveCommand(program: Command): void {
  program
    .command("serve")
    .description("run a box: a voiceprint server for HTTP, gRPC, gRPC-Web and Connect on one port")
    .option("--config <file>", "configuration file (JSON)")
    .option("--host <address>", "address to listen on (127.0.0.1)")
    .option("--port <n>", "port to listen on (8080); 0 takes a free one", wholeNumber(0, 65_535))
    .option("--store <store>", "a folder, postgres://…, or memory")
    .option("--model <model>", MODEL)
    .option("--calibration <file>", 'calibration file from "vivavoce calibrate"')
    .option("--public-url <url>", "address that clients use, if it is not that of --host and --port")
    .option("--tls-cert <file>", "certificate (PEM)")
    .option("--tls-key <file>", "key of the certificate (PEM)")
    .option("--no-auth", "do not require tokens; allowed on loopback only")
    .addOption(new Option("--log-level <level>", "lowest level of messages to log to stderr").choices(LOG_LEVELS))
    .option("--set <name=value...>", "any other setting, such as --set limits.queuedAudio=16")
    .option("--json", "print the address, and at the first start the credentials, as JSON")
    .addHelpText(
      "after",
      "\nFlags override VIVAVOCE_… environment variables, which override the configuration file, which overrides the defaults.",
    )
    .action(serve);
}

async function serve(options: Options): Promise<void> {
  const { config: file, json, auth, tlsCert, tlsKey, logLevel, set = [], ...sameName } = options;
  const config = loadConfig({
    file,
    flags: {
      ...sameName,
      "tls.cert": tlsCert,
      "tls.key": tlsKey,
      "auth.required": auth ? undefined : false,
      "log.level": logLevel,
      ...settingsOf(set),
    },
  });
  // Registered first: somebody may stop the box as soon as the greeting is printed.
  const asked = stopAsked();
  keepHeapSmall();
  const { startBox } = await import("../server/start.js");
  const isFileNeeded = !json && !process.stdout.isTTY;
  let secrets: readonly string[] = [];
  const keepSecrets = async (first: FirstStart) => {
    const lines = firstStartLines(first);
    secrets = isFileNeeded ? await kept(lines, config) : lines;
  };
  const box = await startBox(config, { keepSecrets }).catch((error: unknown) => {
    throw explained(error, config);
  });
  process.stdout.write(
    json
      ? `${JSON.stringify({
          url: box.url,
          operatorUrl: box.operatorUrl,
          application: box.firstApplication,
          owner: box.firstOwner,
        })}\n`
      : greeting(box, config, secrets),
  );
  process.on("SIGHUP", () => box.reloadTls());
  await asked;
  process.exit((await box.stop()) ? ExitCode.ok : ExitCode.failed);
}

/** The first signal asks to stop; the second one forces it. */
function stopAsked(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const ask = () => {
      if (asked) process.exit(ExitCode.failed);
      asked = true;
      resolve();
    };
    process.on("SIGTERM", ask);
    process.on("SIGINT", ask);
  });
}

function settingsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new CommandError(`--set must be name=value, got ${pair}`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

function greeting(box: Box, config: ServerConfig, secrets: readonly string[]): string {
  const lines = [
    `vivavoce is running at ${box.url} (HTTP, gRPC, gRPC-Web and Connect; API description: ${box.url}/openapi.json)`,
  ];
  if (!config.auth.required) lines.push("WARNING: tokens are off. Anyone on this machine can use the service.");
  else if (!isLoopback(config.host) && box.url.startsWith("http:"))
    lines.push("WARNING: tokens are sent unencrypted; set tls.cert and tls.key.");
  if (box.operatorUrl)
    lines.push(`Operator view: ${box.operatorUrl}, for owners ("vivavoce token user" creates and changes users).`);
  return `${[...lines, ...secrets].join("\n")}\n`;
}

/** What may be over a moment later (a process that has not ended yet, a network that is not up) is not the settings' fault: a supervisor tries again. */
function explained(error: unknown, config: ServerConfig): unknown {
  if (error instanceof ConfigError) return error;
  if (error instanceof StoreError && error.code === "locked")
    return new CommandError(`${folderOf(config)} is in use by another process`, undefined, ExitCode.failed);
  const { host, port } = config;
  // Telephone lines have ports of their own.
  const { code, port: taken = port, address, hostname } = error as NodeJS.ErrnoException & Peer;
  const where = address ?? hostname ?? host;
  const hint = taken === port ? "choose another port with --port" : "choose another port for that line in telephony";
  if (code === "EADDRINUSE")
    return new CommandError(`port ${taken} on ${where} is already in use`, hint, ExitCode.failed);
  if (code === "EACCES" && taken > 0 && taken < 1024)
    return new CommandError(`this user may not listen on port ${taken}`, hint);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND")
    return new CommandError(`${where} is not an address of this machine`, undefined, ExitCode.failed);
  return error;
}
