import { constants } from "node:fs";
import { access, chmod, lstat, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { reasonOf } from "../server/file-fault.js";
import { CommandError, faultOfFile } from "./command-error.js";

const foundAt = async (path: string) => {
  // A link that leads nowhere is not a free name.
  if (!(await lstat(path).catch(() => null))) return null;
  return stat(path).catch((error: unknown) => Promise.reject(faultOfFile(path, error)));
};

/** Refuses files that cannot be written, before the work whose result they are for. */
export async function assertCanWrite(...paths: readonly (string | undefined)[]): Promise<void> {
  for (const path of paths) {
    if (path === undefined) continue;
    const found = await foundAt(path);
    if (found?.isDirectory()) throw new CommandError(`${path}: this is a folder, not a file`);
    if (found) await access(path, constants.W_OK).catch((error: unknown) => Promise.reject(faultOfFile(path, error)));
    if (found && !found.isFile()) continue;
    const folder = dirname(found ? await realpath(path) : path);
    if (!(await stat(folder).catch(() => null))?.isDirectory())
      throw new CommandError(`${path}: there is no folder ${folder}`);
    await access(folder, constants.W_OK).catch((error: unknown) => {
      throw new CommandError(`${path}: the folder ${folder} cannot be written: ${reasonOf(error)}`);
    });
  }
}

/** Writes the whole file or nothing: a full disk leaves the earlier file as it was. `mode` may be wider than this user's files usually are. */
export async function writeOutput(
  path: string,
  content: string | Uint8Array | Iterable<string>,
  mode?: number,
): Promise<void> {
  const found = await foundAt(path);
  // A device or a pipe, such as /dev/stdout, must not be replaced by a file.
  if (found && !found.isFile())
    return writeFile(path, content).catch((error: NodeJS.ErrnoException) => {
      // The reader has seen enough, as with an answer that is piped.
      if (error.code !== "EPIPE") throw faultOfFile(path, error);
    });
  const file = found ? await realpath(path) : path;
  const unfinished = `${file}.${process.pid}.new`;
  try {
    await writeFile(unfinished, content, { mode: found?.mode ?? 0o666 });
    if (mode !== undefined) await chmod(unfinished, mode);
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw faultOfFile(path, error);
  }
}
