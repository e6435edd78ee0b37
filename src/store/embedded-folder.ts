/** File permissions and free space for an embedded database, and a clear reason if it does not start. */
import { constants } from "node:fs";
import { access, chmod, readdir, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { StoreError, type StoreErrorCode } from "./errors.js";

/** The least that a start writes: the database's own files and part of its log. */
const START_BYTES = 32 * 1024 * 1024;
/** The files of a new database, and part of its log. */
const FIRST_START_BYTES = 64 * 1024 * 1024;
/** Memory that an embedded database needs to start, as in docs/operations.md. */
const START_MEMORY_MB = 450;

/** Refuses to run as root on a folder that belongs to another user: that user could not read the new files afterwards. */
export async function assertFilesStayReadable(folder: string): Promise<void> {
  const found = await stat(folder).catch(() => null);
  if (found && process.getuid?.() === 0 && found.uid !== 0)
    throw new StoreError(
      "not-owner",
      `${folder} belongs to the user with id ${found.uid}, but this process runs as root: that user could not read the files it creates. ` +
        `Run it as that user (sudo -u '#${found.uid}' …)`,
    );
}

/** Also makes the folder private to its owner, whatever its parent allows. */
export async function prepareDatabaseFolder(folder: string): Promise<void> {
  await assertFilesStayReadable(folder);
  const found = await stat(folder).catch(() => null);
  if (found && process.getuid?.() === found.uid && (found.mode & 0o077) !== 0) await chmod(folder, 0o700);
}

/** Says who may read and write in `folder`, after the system refused it. */
export async function permissionError(folder: string, error: Error): Promise<StoreError> {
  const found = await stat(folder).catch(() => null);
  const [owner, user] = [found ? `the user with id ${found.uid}` : "another user", process.getuid?.()];
  return new StoreError(
    "unreadable",
    `${folder} belongs to ${owner}, but this process runs as the user with id ${user}, who may not write there. Run it as the owner, or give ` +
      `the folder to this user (chown -R ${user} …)`,
    { cause: error },
  );
}

/** Called after a database failed to start: finds the reason in its files. A new database has none yet, so nothing can be damaged. */
export async function whyItDoesNotStart(folder: string, error: Error, freeOn = freeBytes): Promise<StoreError> {
  const fault = (code: StoreErrorCode, message: string) => new StoreError(code, message, { cause: error });
  const isNew = (await stat(folder).catch(() => null)) === null;
  const unusable = await firstUnusable(folder);
  if (unusable)
    return fault(
      "unreadable",
      `${unusable.path} cannot be read and written (it belongs to the user with id ${unusable.uid})`,
    );
  if (/allocate memory|out of memory/i.test(error.message))
    return fault(
      "no-memory",
      `there is not enough memory to start the database in ${folder}: it needs about ${START_MEMORY_MB} MB. Stop other programs, or raise the ` +
        "memory limit of this one, and start again; the database is not damaged",
    );
  const free = await freeOn(isNew ? dirname(folder) : folder);
  const needed = isNew ? FIRST_START_BYTES : START_BYTES;
  if (free !== null && free < needed)
    return fault(
      "disk-full",
      `the disk of ${folder} is full: ${Math.floor(free / 2 ** 20)} MB are free and ${needed / 2 ** 20} MB are needed. Free some space and start again`,
    );
  if (isNew)
    return fault(
      "not-created",
      `the database in ${folder} could not be created (${error.message}): nothing was stored yet; start again, or choose another folder`,
    );
  return fault(
    "damaged",
    `the database in ${folder} does not start (${error.message}): it is damaged or was written by another version; restore it from a backup`,
  );
}

async function firstUnusable(folder: string): Promise<{ path: string; uid: number } | null> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  for (const path of [folder, ...names.map((name) => join(folder, name))]) {
    try {
      await access(path, constants.R_OK | constants.W_OK);
    } catch {
      const found = await stat(path).catch(() => null);
      if (found) return { path, uid: found.uid };
    }
  }
  return null;
}

const freeBytes = (folder: string): Promise<number | null> =>
  statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => null,
  );
