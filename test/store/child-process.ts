/** Starts test/store/enrolling-process.mjs and reads its messages. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("./enrolling-process.mjs", import.meta.url));

export interface Child {
  readonly process: ChildProcess;
  /** Each message as it comes, until the process ends. */
  readonly messages: AsyncIterable<Record<string, unknown>>;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; errors: string }>;
}

/** Like a container: processes in it have their own ids. Ending it ends all of them. */
export const OWN_PROCESS_NUMBERS = [
  "unshare",
  ...(process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"]),
].concat(["--pid", "--fork", "--kill-child", "--mount-proc"]);

export const startEnrolling = (...args: (string | number)[]): Child => startEnrollingIn([], ...args);

export function startEnrollingIn(wrapper: readonly string[], ...args: (string | number)[]): Child {
  // The optimizing compiler of WebAssembly costs more than these short processes gain from it.
  const [command, ...rest] = [...wrapper, process.execPath, "--liftoff-only", SCRIPT, ...args.map(String)];
  const child = spawn(command!, rest, {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const ended = new Promise<Awaited<Child["ended"]>>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal, errors }));
  });
  return { process: child, messages: messagesOf(child), ended };
}

async function* messagesOf(child: ChildProcess): AsyncIterable<Record<string, unknown>> {
  for await (const line of createInterface({ input: child.stdout! })) {
    // The last line of a killed process may be truncated: it does not count.
    if (line.endsWith("}")) yield JSON.parse(line);
  }
}
