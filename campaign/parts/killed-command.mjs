import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const COMMAND = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
/** A command that takes longer counts as hung. */
const HUNG_MS = 600_000;

/** Runs a command of the command line, killed after `killMs` unless that is null. */
export async function runCommand(args, env, killMs) {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [COMMAND, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let [said, errors] = ["", ""];
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const timers = [
    ...(killMs === null ? [] : [setTimeout(() => child.kill("SIGKILL"), killMs)]),
    setTimeout(() => {
      errors += `no end within ${HUNG_MS} ms`;
      child.kill("SIGTERM");
    }, HUNG_MS),
  ];
  const ended = await new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
  for (const timer of timers) clearTimeout(timer);
  return { ended, said, errors, tookMs: performance.now() - startedAt };
}
