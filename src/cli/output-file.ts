import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { reasonOf } from "../server/file-fault.js";
import { CommandError } from "./command-error.js";

/** Refuses files that cannot be written, before the work whose result they are for. */
export async function assertCanWrite(...paths: readonly (string | undefined)[]): Promise<void> {
  for (const path of paths) {
    if (path === undefined) continue;
    const found = await stat(path).catch(() => null);
    if (found?.isDirectory()) throw new CommandError(`${path}: this is a folder, not a file`);
    const folder = dirname(path);
    if (!found && !(await stat(folder).catch(() => null))?.isDirectory())
      throw new CommandError(`${path}: there is no folder ${folder}`);
    await access(found ? path : folder, constants.W_OK).catch((error: unknown) => {
      throw new CommandError(`${path}: ${reasonOf(error)}`);
    });
  }
}
