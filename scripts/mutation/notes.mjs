// Facts about test files without a mutant (their duration, which mutants their tests reach), kept from run to run.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const sha256 = (text) => createHash("sha256").update(text).digest("hex");

/** Notes for the mutants of these paths; the note of a test file depends only on `textOf(test)`. */
export function openNotes(folder, paths, textOf) {
  const path = join(folder, `${sha256(paths).slice(0, 16)}.json`);
  let notes = {};
  try {
    notes = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    // The first run, or one that was stopped while writing: everything is measured again.
  }
  const keys = new Map();
  const keyOf = (test) => {
    if (!keys.has(test)) keys.set(test, sha256(textOf(test)));
    return keys.get(test);
  };
  return {
    get: (test) => (notes[test]?.key === keyOf(test) ? notes[test].note : undefined),
    set(test, note) {
      notes[test] = { key: keyOf(test), note };
      mkdirSync(folder, { recursive: true });
      writeFileSync(path, JSON.stringify(notes));
    },
  };
}
