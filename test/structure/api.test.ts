import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

it("everything that the packages export says what it is (npm run docs:api)", async () => {
  const typedoc = promisify(execFile)(process.execPath, ["node_modules/typedoc/bin/typedoc", "--emit", "none"], {
    cwd: ROOT,
  });
  const said = await typedoc.then(
    () => "",
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
  );
  expect(said).toBe("");
}, 240_000);
