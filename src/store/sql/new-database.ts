/**
 * Creates the files of a new embedded database in a temporary folder and moves them into place when complete, so that an interrupted start does not
 * leave a damaged database. This takes three times the memory of opening one; a separate thread frees it when it ends.
 */
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

/** Source text, because a worker file would have to be found from sources, from the build and from packages. */
const MAKE = `
  const { workerData } = require("node:worker_threads");
  const { PGlite } = require(workerData.engine);
  // Its file system throws objects that are not errors, whose reason would be lost on the way out of the thread.
  const asError = (thrown) => (thrown instanceof Error ? thrown : new Error("file error " + (thrown?.errno ?? thrown)));
  PGlite.create("file://" + workerData.folder)
    .then((database) => database.close())
    .catch((thrown) => { throw asError(thrown); });
`;

/** Does nothing if the database exists. */
export async function makeDatabase(folder: string): Promise<void> {
  if (existsSync(join(folder, "PG_VERSION"))) return;
  const unfinished = `${folder}.new`;
  const removeUnfinished = () => rm(unfinished, { recursive: true, force: true });
  await removeUnfinished();
  await new Promise<void>((resolve, reject) => {
    const engine = createRequire(import.meta.url).resolve("@electric-sql/pglite");
    const worker = new Worker(MAKE, { eval: true, workerData: { engine, folder: unfinished } });
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
