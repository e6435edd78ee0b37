// Lints assembly/. For Biome, which reads TypeScript, decorators of functions (`@inline`) are a syntax error: it gets a copy of the
// files in which they are comments, on the same lines, so that its reports have the right positions.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const copy = mkdtempSync(join(tmpdir(), "assembly-"));

// Off: rules that contradict AssemblyScript (no type imports, decorators need @ts-ignore, isFinite takes numbers only), and the rule against
// long constants, because of published polynomials.
const rules = {
  suspicious: {
    noDoubleEquals: "off",
    noTsIgnore: "off",
    noGlobalIsFinite: "off",
    noGlobalIsNan: "off",
    noApproximativeNumericConstant: "off",
  },
  style: { noNonNullAssertion: "off", useImportType: "off", useExponentiationOperator: "off" },
};
const configuration = {
  linter: { rules: { preset: "recommended", ...rules } },
  formatter: { enabled: false },
  assist: { enabled: false },
};

try {
  for (const name of readdirSync(join(root, "assembly"), { recursive: true })) {
    if (!name.endsWith(".ts")) continue;
    const text = readFileSync(join(root, "assembly", name), "utf8").replaceAll(/^@(\w+)/gm, "//@$1");
    mkdirSync(dirname(join(copy, "assembly", name)), { recursive: true });
    writeFileSync(join(copy, "assembly", name), text);
  }
  writeFileSync(join(copy, "biome.json"), JSON.stringify(configuration));
  execFileSync(
    process.execPath,
    [
      join(root, "node_modules/@biomejs/biome/bin/biome"),
      "lint",
      "--error-on-warnings",
      "assembly",
      ...process.argv.slice(2),
    ],
    {
      cwd: copy,
      stdio: "inherit",
    },
  );
} catch (error) {
  if (error.status === undefined) throw error;
  process.exitCode = error.status;
} finally {
  rmSync(copy, { recursive: true });
}
