/**
 * Creates the files of a new embedded database in a temporary folder and moves them into place when complete, so that an interrupted start does not
 * leave a damaged database. This takes three times the memory of opening one; a separate thread frees it when it ends. The database is created in
 * memory and then written file by file: PGlite would hold two more copies of it to create it in a folder.
 */
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

/** PostgreSQL's default of 128 MB fills memory that the system's own cache of files would use better. */
export const BUFFERS = ["-c", "shared_buffers=16MB"];

/** Source text, because a worker file would have to be found from sources, from the build and from packages. */
const MAKE = `
  const { mkdirSync, writeFileSync } = require("node:fs");
  const { workerData: { engine, folder, buffers } } = require("node:worker_threads");
  const { PGlite } = require(engine);
  async function make() {
    const startParams = [...PGlite.defaultStartParams, ...buffers];
    const database = await PGlite.create("memory://", { initDbStartParams: buffers, startParams });
    const { rows } = await database.query("SELECT current_setting('data_directory') AS files");
    const { FS } = database.Module;
    await database.close();
    (function copy(from, to) {
      if (!FS.isDir(FS.stat(from).mode)) return writeFileSync(to, FS.readFile(from), { mode: 0o600 });
      mkdirSync(to, 0o700);
      for (const name of FS.readdir(from)) if (name !== "." && name !== "..") copy(from + "/" + name, to + "/" + name);
    })(rows[0].files, folder);
  }
  // PGlite's file system throws objects that are not errors, whose reason would be lost on the way out of the thread.
  make().catch((thrown) => { throw new Error(thrown?.message ?? "file error " + (thrown?.errno ?? thrown)); });
`;

/** Does nothing if the database exists. */
export async function makeDatabase(folder: string): Promise<void> {
  if (existsSync(join(folder, "PG_VERSION"))) return;
  const unfinished = `${folder}.new`;
  const removeUnfinished = () => rm(unfinished, { recursive: true, force: true });
  await removeUnfinished();
  await new Promise<void>((resolve, reject) => {
    const engine = createRequire(import.meta.url).resolve("@electric-sql/pglite");
    const worker = new Worker(MAKE, { eval: true, workerData: { engine, folder: unfinished, buffers: BUFFERS } });
    worker.once("error", reject);
    worker.once("exit", (code) =>
      code === 0 ? resolve() : reject(new Error(`the database could not be created: exit code ${code}`)),
    );
  }).catch(async (error) => {
    // What it wrote may have filled the disk.
    await removeUnfinished();
    throw error;
  });
  await rename(unfinished, folder);
}
