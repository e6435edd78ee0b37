// Runs in the worker before each test file: tells each mutant whether it is active, and records which test reached it.
import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, inject } from "vitest";

const active = inject("mutant");
writeFileSync(inject("workerFile"), String(process.pid));

/** Mutants reached outside of a test: while modules load, and in beforeAll. */
const outside = new Set();
let inTest = null;

globalThis.isMutant = (id) => {
  (inTest ?? outside).add(id);
  return id === active;
};

beforeEach(() => {
  inTest = new Set();
});

afterEach(({ task }) => {
  task.meta.mutants = [...(inTest ?? [])];
  task.file.meta.mutants = [...outside];
  inTest = null;
});
