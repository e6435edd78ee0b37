// npm run campaign -- --help
// Tries to break the built package, on this machine alone, until the time or the count is used up. Prints what it did and what it broke;
// ends with 1 when anything was.
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

// Growth shows only in the memory that remains after a garbage collection.
setFlagsFromString("--expose-gc");
globalThis.gc = runInNewContext("gc");

const CAMPAIGNS = ["crash", "fuzz", "calls", "load", "tokens", "erase"];

const USAGE = `usage: npm run campaign -- ${CAMPAIGNS.join("|")} [--seconds n] [--count n] [--seed n] [--json]
  crash: [--only migration|models|commands] [--store folder|postgres]   calls: [--only dialect,…]   load: [--callers n] [--day] [--store memory]
What each does: docs/RELIABILITY.md`;

const { values, positionals } = read({
  allowPositionals: true,
  options: {
    help: { type: "boolean", default: false },
    seconds: { type: "string" },
    count: { type: "string" },
    seed: { type: "string" },
    callers: { type: "string" },
    store: { type: "string" },
    only: { type: "string" },
    day: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const [name] = positionals;
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
if (positionals.length !== 1 || !CAMPAIGNS.includes(name)) {
  console.error(USAGE);
  process.exit(2);
}
function read(config) {
  try {
    return parseArgs(config);
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    process.exit(2);
  }
}
const number = (option) => {
  if (values[option] === undefined) return undefined;
  const value = Number(values[option]);
  if (Number.isFinite(value) && value > 0) return value;
  console.error(`--${option} must be a number above 0, got ${values[option]}`);
  process.exit(2);
};
// A campaign that is stopped early still cleans up and reports what it found.
let isStopped = false;
for (const signal of ["SIGINT", "SIGTERM"])
  process.once(signal, () => {
    isStopped = true;
  });
const options = {
  isStopped: () => isStopped,
  seconds: number("seconds"),
  count: number("count"),
  seed: number("seed") ?? 1,
  callers: number("callers"),
  store: values.store,
  only: values.only,
  day: values.day,
  log: (line) => values.json || console.log(line),
};
const { campaign } = await import(`./${name}.mjs`);
const startedAt = performance.now();
const { counts, violations } = await campaign(options);
const seconds = Math.round((performance.now() - startedAt) / 1000);
const report = { campaign: name, seed: options.seed, seconds, ...counts, violations: violations.length };
if (values.json) console.log(JSON.stringify({ ...report, violations }));
else {
  console.log(report);
  for (const violation of violations.slice(0, 50)) console.log(`VIOLATION ${violation}`);
}
process.exit(violations.length > 0 ? 1 : 0);
