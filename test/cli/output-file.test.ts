/** What commands write: to files, and to standard output that nobody reads or that has no room. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, openSync } from "node:fs";
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { demoCommand } from "../../src/cli/demo.js";
import { cacheFault } from "../../src/cli/evaluate.js";
import { ExitCode } from "../../src/cli/exit-code.js";
import { assertCanWrite, writeOutput } from "../../src/cli/output-file.js";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
// Each command is a process, which takes long to start on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-output-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("a folder that cannot be created is a mistake of the user, as a file is", async () => {
  const program = new Command();
  demoCommand(program);
  const refused = program.parseAsync(["demo", "--wav", "/proc/voices"], { from: "user" });
  await expect(refused).rejects.toMatchObject({ message: "/proc/voices: permission denied", exitCode: ExitCode.usage });
});

describe("a file that a command writes", () => {
  const inFolder = (name: string) => join(folder, name);

  it("is refused beforehand if its name is a folder, or a broken or looping link", async () => {
    await mkdir(inFolder("folder"));
    await symlink("nowhere", inFolder("dangling"));
    await symlink("circle", inFolder("circle"));
    await expect(assertCanWrite(inFolder("folder"))).rejects.toThrow("this is a folder, not a file");
    await expect(assertCanWrite(inFolder("dangling"))).rejects.toThrow("dangling: no such file");
    await expect(assertCanWrite(inFolder("circle"))).rejects.toThrow("its symbolic links form a loop");
    await expect(assertCanWrite(inFolder("new"), undefined, "/dev/null")).resolves.toBeUndefined();
  });

  it("is refused beforehand if its folder cannot be written, even if there is such a file already", async () => {
    await writeFile(inFolder("old.json"), "old");
    await chmod(inFolder("old.json"), 0o666);
    await chmod(folder, 0o555);
    // Root may write everywhere.
    const user = process.getuid!() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    const child = execFile(process.execPath, [MAIN, "calibrate", folder, "--out", inFolder("old.json")], user);
    const [said, [code]] = await Promise.all([text(child.stderr!), once(child, "close")]);
    await chmod(folder, 0o755);
    expect(said).toBe(`error: ${inFolder("old.json")}: the folder ${folder} cannot be written: permission denied\n`);
    expect(code).toBe(2);
  });

  it("is replaced as a whole, through a link, with its own mode; nothing else is left behind", async () => {
    await writeFile(inFolder("old.json"), "old", { mode: 0o600 });
    await symlink("old.json", inFolder("link.json"));
    await writeOutput(inFolder("link.json"), "new");
    expect(await readFile(inFolder("old.json"), "utf8")).toBe("new");
    expect((await lstat(inFolder("old.json"))).mode & 0o777).toBe(0o600);
    expect((await lstat(inFolder("link.json"))).isSymbolicLink()).toBe(true);
    await writeOutput(inFolder("shared.json"), "figures", 0o644);
    expect((await lstat(inFolder("shared.json"))).mode & 0o777).toBe(0o644);
    expect((await readdir(folder)).sort()).toEqual(["link.json", "old.json", "shared.json"]);
  });

  it("stays a pipe if it is one", async () => {
    await promisify(execFile)("mkfifo", [inFolder("pipe")]);
    const read = text(createReadStream(inFolder("pipe")));
    await writeOutput(inFolder("pipe"), "through");
    expect(await read).toBe("through");
    expect((await lstat(inFolder("pipe"))).isFIFO()).toBe(true);
  });

  it("may be a pipe whose reader has seen enough", async () => {
    await promisify(execFile)("mkfifo", [inFolder("pipe")]);
    const head = execFile("head", ["-c", "1", inFolder("pipe")]);
    const [said] = await Promise.all([
      text(head.stdout!),
      writeOutput(inFolder("pipe"), "more than a pipe holds".repeat(1e5)),
    ]);
    expect(said).toBe("m");
  });

  it("is no mistake in the command if the disk is full", async () => {
    await expect(writeOutput("/dev/full", "figures")).rejects.toMatchObject({
      message: "/dev/full: the disk is full; free some space and start again",
      exitCode: ExitCode.failed,
    });
    // The error of a write names no file.
    const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    expect(() => cacheFault("cache.jsonl")(full)).toThrow(
      expect.objectContaining({
        message: "cache.jsonl: the disk is full; free some space and start again",
        hint: "--no-cache works without this file",
        exitCode: ExitCode.failed,
      }),
    );
  });
});

describe("an answer", () => {
  const printing = (output: "pipe" | number) =>
    spawn(process.execPath, [MAIN, "completion", "bash"], { stdio: ["ignore", output, "pipe"] });

  it("whose reader has gone ends the command quietly, with its own exit code", async () => {
    const child = printing("pipe");
    child.stdout!.destroy();
    const [said, [code]] = await Promise.all([text(child.stderr!), once(child, "close")]);
    expect(said).toBe("");
    expect(code).toBe(0);
  });

  it("is never taken for the no of a check if the command itself breaks", async () => {
    const breaks = `process.stdout.write = () => setImmediate(() => { throw new Error("broken"); })`;
    const started = ["--import", `data:text/javascript,${encodeURIComponent(breaks)}`, MAIN, "completion", "bash"];
    const child = spawn(process.execPath, started, { stdio: ["ignore", "pipe", "pipe"] });
    const [said, [code]] = await Promise.all([text(child.stderr!), once(child, "close")]);
    expect(said).toContain("Error: broken");
    expect(code).toBe(4);
  });

  it("that cannot be written is an error", async () => {
    const child = printing(openSync("/dev/full", "w"));
    const [said, [code]] = await Promise.all([text(child.stderr!), once(child, "close")]);
    expect(said).toMatch(/^error: the output cannot be written: the disk is full/);
    expect(code).toBe(4);
  });
});
