// Mutants of assembly/: each is compiled in a copy of the checkout (node_modules is shared) and runs the tests of its part.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Time limit of tests: this multiple of their normal duration, plus this margin. Beyond it the mutant hangs and is stopped. */
const HANGS = { times: 3, moreMs: 30_000 };

const TESTS = { dsp: "dsp", quality: "dsp", math: "dsp", nn: "nn", speaker: "nn", spoof: "nn", score: "score" };

/** Like openJudge of sources.mjs; `also` names the tests, instead of those of the part. */
export function openKernelJudge({ also }) {
  const copy = mkdtempSync(join(tmpdir(), "mutate-"));
  const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  for (const name of tracked.trim().split("\n")) cpSync(join(root, name), join(copy, name), { recursive: true });
  cpSync(join(root, "dist"), join(copy, "dist"), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));

  const run = (tests, timeout) =>
    spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "--bail=1", ...tests], {
      cwd: copy,
      encoding: "utf8",
      timeout,
    });
  const unbrokenMs = new Map();
  function msOf(tests) {
    const key = tests.join();
    if (!unbrokenMs.has(key)) {
      const from = performance.now();
      const { status, stdout } = run(tests);
      if (status !== 0) throw new Error(`the tests fail without a mutant: ${key}\n${stdout.slice(-1000)}`);
      unbrokenMs.set(key, performance.now() - from);
    }
    return unbrokenMs.get(key);
  }

  return {
    judge({ path, code, start, end, text }) {
      const [, folder, network] = relative(root, path).split("/");
      const part = network === "tdnn" ? "model-import/tdnn.test.ts" : TESTS[folder];
      const tests = also.length > 0 ? also : part ? [`test/${part}`] : ["test/dsp", "test/nn", "test/score"];
      const limitMs = Math.ceil(HANGS.times * msOf(tests) + HANGS.moreMs);
      const broken = join(copy, relative(root, path));
      writeFileSync(broken, code.slice(0, start) + text + code.slice(end));
      const { status } = run(tests, limitMs);
      writeFileSync(broken, code);
      return status === 0 ? { survived: `${tests.join(", ")} passed` } : { killedBy: tests.join(", ") };
    },
    close: () => rmSync(copy, { recursive: true, force: true }),
  };
}
