// Mutants of src/: vitest stays warm in this process, each mutant is switched on in turn, and only the tests that come by it run.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { loadConfigFromFile } from "vite";
import { createVitest } from "vitest/node";
import { build } from "../build.mjs";
import { switched } from "./mutants.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Tests that take this many times as long as without a mutant, and this much more, are stopped: the mutant hangs. */
const HANGS = { times: 3, moreMs: 15_000 };
/** Real browsers and servers cost too much for each mutant, and so does a file of tests that takes this long; `also` names such tests. */
const COSTLY = /playwright-core|postgres-server\.js/;
const COSTLY_MS = 30_000;
/** After so much time with tests that pass, a mutant has survived: by then its nearest tests have run. */
const PATIENCE_MS = 20_000;

/** A judge of mutants: `judge(mutant)` resolves to what became of it, { killedBy } or { survived: why }. */
export async function openJudge(mutants, { steps, also }) {
  const byPath = new Map();
  for (const mutant of mutants) byPath.set(mutant.path, [...(byPath.get(mutant.path) ?? []), mutant]);
  const { config } = await loadConfigFromFile({ command: "serve", mode: "test" }, join(root, "vitest.config.ts"));
  const testsOf = (project) => config.test.projects.find(({ test }) => test.name === project).test.include;
  const [library, bundles] = [testsOf("library"), testsOf("bundles")];
  const nearest = nearestTests(steps, also, bundles);
  if (
    [...byPath.keys()].some((path) =>
      nearest(path)
        .flat()
        .some((test) => library.includes(test)),
    )
  )
    await build("library");
  else await build("kernels");
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
          transform: (code, id) => (byPath.has(id) ? { code: switched(code, byPath.get(id)), map: null } : null),
        },
      ],
    },
  );
  await vitest.standalone();
  vitest.provide("workerFile", workerFile);

  /** Runs the tests of a file that have these ids, or all of them, with a mutant or none. */
  async function run(test, mutant, { ids, limitMs = 600_000 } = {}) {
    vitest.provide("mutant", mutant?.id ?? null);
    const hangs = setTimeout(() => process.kill(Number(readFileSync(workerFile, "utf8")), "SIGKILL"), limitMs);
    const from = performance.now();
    try {
      const specification = vitest.getRootProject().createSpecification(join(root, test), ids && { testIds: ids });
      const { testModules, unhandledErrors } = await vitest.runTestSpecifications([specification]);
      // The modules of earlier runs are among them.
      const module = testModules.find(({ moduleId }) => moduleId === join(root, test));
      const failed = module ? [...module.children.allTests("failed")] : [];
      const errors = [...unhandledErrors, ...(module?.errors() ?? [])];
      const isFailed = failed.length > 0 || errors.length > 0 || !module?.ok();
      return { isFailed, failed, errors, module, ms: performance.now() - from };
    } finally {
      clearTimeout(hangs);
      vitest.state.clearErrors();
    }
  }

  /** What a test file does without a mutant: how long it takes, and which of its tests come by which mutants. */
  const known = new Map();
  async function unbroken(test) {
    if (!known.has(test)) {
      const limitMs = also.includes(test) ? undefined : COSTLY_MS;
      const { isFailed, failed, errors, module, ms } = await run(test, null, { limitMs });
      const why = failed.map(({ fullName }) => fullName).join(", ") || errors.map(({ message }) => message).join(", ");
      if (ms > limitMs) console.error(`left out: ${test} takes longer than ${limitMs / 1000} s`);
      else if (isFailed) console.error(`left out: ${test} fails without a mutant (${why})`);
      const tests = isFailed ? [] : [...module.children.allTests()].filter((one) => one.result().state === "passed");
      known.set(test, {
        ms,
        isFailed,
        everyTest: new Set(isFailed ? [] : (module.meta().mutants ?? [])),
        tests: tests.map((one) => ({ id: one.id, mutants: new Set(one.meta().mutants) })),
        standAlone: new Map(),
        isWhole: false,
      });
    }
    return known.get(test);
  }

  /** Whether a test passes without the others of its file and without a mutant: only then a failure among a few of them is the mutant's. */
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
    const { isFailed, failed } = await run(test, mutant, { ids: isWhole ? undefined : ids, limitMs });
    if (!isFailed || isWhole || failed.length === 0 || (await standsAlone(test, failed[0].id))) return isFailed;
    file.isWhole = true;
    return (await run(test, mutant, { limitMs })).isFailed;
  }

  return {
    async judge(mutant) {
      let passedMs = 0;
      let passed = 0;
      for (const tests of nearest(mutant.path))
        for (const test of tests.toSorted(likelyFirst(mutant, known))) {
          if (passedMs > PATIENCE_MS) break;
          if (!comesBy(await unbroken(test), mutant)) continue;
          const from = performance.now();
          if (await isKilledBy(test, mutant)) return { killedBy: test };
          passedMs += performance.now() - from;
          passed++;
        }
      return { survived: passed === 0 ? "no test comes by" : `test files that come by and pass: ${passed}` };
    },
    async close() {
      await vitest.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const comesBy = ({ everyTest, tests }, { id }) => everyTest.has(id) || tests.some(({ mutants }) => mutants.has(id));

/** Tests in the folder that has the name of the source's come first, then what is known to be quick; what is not known yet comes last. */
function likelyFirst({ path }, known) {
  const folders = relative(root, path).split("/").slice(1, -1);
  const isNear = (test) => folders.includes(test.split("/")[1]);
  return (a, b) => isNear(b) - isNear(a) || (known.get(a)?.ms ?? Infinity) - (known.get(b)?.ms ?? Infinity) || 0;
}

const sourcesUnder = (folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(root, folder, name));

/** For a source file: the test files that import it, those that do so in two steps, and so on; each list may be empty. */
function nearestTests(steps, also, bundles) {
  const imports = new Map();
  const importers = new Map();
  for (const file of [...sourcesUnder("src"), ...sourcesUnder("test")]) {
    const { importedFiles } = ts.preProcessFile(readFileSync(file, "utf8"), true, true);
    imports.set(
      file,
      importedFiles.map(({ fileName }) => fileName),
    );
    for (const { fileName } of importedFiles) {
      if (!fileName.startsWith(".")) continue;
      const target = resolve(dirname(file), fileName.replace(/\.js$/, ".ts"));
      importers.set(target, [...(importers.get(target) ?? []), file]);
    }
  }
  const isUsed = (test) =>
    also.includes(test) ||
    (!bundles.includes(test) && !imports.get(join(root, test)).some((imported) => COSTLY.test(imported)));
  return (path) => {
    let layer = [path];
    const seen = new Set(layer);
    const layers = [];
    for (let step = 0; step < steps; step++) {
      layer = [...new Set(layer.flatMap((file) => importers.get(file) ?? []))].filter((file) => !seen.has(file));
      for (const file of layer) seen.add(file);
      layers.push(
        layer
          .filter((file) => file.endsWith(".test.ts"))
          .map((file) => relative(root, file))
          .filter(isUsed),
      );
    }
    return layers;
  };
}
