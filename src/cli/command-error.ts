import { isOutOfSpace, reasonOf } from "../server/file-fault.js";
import { ExitCode } from "./exit-code.js";

/** An error that the user can fix; printed without a stack. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  constructor(
    message: string,
    /** What to do about it. */
    readonly hint?: string,
    readonly exitCode: ExitCode = ExitCode.usage,
  ) {
    super(message);
  }
}

/** Why a file cannot be read or written. */
export const faultOfFile = (path: string, error: unknown, hint?: string): CommandError =>
  new CommandError(`${path}: ${reasonOf(error)}`, hint, isOutOfSpace(error) ? ExitCode.failed : ExitCode.usage);
