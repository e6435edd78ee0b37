/** Runs a command line in this process and returns its output. */
import { vi } from "vitest";
import { main } from "../../src/cli/program.js";

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of any command
  readonly json: any;
}

export async function run(...argv: string[]): Promise<Ran> {
  const written = { out: "", err: "" };
  const keep = (where: "out" | "err") => (chunk: unknown) => {
    written[where] += String(chunk);
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, "write").mockImplementation(keep("out") as never),
    vi.spyOn(process.stderr, "write").mockImplementation(keep("err") as never),
  ];
  const before = process.exitCode;
  process.exitCode = undefined;
  try {
    const code = await main(argv);
    return {
      code,
      ...written,
      get json() {
        return JSON.parse(written.out);
      },
    };
  } finally {
    process.exitCode = before;
    for (const spy of spies) spy.mockRestore();
  }
}
