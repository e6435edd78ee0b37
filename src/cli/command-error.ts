import { reasonOf } from "../server/file-fault.js";
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

const NO_SPACE: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT"]);

/** Why a file cannot be read or written. A full disk is no mistake in the command: it works when there is space again. */
export const faultOfFile = (path: string, error: unknown, hint?: string): CommandError =>
  new CommandError(
    `${path}: ${reasonOf(error)}`,
    hint,
    NO_SPACE.has((error as NodeJS.ErrnoException).code) ? ExitCode.failed : ExitCode.usage,
  );
