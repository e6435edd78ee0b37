import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));

/** Starts Node with these arguments. The first line that it prints is JSON, with the address at which it listens. */
export async function startServer(...args) {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(child.stdout), "line");
  return { process: child, ...JSON.parse(line) };
}

/** Starts the built box on a free port; a new store also gives its first `application`. Settings are such as "limits.callsPerSecond=0". */
export function startBox(store, ...settings) {
  const flags = ["--store", store, "--port", "0", "--json", "--log-level", "error"];
  return startServer(MAIN, "serve", ...flags, ...settings.flatMap((setting) => ["--set", setting]));
}
