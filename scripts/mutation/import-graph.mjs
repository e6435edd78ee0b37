// The import graph of src/ and test/. The compiled library counts as its sources.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("../..", import.meta.url));

const dist = join(root, "dist/");
const sourceOf = (path) => (path.startsWith(dist) ? join(root, "src", path.slice(dist.length)) : path);

const filesUnder = (folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .sort()
    .map((name) => join(root, folder, name));

export function importGraph() {
  const texts = new Map();
  const imported = new Map();
  const importers = new Map();
  for (const file of [...filesUnder("src"), ...filesUnder("test")]) {
    texts.set(file, readFileSync(file, "utf8"));
    const names = ts.preProcessFile(texts.get(file), true, true).importedFiles.map(({ fileName }) => fileName);
    const targets = names.map((name) =>
      name.startsWith(".") ? sourceOf(resolve(dirname(file), name.replace(/\.js$/, ".ts"))) : name,
    );
    imported.set(file, targets);
    for (const target of targets) importers.set(target, [...(importers.get(target) ?? []), file]);
  }

  function ofTest(file, seen = new Set()) {
    if (seen.has(file) || !relative(root, file).startsWith("test/")) return "";
    seen.add(file);
    return (texts.get(file) ?? "") + (imported.get(file) ?? []).map((target) => ofTest(target, seen)).join("");
  }

  return {
    /** Whether a test file directly imports a file with such a name. */
    imports: (test, name) => imported.get(join(root, test)).some((target) => name.test(target)),

    /** The text of a test file and of its imports from test/. */
    testText: (test) => ofTest(join(root, test)),

    /** The test files that import a source file directly or indirectly in this many steps. */
    nearestTests(path, steps) {
      let layer = [path];
      const seen = new Set(layer);
      for (let step = 0; step < steps && layer.length > 0; step++) {
        layer = [...new Set(layer.flatMap((file) => importers.get(file) ?? []))].filter((file) => !seen.has(file));
        for (const file of layer) seen.add(file);
      }
      return [...seen].filter((file) => file.endsWith(".test.ts")).map((file) => relative(root, file));
    },
  };
}
