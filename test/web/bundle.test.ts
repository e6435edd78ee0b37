import { readFileSync } from "node:fs";
import ts from "typescript";
import { expect, test } from "vitest";

for (const name of ["vivavoce.js", "vivavoce-inline.js", "worker.js"]) {
  test(`${name} has no import of Node, no server and no token code`, () => {
    const code = readFileSync(new URL(`../../dist/browser/${name}`, import.meta.url), "utf8");
    expect(ts.preProcessFile(code, true, true).importedFiles).toEqual([]);
    expect(code).not.toMatch(/["'`]node:/);
    expect(code).not.toMatch(/client_credentials|grant_type|PgBoss|createSecureServer/);
  });
}
