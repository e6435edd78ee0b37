// Mutation testing: makes one small change to the sources at a time and runs the tests that reach it. Reports changes that no test notices.
//   npm run mutate -- PATH [PATH…] [--most 40] [--seed 1] [--steps 2] [--patience 30] [--also test/x.test.ts,…] [--seconds 3600] [--all] [--again LOG]
// PATH is a file or a folder of src/ or assembly/. --most mutants are drawn from all of them together, by --seed. The tests of
// a file are those that import it directly or indirectly in up to --steps steps; in the test folder of the same name, in any number of
// steps; an import of the compiled library counts as one of its source. Tests that take longer than half a minute or need a real browser
// or PostgreSQL are left out; --also adds them by name.
// The cheapest tests run first; after --patience seconds of passing tests the mutant has survived. No new mutant starts after --seconds.
// --all prints the killed ones too; --again reads the output of such a run and keeps its killed ones, so that after a new test only
// the others are tested. The last line is the score: killed of tried.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openKernelJudge } from "./mutation/kernels.mjs";
import { drawn, mutantsOf } from "./mutation/mutants.mjs";
import { openJudge } from "./mutation/sources.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    most: { type: "string", default: "40" },
    seed: { type: "string", default: "1" },
    steps: { type: "string", default: "2" },
    also: { type: "string", default: "" },
    patience: { type: "string", default: "30" },
    seconds: { type: "string", default: "Infinity" },
    all: { type: "boolean", default: false },
    again: { type: "string" },
  },
});
if (paths.length === 0) {
  console.error("name at least one file or folder: npm run mutate -- src/voiceprint");
  process.exit(2);
}
const options = {
  steps: Number(values.steps),
  also: values.also.split(",").filter(Boolean),
  patienceMs: 1000 * Number(values.patience),
};

const isGenerated = (name) => name.split("/").includes("gen");
const filesOf = (path) =>
  statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts") && !isGenerated(name))
        .sort()
        .map((name) => join(path, name))
    : [path];
const every = paths
  .flatMap((path) => filesOf(resolve(root, path)))
  .flatMap((path) => {
    const { code, mutants } = mutantsOf(path);
    return mutants.map((mutant) => ({ ...mutant, path, code }));
  })
  .map((mutant, id) => ({ ...mutant, id }));
const isKernel = ({ path }) => relative(root, path).startsWith("assembly/");
const sample = drawn(every, Number(values.most), Number(values.seed));
const [kernels, sources] = [sample.filter(isKernel), sample.filter((mutant) => !isKernel(mutant))];

const earlier = values.again ? readFileSync(values.again, "utf8").split("\n") : [];
const from = performance.now();
const placeOf = ({ path, line, what }) => `${relative(root, path)}:${line}  ${what.replaceAll(/\s+/g, " ")}`;

/** What killed the mutant in the earlier run, unless another mutant of the sample has the same description. */
function killedBefore(place) {
  const start = `killed    ${place}  (`;
  const found = earlier.find((line) => line.startsWith(start));
  const isOne = sample.filter((mutant) => placeOf(mutant) === place).length === 1;
  return found && isOne ? { killedBy: found.slice(start.length, -1) } : null;
}

const counts = { tried: 0, killed: 0 };
async function judgeAll(mutants, open) {
  if (mutants.length === 0) return;
  const judge = await open();
  try {
    for (const mutant of mutants) {
      if (performance.now() - from > Number(values.seconds) * 1000) return;
      const place = placeOf(mutant);
      const { killedBy, survived } = killedBefore(place) ?? (await judge.judge(mutant));
      counts.tried++;
      if (killedBy) counts.killed++;
      if (survived) console.log(`survived  ${place}  (${survived})`);
      else if (values.all) console.log(`killed    ${place}  (${killedBy})`);
    }
  } finally {
    await judge.close();
  }
}
await judgeAll(sources, () =>
  openJudge(
    every.filter((mutant) => !isKernel(mutant)),
    options,
  ),
);
await judgeAll(kernels, () => openKernelJudge(options));

const { tried, killed } = counts;
const seconds = Math.round((performance.now() - from) / 1000);
const share = tried === 0 ? "" : ` (${Math.round((100 * killed) / tried)} %)`;
console.log(`${killed} of ${tried} killed${share}, drawn from ${every.length} mutants, in ${seconds} s`);
process.exit(0);
