// All small changes of a file: { start, end, text, isStatement, line, what }, where `text` replaces start…end.
import { readFileSync } from "node:fs";
import ts from "typescript";

const K = ts.SyntaxKind;
/** Replacements for an operator. */
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
  [K.PlusEqualsToken, ["-="]],
  [K.MinusEqualsToken, ["+="]],
]);

export function mutantsOf(path) {
  const code = readFileSync(path, "utf8");
  // AssemblyScript's decorators of functions are not valid TypeScript; turning them into comments keeps every position.
  const readable = code
    .replaceAll(/^@(\w)/gm, " $1")
    .replaceAll(/^ (inline|unmanaged)$/gm, (word) => "/".repeat(2) + word.slice(2));
  const source = ts.createSourceFile(path, readable, ts.ScriptTarget.Latest, true);
  const mutants = [];
  const textOf = (node) => code.slice(node.getStart(source), node.getEnd());
  const add = (node, text, what, { at = node, isStatement = false } = {}) =>
    mutants.push({
      start: node.getStart(source),
      end: node.getEnd(),
      text,
      isStatement,
      line: source.getLineAndCharacterOfPosition(at.getStart(source)).line + 1,
      what,
    });
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isInterfaceDeclaration(node)) return;
    if (ts.isBinaryExpression(node)) {
      const { left, operatorToken, right } = node;
      for (const operator of SWAPS.get(operatorToken.kind) ?? [])
        add(node, `(${textOf(left)}) ${operator} (${textOf(right)})`, `${textOf(operatorToken)} → ${operator}`, {
          at: operatorToken,
        });
    }
    if (node.kind === K.TrueKeyword) add(node, "false", "true → false");
    if (node.kind === K.FalseKeyword) add(node, "true", "false → true");
    if (ts.isPrefixUnaryExpression(node) && node.operator === K.ExclamationToken)
      add(node, `!(${textOf(node)})`, "! left out");
    const condition = ts.isIfStatement(node) ? node.expression : ts.isConditionalExpression(node) && node.condition;
    if (condition) for (const text of ["true", "false"]) add(condition, text, `${textOf(condition)} → ${text}`);
    const isName = ts.isPropertyAssignment(node.parent ?? node) && node.parent.name === node;
    if (ts.isNumericLiteral(node) && !isName) add(node, `(${textOf(node)} + 1)`, `${textOf(node)} → + 1`);
    if (ts.isExpressionStatement(node)) {
      const called = ts.isAwaitExpression(node.expression) ? node.expression.expression : node.expression;
      // Without `super(…)` nothing can be constructed, and fields are initialized right after it.
      const isSuper = ts.isCallExpression(called) && called.expression.kind === K.SuperKeyword;
      if (ts.isCallExpression(called) && !isSuper) add(node, ";", `left out: ${textOf(node)}`, { isStatement: true });
    }
    if (ts.isThrowStatement(node)) add(node, ";", `left out: ${textOf(node)}`, { isStatement: true });
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { code, mutants };
}

/** A sample of `most` mutants, the same for the same seed, in the order drawn. */
export function drawn(all, most, seed) {
  const next = random(seed);
  const pool = [...all];
  const taken = [];
  while (pool.length > 0 && taken.length < most) taken.push(...pool.splice(Math.floor(next() * pool.length), 1));
  return taken;
}

/** Mulberry32. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * The code of a file with all these mutants in it, each behind a call of `globalThis.isMutant(id)`: one transformation serves every mutant, and the
 * calls show which tests reach it. Line numbers do not change.
 */
export function switched(mutants) {
  const { code } = mutants[0];
  const sites = new Map();
  for (const mutant of mutants) {
    const key = `${mutant.start}-${mutant.end}-${mutant.isStatement}`;
    const site = sites.get(key) ?? { start: mutant.start, end: mutant.end, isStatement: mutant.isStatement, here: [] };
    site.here.push(mutant);
    sites.set(key, site);
  }
  const outermostFirst = [...sites.values()].sort((a, b) => a.start - b.start || b.end - a.end);
  return rendered(code, 0, code.length, outermostFirst);
}

function rendered(code, start, end, sites) {
  let text = "";
  let at = start;
  for (let i = 0; i < sites.length; ) {
    const site = sites[i];
    const inside = sites.slice(i + 1).filter((other) => other.start < site.end);
    const original = rendered(code, site.start, site.end, inside);
    text += code.slice(at, site.start) + choice(site, original);
    at = site.end;
    i += 1 + inside.length;
  }
  return text + code.slice(at, end);
}

const printer = ts.createPrinter({ removeComments: true });
/** An expression without comments and line breaks. Parsed, because `//` is also part of addresses. */
function oneLine(text) {
  const parsed = ts.createSourceFile("", `(${text})`, ts.ScriptTarget.Latest);
  return printer.printFile(parsed).trim().replace(/;$/, "").replaceAll("\n", " ");
}

function choice({ isStatement, here }, original) {
  const asked = ({ id }) => `globalThis.isMutant(${id})`;
  if (isStatement) return `{ if (!${asked(here[0])}) { ${original} } }`;
  return `(${here.map((mutant) => `${asked(mutant)} ? ${oneLine(mutant.text)} : `).join("")}(${original}))`;
}
