import { Command, CommanderError } from "commander";
import { AudioError } from "../audio/index.js";
import { StatusCode, StatusError } from "../contract/index.js";
import { EngineError } from "../engine/engine-error.js";
import { ModelFileError } from "../engine/model-file-error.js";
import { ConfigError } from "../server/config.js";
import { fileFault } from "../server/file-fault.js";
import { VERSION } from "../server/version.js";
import { SealError } from "../store/errors.js";
import { calibrateCommand } from "./calibrate.js";
import { callCommand } from "./call.js";
import { identifyCommand, verifyCommand } from "./checks.js";
import { CommandError, faultOfFile } from "./command-error.js";
import { completionCommand } from "./completion.js";
import { demoCommand } from "./demo.js";
import { enrollCommand } from "./enroll.js";
import { evaluateCommand } from "./evaluate.js";
import { ExitCode } from "./exit-code.js";
import { healthCommand } from "./health.js";
import { keysCommand } from "./keys.js";
import { measureCommand } from "./measure.js";
import { modelCommand } from "./model.js";
import { exportCommand, importCommand } from "./move.js";
import { peopleCommands } from "./people.js";
import { serveCommand } from "./serve.js";
import { tokenCommand } from "./token.js";
import { watchlistCommand } from "./watchlist.js";

export function createProgram(): Command {
  const program = new Command("vivavoce")
    .description(
      "Voice biometrics on this machine, offline: enroll people, verify and identify them, watch for fraudsters.",
    )
    .version(VERSION)
    .showSuggestionAfterError()
    .showHelpAfterError("(--help shows how to use it)")
    .exitOverride()
    .addHelpText(
      "after",
      `
Exit codes:
  0  done; for a check: the voice matches, or no risk was found
  1  a check said no: no match, or a known fraudster
  2  wrong input: an option, a file, a setting, or a name that is unknown or already taken
  3  undecided: too little or poor audio
  4  failed for another reason: no connection, no permission, or an error in the box`,
    );
  enrollCommand(program);
  verifyCommand(program);
  identifyCommand(program);
  peopleCommands(program);
  exportCommand(program);
  importCommand(program);
  watchlistCommand(program);
  measureCommand(program);
  evaluateCommand(program);
  calibrateCommand(program);
  modelCommand(program);
  serveCommand(program);
  callCommand(program);
  healthCommand(program);
  keysCommand(program);
  tokenCommand(program);
  demoCommand(program);
  completionCommand(program);
  return program;
}

/** Runs a command line and returns the exit code. */
export async function main(argv: readonly string[]): Promise<ExitCode> {
  try {
    await createProgram().parseAsync(argv, { from: "user" });
    return (process.exitCode as ExitCode | undefined) ?? ExitCode.ok;
  } catch (error) {
    return reported(error, argv.includes("--json"));
  }
}

function reported(error: unknown, json: boolean): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return ExitCode.ok;
    // The message for people is already on stderr.
    if (json) process.stdout.write(`${JSON.stringify({ error: error.message.replace(/^error: /, "") })}\n`);
    return ExitCode.usage;
  }
  const { message, hint, exitCode } = described(error);
  if (json)
    process.stdout.write(`${JSON.stringify({ error: message, ...(hint ? { hint } : {}), ...statusOf(error) })}\n`);
  else process.stderr.write(`error: ${message}\n${hint ? `hint: ${hint}\n` : ""}`);
  if (exitCode === ExitCode.failed && process.env.VIVAVOCE_DEBUG && error instanceof Error)
    process.stderr.write(`${error.stack}\n`);
  return exitCode;
}

const statusOf = (error: unknown) =>
  error instanceof StatusError ? { status: StatusCode[error.code], requestId: error.status.requestId } : {};

function described(error: unknown): { message: string; hint?: string | undefined; exitCode: ExitCode } {
  if (error instanceof CommandError) return error;
  if (isAboutInput(error)) return { message: error.message, exitCode: ExitCode.usage };
  if (error instanceof SealError && error.code === "wrong-key")
    return {
      message: error.message,
      hint: "set the keys and the master key that the store was created with (seal.keys, seal.masterKeyFile or seal.masterKeyCommand)",
      exitCode: ExitCode.usage,
    };
  if (error instanceof StatusError) return describedStatus(error);
  const { path } = error as NodeJS.ErrnoException;
  if (path && fileFault(error)) return faultOfFile(path, error);
  return { message: error instanceof Error ? error.message : String(error), exitCode: ExitCode.failed };
}

/** A setting, a model, a calibration or a recording that cannot be used. */
const isAboutInput = (error: unknown): error is Error =>
  error instanceof ConfigError ||
  error instanceof ModelFileError ||
  error instanceof AudioError ||
  (error instanceof EngineError && (error.code === "BAD_MODEL" || error.code === "BAD_CALIBRATION"));

/** What the box says about wrong input. */
const WRONG_INPUT: ReadonlySet<StatusCode> = new Set([
  StatusCode.BAD_REQUEST,
  StatusCode.INVALID_REQUEST,
  StatusCode.NOT_FOUND,
  StatusCode.ALREADY_EXISTS,
  StatusCode.OBSOLETE,
  StatusCode.TOO_LARGE,
]);

function describedStatus({ code, message, status }: StatusError) {
  const violations = status.fieldViolations
    .filter((violation) => violation.message !== message)
    .map((violation) => `\n  ${violation.field}: ${violation.message}`);
  const noAccess = "give --token, or --client-id and --client-secret (VIVAVOCE_CLIENT_ID, VIVAVOCE_CLIENT_SECRET)";
  return {
    message: [message, ...violations].join(""),
    hint: code === StatusCode.NOT_AUTHORIZED ? noAccess : undefined,
    exitCode: WRONG_INPUT.has(code) ? ExitCode.usage : ExitCode.failed,
  };
}
