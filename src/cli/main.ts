#!/usr/bin/env node
import { reasonOf } from "../server/file-fault.js";
import { ExitCode } from "./exit-code.js";
import { main } from "./program.js";

// Before workers start: each adds a listener, and after ten Node warns of a leak.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // The reader has seen enough (`| head -1`): the exit code stays that of the command.
  if (error.code === "EPIPE") return;
  process.stderr.write(`error: the output cannot be written: ${reasonOf(error)}\n`);
  process.exitCode = ExitCode.failed;
});
process.stderr.on("error", () => {});

// Node would exit with 1, which means that a check said no.
process.on("uncaughtException", (error) => {
  process.stderr.write(`${error?.stack ?? error}\n`);
  process.exit(ExitCode.failed);
});

process.exitCode = await main(process.argv.slice(2));
