import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify, stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** `client.TokenCache.token`: the name and type of a member often explain it. */
const OF_A_MEMBER = /^\[warning\] \w+\.\w+\.\S+ \(\w+\), .* does not have any documentation$/;

/** Messages of the contract are exported, but documented in proto/. */
const OF_THE_CONTRACT = /^\[warning\] \w+, defined in \S+\/contract\/gen\//;

it("every export is documented, types in public signatures are exported, and the API pages can be generated (npm run docs:api)", async () => {
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["node_modules/typedoc/bin/typedoc", "--emit", "none", "--validation.notDocumented"],
    { cwd: ROOT },
  );
  const said = stripVTControlCharacters(stdout + stderr)
    .split("\n")
    .filter((line) => line !== "" && !/^\[(info|warning)\] (Found|Converting)/.test(line));
  // Members are named in the output, so the check has seen them.
  expect(said.some((line) => OF_A_MEMBER.test(line))).toBe(true);
  expect(said.filter((line) => !OF_A_MEMBER.test(line) && !OF_THE_CONTRACT.test(line))).toEqual([]);
}, 240_000);
