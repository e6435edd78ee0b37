// Mutants of src/: vitest stays warm in this process, each mutant is switched on in turn, and only the tests that reach it run.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { loadConfigFromFile } from "vite";
import { createVitest } from "vitest/node";
import { build } from "../build.mjs";
import { importGraph } from "./import-graph.mjs";
import { switched } from "./mutants.mjs";
import { openNotes } from "./notes.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Time limit of tests: this multiple of their normal duration, plus this margin. Beyond it the mutant hangs and is stopped. */
const HANGS = { times: 3, moreMs: 15_000 };
/** Real browsers and servers take too long for each mutant, and so does a test file that takes this long; `also` names such tests. */
const COSTLY = /playwright-core|postgres-server\.ts$/;
const COSTLY_MS = 30_000;
const COMPILED = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };

/**
 * Judges mutants of the given files: `judge(mutant)` resolves to { killedBy } or { survived: why }.
 * Time limits assume a machine as busy as when the tests were measured.
 */
export async function openJudge(mutants, { steps, also, patienceMs }) {
  const byPath = new Map();
  for (const mutant of mutants) byPath.set(mutant.path, [...(byPath.get(mutant.path) ?? []), mutant]);
  const { config } = await loadConfigFromFile({ command: "serve", mode: "test" }, join(root, "vitest.config.ts"));
  const bundles = config.test.projects.find(({ test }) => test.name === "bundles").test.include;
  const graph = importGraph();
  const isUsed = (test) => also.includes(test) || (!bundles.includes(test) && !graph.imports(test, COSTLY));
  const testsOf = (path) => [
    ...new Set([
      ...graph.nearestTests(path, steps),
      ...graph.nearestTests(path, Infinity).filter((test) => isNear(test, path)),
    ]),
  ];
  const sources = [...byPath.values()].map(([{ code }]) => code).join("");
  const paths = [...byPath.keys()].map((path) => relative(root, path)).join();
  const notes = openNotes(join(root, "dist/.mutation"), paths, (test) => graph.testText(test) + sources);
  await build("library");
  const folder = mkdtempSync(join(tmpdir(), "mutate-"));
  const workerFile = join(folder, "worker");
  const vitest = await createVitest(
    "test",
    {
      config: false,
      root,
      watch: false,
      include: ["test/**/*.test.ts"],
      setupFiles: [join(root, "scripts/mutation/active.mjs")],
      pool: "forks",
      maxWorkers: 1,
      bail: 1,
      silent: true,
      reporters: [{}],
      testTimeout: 60_000,
      hookTimeout: 60_000,
    },
    {
      plugins: [
        {
          name: "mutants",
          enforce: "pre",
          transform(_, id) {
            if (byPath.has(id)) return { code: switched(byPath.get(id)), map: null };
            // Tests of the compiled library reach the same mutants, except in worker threads and processes of their own.
            const compiled = byPath.get(id.replace(join(root, "dist/"), join(root, "src/")).replace(/\.js$/, ".ts"));
            return compiled ? { code: ts.transpile(switched(compiled), COMPILED), map: null } : null;
          },
        },
      ],
    },
  );
  await vitest.standalone();
  vitest.provide("workerFile", workerFile);

  /** Runs the tests of a file with these ids, or all of them, with or without a mutant. */
  async function run(test, mutant, { ids, limitMs = 600_000 } = {}) {
    vitest.provide("mutant", mutant?.id ?? null);
    let isLate = false;
    const hangs = setTimeout(() => {
      isLate = true;
      endWorker(workerFile);
    }, limitMs);
    const from = performance.now();
    try {
      const specification = vitest.getRootProject().createSpecification(join(root, test), ids && { testIds: ids });
      const { testModules, unhandledErrors } = await vitest.runTestSpecifications([specification]);
      // Includes the modules of earlier runs.
      const module = testModules.find(({ moduleId }) => moduleId === join(root, test));
      const failed = module ? [...module.children.allTests("failed")] : [];
      const errors = [...unhandledErrors, ...(module?.errors() ?? [])];
      const isFailed = failed.length > 0 || errors.length > 0 || !module?.ok();
      isLate ||= failed.some((one) => one.result().errors.some(({ message }) => /timed out/.test(message)));
      return { isFailed, isLate, failed, errors, module, ms: performance.now() - from };
    } finally {
      clearTimeout(hangs);
      vitest.state.clearErrors();
    }
  }

  /** Measures a test file without a mutant: its duration, and which of its tests reach which mutants. */
  async function measured(test) {
    const limitMs = also.includes(test) ? undefined : COSTLY_MS;
    const { isFailed, failed, errors, module, ms } = await run(test, null, { limitMs });
    const why = failed.map(({ fullName }) => fullName).join(", ") || errors.map(({ message }) => message).join(", ");
    const isSlow = ms > limitMs;
    const leftOut = isSlow
      ? `takes longer than ${limitMs / 1000} s`
      : isFailed
        ? `fails without a mutant: ${why}`
        : null;
    if (leftOut) return { ms, leftOut, everyTest: [], tests: [] };
    const passed = [...module.children.allTests("passed")];
    const tests = passed.map((one) => ({
      id: one.id,
      ms: one.diagnostic().duration,
      mutants: one.meta().mutants ?? [],
    }));
    return { ms, leftOut, everyTest: module.meta().mutants ?? [], tests };
  }

  const known = new Map();
  async function unbroken(test) {
    if (!known.has(test)) {
      const noted = notes.get(test);
      // Left out as slow in an earlier run, but now named.
      const isOutdated = noted?.leftOut && also.includes(test);
      const note = noted && !isOutdated ? noted : await measured(test);
      if (note.leftOut) console.error(`left out: ${test} ${note.leftOut}`);
      if (!note.leftOut?.startsWith("fails")) notes.set(test, note);
      known.set(test, {
        ms: note.ms,
        everyTest: new Set(note.everyTest),
        tests: note.tests.map(({ id, ms, mutants }) => ({ id, ms, mutants: new Set(mutants) })),
        standAlone: new Map(),
        isWhole: false,
      });
    }
    return known.get(test);
  }

  /** Whether a test passes without a mutant and without the other tests of its file: only then is a failure due to the mutant. */
  async function standsAlone(test, id) {
    const { standAlone } = await unbroken(test);
    if (!standAlone.has(id)) standAlone.set(id, !(await run(test, null, { ids: [id] })).isFailed);
    return standAlone.get(id);
  }

  async function isKilledBy(test, mutant) {
    const file = await unbroken(test);
    const ids = file.tests.filter(({ mutants }) => mutants.has(mutant.id)).map(({ id }) => id);
    const limitMs = HANGS.times * file.ms + HANGS.moreMs;
    const isWhole = file.isWhole || file.everyTest.has(mutant.id) || ids.length === file.tests.length;
    const options = { ids: isWhole ? undefined : ids, limitMs };
    const { isFailed, isLate, failed } = await run(test, mutant, options);
    // Late because of the mutant, or because the machine has become busier since the test was measured?
    if (isFailed && isLate && (await run(test, null, options)).isFailed) return false;
    if (!isFailed || isWhole || failed.length === 0 || (await standsAlone(test, failed[0].id))) return isFailed;
    file.isWhole = true;
    return (await run(test, mutant, { limitMs })).isFailed;
  }

  return {
    async judge(mutant) {
      const neighbours = byPath.get(mutant.path);
      const direct = new Set(graph.nearestTests(mutant.path, 1));
      const comingBy = [];
      for (const test of testsOf(mutant.path).filter(isUsed)) {
        const file = await unbroken(test);
        if (!comesBy(file, mutant)) continue;
        // A constant is reached wherever its file is loaded: tests that import it, or run other code of that file, are likelier to notice.
        const isUser = file.tests.some(({ mutants }) => neighbours.some(({ id }) => mutants.has(id)));
        const costMs = costOf(file, mutant);
        const distance = (isNear(test, mutant.path) ? 1 : 3) * (direct.has(test) ? 1 : 3) * (isUser ? 1 : 10);
        comingBy.push({ test, costMs, rank: costMs * distance });
      }
      comingBy.sort((one, other) => one.rank - other.rank);
      let passed = 0;
      let spentMs = 0;
      for (const { test, costMs } of comingBy) {
        if (passed > 0 && spentMs + costMs > patienceMs) continue;
        if (await isKilledBy(test, mutant)) return { killedBy: test };
        passed++;
        spentMs += costMs;
      }
      return { survived: `of ${comingBy.length} test files that reach it, ${passed} were run` };
    },
    async close() {
      await vitest.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const comesBy = ({ everyTest, tests }, { id }) => everyTest.has(id) || tests.some(({ mutants }) => mutants.has(id));

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Normal duration of the tests of a file that reach it. */
function costOf({ ms, everyTest, tests }, { id }) {
  if (everyTest.has(id)) return ms;
  return ms - sum(tests.filter(({ mutants }) => !mutants.has(id)).map((one) => one.ms));
}

/** Whether a test is in the test folder with the name of the source's folder. */
const isNear = (test, path) => relative(root, path).split("/").slice(1, -1).includes(test.split("/")[1]);

function endWorker(workerFile) {
  try {
    process.kill(Number(readFileSync(workerFile, "utf8")), "SIGKILL");
  } catch {
    // It has just ended by itself.
  }
}
