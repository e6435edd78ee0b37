// Generates src/contract/gen from proto/, and from both the Python client's contract.py. The generator is in proto/package.json, outside
// the main install.
import { execFileSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { contractWords, wordsModule } from "./contract-words.mjs";
import { pythonContract } from "./python-contract.mjs";

const gen = "src/contract/gen";
const run = (command, ...args) => execFileSync(command, args, { cwd: "proto", stdio: "inherit" });

if (!existsSync("proto/node_modules/.bin/buf")) run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund");
rmSync(gen, { recursive: true, force: true });
run("node_modules/.bin/buf", "generate");

const words = contractWords(gen);
writeFileSync(`${gen}/words.ts`, wordsModule(words));
const { outputFiles } = await build({
  stdin: {
    contents: `export { httpBindings } from "./src/server/http/bindings.ts"; export { METHODS } from "./src/contract/operations.ts";`,
    resolveDir: ".",
  },
  bundle: true,
  format: "esm",
  write: false,
});
const { httpBindings, METHODS } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
writeFileSync("clients/python/src/vivavoce/contract.py", pythonContract(httpBindings(METHODS), words));
