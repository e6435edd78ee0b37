import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, test } from "vitest";
import { kernelExports } from "../../scripts/kernel-exports.mjs";
import { bundles, library } from "../../vitest.config.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The text of a test file and of everything in test/ that it imports. */
function textOf(path: string, seen = new Set<string>()): string {
  if (seen.has(path)) return "";
  seen.add(path);
  const text = readFileSync(path, "utf8");
  const imported = ts
    .preProcessFile(text, true, true)
    .importedFiles.map(({ fileName }) => join(dirname(path), fileName.replace(/\.js$/, ".ts")))
    .filter((file) => file.startsWith(join(root, "test/")) && existsSync(file));
  const started = [...text.matchAll(/"(\.\/[\w-]+\.mjs)"/g)].map(([, name]) => join(dirname(path), name!));
  return [text, ...[...imported, ...started].map((file) => textOf(file, seen))].join("\n");
}

test("the generated signatures match the kernels' exports", () => {
  expect(readFileSync(join(root, "src/engine/gen/kernel-exports.ts"), "utf8")).toBe(kernelExports());
});

test("vitest builds what a test file needs before it runs it", () => {
  const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${name}`);
  expect([...library, ...bundles].filter((path) => !files.includes(path))).toEqual([]);
  const unlisted = files
    .filter((path) => !bundles.includes(path) && path !== "test/structure/built.test.ts")
    .flatMap((path) => {
      const text = textOf(join(root, path));
      if (/dist\/(browser|page|operator)\b/.test(text)) return [`${path}: bundles`];
      const compiled = /dist\/(?!engine\/vivavoce\.wasm)\w|"dist"/.test(text);
      return compiled && !library.includes(path) ? [`${path}: library`] : [];
    });
  expect(unlisted).toEqual([]);
});
