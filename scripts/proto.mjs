// Generates src/contract/gen from proto/. The generator lives in proto/package.json, outside the main install.
import { execFileSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";

const run = (command, ...args) => execFileSync(command, args, { cwd: "proto", stdio: "inherit" });

if (!existsSync("proto/node_modules/.bin/buf")) run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund");
rmSync("src/contract/gen", { recursive: true, force: true });
run("node_modules/.bin/buf", "generate");
