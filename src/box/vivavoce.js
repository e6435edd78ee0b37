#!/usr/bin/env node
// The command of a checkout. In the published package its place is taken by dist/cli/main.js itself.
import { existsSync } from "node:fs";

const built = new URL("../../dist/cli/main.js", import.meta.url);
if (existsSync(built)) await import(built.href);
else {
  console.error('error: vivavoce is not built yet\nhint: run "npm run build" first; "npm start" does so by itself');
  process.exitCode = 2;
}
