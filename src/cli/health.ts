import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Command } from "commander";
import { connectionFault } from "../contract/connection-fault.js";
import { loadConfig, type ServerConfig } from "../server/config.js";
import { boxAddress } from "./box-address.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { createOutput } from "./output.js";

interface Options {
  readonly config?: string;
  readonly port?: string;
  readonly url?: string;
  readonly json?: boolean;
}

const TIMEOUT_MS = 3000;

/** For containers and supervisors: checks the box that these settings describe. */
export function healthCommand(program: Command): void {
  program
    .command("health")
    .description("check whether the box on this machine is ready; uses the same settings as `serve`")
    .option("--config <file>", "configuration file (JSON)")
    .option("--port <n>", "port of the box, if `serve` was started with --port")
    .option("--url <url>", "check the box at this address instead")
    .option("--json", "print the result as JSON")
    .action(async (options: Options) => {
      const { url, status } = await readiness(options.url ?? addressOf(configOf(options)));
      if (status !== 200)
        throw new CommandError(`${url} answered HTTP ${status}: the box is not ready`, undefined, ExitCode.failed);
      createOutput(options.json).answer({ url, ready: true }, () => `${url} is ready`);
    });
}

const configOf = ({ config, port }: Options): ServerConfig => loadConfig({ file: config, flags: { port } });

function addressOf({ host, port, tls }: ServerConfig): string {
  const address = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  return `${tls ? "https" : "http"}://${address}:${port}`;
}

/**
 * The box's certificate names its public address, not this machine's. It is not verified, and nothing secret is sent.
 */
function readiness(address: string): Promise<{ url: string; status: number }> {
  const url = `${boxAddress(address)}/readyz`;
  return new Promise((resolve, reject) => {
    const request = url.startsWith("https:") ? httpsRequest(url, { rejectUnauthorized: false }) : httpRequest(url);
    request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    request.on("response", (response) => {
      response.resume();
      resolve({ url, status: response.statusCode ?? 0 });
    });
    request.on("error", (error) =>
      reject(
        new CommandError(
          `cannot connect to ${url}: ${connectionFault(error) ?? error.message}`,
          undefined,
          ExitCode.failed,
        ),
      ),
    );
    request.end();
  });
}
