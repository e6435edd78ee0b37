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
