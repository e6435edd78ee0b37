// Breaks a source file in one small way after another and runs the tests of it: a change that no test notices is reported.
//   npm run mutate -- PATH [PATH…] [--tests test/x.test.ts,…] [--steps 3] [--most 40] [--seed 1] [--seconds 3600]
// PATH is a file or a folder of src/ or assembly/; so many mutants are drawn from all of them together. The tests of a file are those that import
// it, then those that import something that does, in up to three steps or fewer; --tests names others. Each mutant runs in a copy of the checkout
// (node_modules are shared), so the checkout itself is never broken. After so many seconds no further mutant is begun. The last line is the
// score: killed of tried.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Tests that take longer than this multiple of what they take unbroken, and so much more, are stopped: the mutant hangs. */
const HANGS = { times: 3, moreMs: 30_000 };

const { values: options, positionals: paths } = parseArgs({
  allowPositionals: true,
  options: {
    tests: { type: "string" },
    steps: { type: "string", default: "3" },
    most: { type: "string", default: "40" },
    seed: { type: "string", default: "1" },
    seconds: { type: "string", default: "Infinity" },
  },
});
if (paths.length === 0) {
  console.error("name at least one file or folder: npm run mutate -- src/voiceprint");
  process.exit(2);
}

const K = ts.SyntaxKind;
/** What one token may become. */
const SWAPS = new Map([
  [K.LessThanToken, ["<=", ">="]],
  [K.LessThanEqualsToken, ["<", ">"]],
  [K.GreaterThanToken, [">=", "<="]],
  [K.GreaterThanEqualsToken, [">", "<"]],
  [K.EqualsEqualsEqualsToken, ["!=="]],
  [K.ExclamationEqualsEqualsToken, ["==="]],
  [K.EqualsEqualsToken, ["!="]],
  [K.ExclamationEqualsToken, ["=="]],
  [K.AmpersandAmpersandToken, ["||"]],
  [K.BarBarToken, ["&&"]],
  [K.QuestionQuestionToken, ["&&"]],
  [K.PlusToken, ["-"]],
  [K.MinusToken, ["+"]],
  [K.AsteriskToken, ["/"]],
  [K.SlashToken, ["*"]],
  [K.TrueKeyword, ["false"]],
  [K.FalseKeyword, ["true"]],
]);

/** Every small change of a file: { start, end, text, what }. */
function mutantsOf(path) {
  const code = readFileSync(path, "utf8");
  // Decorators of functions are no TypeScript; as comments they keep every position.
  const readable = code
    .replaceAll(/^@(\w)/gm, " $1")
    .replaceAll(/^ (inline|unmanaged)$/gm, (word) => "/".repeat(2) + word.slice(2));
  const source = ts.createSourceFile(path, readable, ts.ScriptTarget.Latest, true);
  const mutants = [];
  const add = (node, text, what) => mutants.push({ start: node.getStart(source), end: node.getEnd(), text, what });
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return;
    for (const text of (ts.isBinaryExpression(node) && SWAPS.get(node.operatorToken.kind)) || [])
      add(node.operatorToken, text, `${node.operatorToken.getText(source)} → ${text}`);
    if (node.kind === K.TrueKeyword || node.kind === K.FalseKeyword)
      add(node, SWAPS.get(node.kind)[0], `${node.getText(source)} turned`);
    if (ts.isIfStatement(node)) for (const text of ["true", "false"]) add(node.expression, text, `if (${text})`);
    if (ts.isConditionalExpression(node))
      for (const text of ["true", "false"]) add(node.condition, text, `${text} ? …`);
    if (ts.isNumericLiteral(node)) add(node, `(${node.text} + 1)`, `${node.text} + 1`);
    if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) add(node, ";", "a call left out");
    if (ts.isThrowStatement(node)) add(node, ";", "a throw left out");
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { code, mutants: mutants.filter(({ start, end }) => code.slice(start, end).trim() !== ""), source };
}

/** Mulberry32: the same choice for the same seed. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function chosen(all, most, seed) {
  const next = random(seed);
  const pool = [...all];
  const taken = [];
  while (pool.length > 0 && taken.length < most) taken.push(...pool.splice(Math.floor(next() * pool.length), 1));
  return taken;
}

const sourcesUnder = (folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(root, folder, name));

const isTest = (file) => file.endsWith(".test.ts");

/** Test files that import the file, those that do so in two steps, and in three: most mutants die in the first. */
function testsOf(path) {
  const importers = new Map();
  for (const file of [...sourcesUnder("src"), ...sourcesUnder("test")])
    for (const { fileName } of ts.preProcessFile(readFileSync(file, "utf8"), true, true).importedFiles) {
      if (!fileName.startsWith(".")) continue;
      const target = resolve(dirname(file), fileName.replace(/\.js$/, ".ts"));
      importers.set(target, [...(importers.get(target) ?? []), file]);
    }
  let layer = [path];
  const seen = new Set(layer);
  const tests = [];
  for (let step = 0; step < Number(options.steps); step++) {
    layer = [...new Set(layer.flatMap((file) => importers.get(file) ?? []))].filter((file) => !seen.has(file));
    for (const file of layer) seen.add(file);
    tests.push(layer.filter(isTest).map((file) => relative(root, file)));
  }
  return tests.filter((files) => files.length > 0);
}

/** For a kernel: the folder of tests that is named after its part. */
function kernelTests(path) {
  const [, part] = relative(root, path).split("/");
  const folder = { dsp: "dsp", quality: "dsp", math: "dsp", nn: "nn", speaker: "nn", spoof: "nn", score: "score" }[
    part
  ];
  return folder ? [`test/${folder}`] : ["test/dsp", "test/nn", "test/score"];
}

const copy = mkdtempSync(join(tmpdir(), "mutate-"));
process.on("exit", () => rmSync(copy, { recursive: true, force: true }));
process.on("SIGINT", () => process.exit(130));
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

/** What each layer of tests takes unbroken, by its files; a layer that fails then says nothing. */
const unbroken = new Map();
function takes(tests) {
  const key = tests.join();
  if (!unbroken.has(key)) {
    const from = Date.now();
    const { status, stdout } = run(tests);
    if (status !== 0) console.error(`left out, they fail without a change: ${tests.join(" ")}\n${stdout.slice(-1000)}`);
    unbroken.set(key, status === 0 ? Date.now() - from : null);
  }
  return unbroken.get(key);
}

const isKilled = (layers) =>
  layers.some((tests) => {
    const timeout = HANGS.times * takes(tests) + HANGS.moreMs;
    return run(tests, timeout).status !== 0;
  });

const isGenerated = (name) => name.split("/").includes("gen");
const files = paths
  .flatMap((path) => (statSync(join(root, path)).isDirectory() ? sourcesUnder(path) : [resolve(path)]))
  .filter((path) => !isGenerated(relative(root, path)));
const all = files.flatMap((path) => {
  const { code, mutants, source } = mutantsOf(path);
  return mutants.map((mutant) => ({ ...mutant, path, code, source }));
});
const drawn = chosen(all, Number(options.most), Number(options.seed));
drawn.sort((a, b) => a.path.localeCompare(b.path) || a.start - b.start);
const endsAt = Date.now() + Number(options.seconds) * 1000;
let killed = 0;
let tried = 0;
for (const { path, code, source, start, end, text, what } of drawn) {
  if (Date.now() > endsAt) break;
  const name = relative(root, path);
  const named = options.tests?.split(",") ?? (name.startsWith("assembly/") ? kernelTests(path) : null);
  const line = source.getLineAndCharacterOfPosition(start).line + 1;
  const tests = (named ? [named] : testsOf(path)).filter((layer) => takes(layer) !== null);
  writeFileSync(join(copy, name), code.slice(0, start) + text + code.slice(end));
  tried++;
  if (isKilled(tests)) killed++;
  else console.log(`survived  ${name}:${line}  ${what}${tests.length === 0 ? " (no test imports it)" : ""}`);
  writeFileSync(join(copy, name), code);
}
console.log(
  `${killed} of ${tried} killed${tried ? ` (${Math.round((100 * killed) / tried)} %)` : ""}, of ${all.length} mutants`,
);
