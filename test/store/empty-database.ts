/** The files of an empty database, which take seconds to create: made once, then copied. What a start adds to them is made by each test. */
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { type EmbeddedStoreOptions, openEmbeddedStore, type SealedStore } from "../../src/postgres.js";
import { makeDatabase } from "../../src/store/sql/new-database.js";

// The optimizing compiler of WebAssembly costs more than the databases of a test gain from it.
setFlagsFromString("--liftoff-only");

/** Another engine, or another way to make a database, gives another name. */
function template(): string {
  const source = fileURLToPath(new URL("../../src/store/sql/new-database.ts", import.meta.url));
  const engine = join(dirname(createRequire(import.meta.url).resolve("@electric-sql/pglite")), "..", "package.json");
  const hash = createHash("sha256");
  for (const path of [source, engine]) hash.update(readFileSync(path));
  return fileURLToPath(new URL(`../../dist/.build/empty-database-${hash.digest("hex").slice(0, 16)}`, import.meta.url));
}

/** Returns `store`, whose first start finds a database without tables. */
export async function withEmptyDatabase(store: string): Promise<string> {
  const made = template();
  if (!existsSync(made)) {
    // Another worker may make one at the same time: the first to finish wins.
    const own = `${made}-${process.pid}`;
    mkdirSync(dirname(own), { recursive: true });
    await makeDatabase(own);
    if (existsSync(made)) rmSync(own, { recursive: true });
    else renameSync(own, made);
  }
  mkdirSync(store, { recursive: true, mode: 0o700 });
  cpSync(made, join(store, "database"), { recursive: true });
  return store;
}

/** A store in a folder of its own, which is removed when the store closes. */
export async function openTemporaryStore(options: EmbeddedStoreOptions = {}): Promise<SealedStore> {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-store-"));
  const store = await openEmbeddedStore(await withEmptyDatabase(folder), options);
  return {
    ...store,
    async close() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
