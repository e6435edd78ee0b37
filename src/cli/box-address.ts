import { connectionFault } from "../contract/connection-fault.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";

/** The address of a box as it was given, without a slash at its end. */
export function boxAddress(url: string): string {
  if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url))
    throw new CommandError(`--url must be an address such as http://127.0.0.1:8080, got ${url}`);
  return url.replace(/\/+$/, "");
}

/** The error for a box that gave no answer; any other error stays as it is. */
export function unreachable(address: string, error: unknown): unknown {
  const fault = connectionFault(error);
  return fault === null
    ? error
    : new CommandError(`cannot connect to ${address}: ${fault}`, undefined, ExitCode.failed);
}
