/**
 * Runs the commands of README.md, docs/tokens.md and the tutorials exactly as written, in a folder of a user who installed the package,
 * against a real box.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { withEmptyDatabase } from "../store/empty-database.js";
import { speak, wav } from "../voice.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
// Some thirty commands, each in its own process: minutes on a busy machine.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 120_000 });

interface Block {
  readonly language: string;
  readonly text: string;
}

/** The code blocks under a heading, in order; without a heading, all of them. */
async function blocks(document: string, heading = ""): Promise<Block[]> {
  const text = await readFile(join(ROOT, document), "utf8");
  const from = heading === "" ? 0 : text.indexOf(`\n## ${heading}\n`) + 1;
  if (heading !== "" && from === 0) throw new Error(`${document} has no section ${heading}`);
  const to = heading === "" ? -1 : text.indexOf("\n## ", from);
  const section = text.slice(from, to === -1 ? undefined : to);
  return [...section.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({
    language: language!,
    text: code!,
  }));
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** One shell that runs blocks one after the other, as a user pastes them; each returns what it printed. */
class Shell {
  readonly #shell: ChildProcess;
  readonly #port: number;
  #printed = "";

  constructor(folder: string, port: number) {
    this.#port = port;
    // Its own process group: a box that a command starts in the background ends with the shell.
    this.#shell = spawn("bash", ["-e", "-o", "pipefail"], {
      cwd: folder,
      detached: true,
      env: {
        PATH: `${join(folder, "node_modules", ".quick")}:${process.env.PATH}`,
        HOME: folder,
        XDG_DATA_HOME: join(folder, "data"),
        XDG_CACHE_HOME: join(folder, "cache"),
        VIVAVOCE_PORT: String(port),
      },
    });
    for (const stream of [this.#shell.stdout!, this.#shell.stderr!])
      stream.on("data", (chunk) => {
        this.#printed += chunk;
      });
  }

  async run(lines: string): Promise<string> {
    this.#printed = "";
    const end = `=== ${Math.random()} ===`;
    this.#shell.stdin!.write(`${lines.replaceAll("8080", String(this.#port))}\necho; echo '${end}'\n`);
    await new Promise<void>((resolve, reject) => {
      const ended = () => reject(new Error(`a line failed:\n${lines}\n${this.#printed}`));
      const heard = () => {
        if (!this.#printed.includes(end)) return;
        this.#shell.off("exit", ended);
        this.#shell.stdout!.off("data", heard);
        resolve();
      };
      this.#shell.once("exit", ended);
      this.#shell.stdout!.on("data", heard);
    });
    // As for a reader whose box listens on the default port.
    return this.#printed.slice(0, this.#printed.indexOf(end)).replaceAll(String(this.#port), "8080").trim();
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#shell.once("exit", resolve));
    process.kill(-this.#shell.pid!, "SIGTERM");
    if (this.#shell.exitCode === null) await ended;
  }
}

/** The output that a document shows; `…` matches anything. */
const shown = (text: string) =>
  new RegExp(
    text
      .trim()
      .split("…")
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("[\\s\\S]*?"),
  );

let folder: string;
const shells: Shell[] = [];

/** `stores`: where its commands find a database. */
async function openShell(name: string, ...stores: string[]): Promise<Shell> {
  const own = join(folder, name);
  await mkdir(own);
  await symlink(join(folder, "node_modules"), join(own, "node_modules"));
  for (const store of stores) await withEmptyDatabase(join(own, store));
  const shell = new Shell(own, await freePort());
  shells.push(shell);
  return shell;
}

beforeAll(async () => {
  const main = join(ROOT, "dist", "cli", "main.js");
  folder = await mkdtemp(join(tmpdir(), "vivavoce-documents-"));
  await mkdir(join(folder, "node_modules", ".bin"), { recursive: true });
  await symlink(ROOT, join(folder, "node_modules", "vivavoce"));
  await symlink(main, join(folder, "node_modules", ".bin", "vivavoce"));
  // Replaces npx, to save the second it takes each time; the lines of a first start are tested with the real one. Most of the time of a
  // command would go into optimizing code of the database that runs once.
  await mkdir(join(folder, "node_modules", ".quick"));
  await writeFile(
    join(folder, "node_modules", ".quick", "npx"),
    '#!/bin/sh\nexec node --liftoff-only "node_modules/.bin/$@"\n',
    {
      mode: 0o755,
    },
  );
});
afterAll(async () => {
  await Promise.all(shells.map((shell) => shell.close()));
  // The box in the background finishes its writes.
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

/** Runs the shell blocks in order; a block without a language directly after one is its expected output. */
async function follow(shell: Shell, all: readonly Block[]): Promise<string[]> {
  const outputs: string[] = [];
  for (const [i, block] of all.entries()) {
    if (block.language !== "sh") continue;
    const printed = await shell.run(block.text);
    outputs.push(printed);
    const next = all[i + 1];
    if (next?.language === "") expect(printed).toMatch(shown(next.text));
  }
  return outputs;
}

describe("README.md", () => {
  it("its first program enrolls and verifies a voice", async () => {
    const shell = await openShell("program");
    const [program] = await blocks("README.md");
    await writeFile(join(folder, "program", "program.mjs"), program!.text);
    const printed = await shell.run("npx vivavoce demo --wav voices > /dev/null\nnode program.mjs");
    expect(printed).toMatch(/^AUTHENTIC \d+\.\d \d+\.\d/);
  });

  it("the commands of the section on the box work on a user's files", async () => {
    const shell = await openShell("commands", "data/vivavoce/store");
    const at = (name: string) => join(folder, "commands", name);
    await shell.run("npx vivavoce demo --wav voices > /dev/null");
    for (const [i, name] of ["a", "b", "c", "d"].entries())
      await copyFile(at(`voices/ada-${i + 1}.wav`), at(`${name}.wav`));
    await copyFile(at("voices/ada-1.wav"), at("call.wav"));
    for (const speaker of [1, 2, 3, 4, 5, 6])
      for (const [seed, session] of ["monday", "friday"].entries()) {
        await mkdir(at(`recordings/${speaker}/${session}`), { recursive: true });
        const sound = speak({ speaker, seconds: 3, rateHz: 8000, seed });
        await writeFile(at(`recordings/${speaker}/${session}/1.wav`), wav(sound, 8000));
      }
    const [install, commands] = (await blocks("README.md", "Run the box")).filter(({ language }) => language === "sh");
    expect(install!.text).toBe("npm install && npm start\n");
    const scripts = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")).scripts as Record<string, string>;
    const lines = commands!.text.trim().split("\n");
    const ran = lines.filter((line) => !line.startsWith("npm run "));
    for (const line of lines.filter((one) => one.startsWith("npm run ")))
      expect(scripts).toHaveProperty(/^npm run (\S+)/.exec(line)![1]!);
    const printed = await shell.run(ran.join("\n"));
    expect(printed).toMatch(/net speech/);
    expect(printed).toMatch(/ada is enrolled/);
    expect(printed).toMatch(/AUTHENTIC/);
    expect(printed).toMatch(/EER/);
  });

  it("the section on tokens works: an application, a token, a call, the engagement example", async () => {
    const [called, engaged] = await follow(await openShell("readme", "store"), await blocks("README.md", "Tokens"));
    expect(called).toMatch(/"statusCode":"OK"/);
    expect(called).toMatch(/"gkSessionId":\{"value":"[0-9a-f-]{36}"\}/);
    expect(engaged).toContain('"status":"online"');
  });
});

describe.each(
  ["tutorials/node", "tutorials/operator", "tutorials/data", "tutorials/page", "operations"].map(
    (name) => `docs/${name}.md`,
  ),
)("%s", (document) => {
  it("every command works as written and prints the shown output", async () => {
    const stores = document === "docs/operations.md" ? ["store"] : [];
    const shell = await openShell(document.replace(/\W/g, "-"), ...stores);
    const outputs = await follow(shell, await blocks(document));
    expect(outputs.length).toBeGreaterThan(0);
  });
});

describe("docs/tokens.md", () => {
  it("every command works as written and prints the shown output", async () => {
    const all = await blocks("docs/tokens.md");
    const outputs = await follow(await openShell("tokens", "store"), all);
    expect(outputs.length).toBe(all.filter(({ language }) => language === "sh").length);
    expect(outputs.join("\n")).toMatch(/"statusCode":"OK"/);
  });
});
