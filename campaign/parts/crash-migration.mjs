/**
 * Kills a process while it migrates an older store. Each start finds a copy of a store with the tables of the first version and unencrypted
 * names, or what the last kill left of it. When a start completes, everybody must be there and intact; the next one gets a new copy.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openEmbeddedStore, openPostgresStore } from "../../dist/postgres.js";
import { nodeAead } from "../../dist/store/seal/aead-node.js";
import { openFolderShelf } from "../../dist/store/seal/shelf-folder.js";
import { openPostgresShelf } from "../../dist/store/seal/shelf-postgres.js";
import { openPostgresDatabase } from "../../dist/store/sql/database-pg.js";
import { openEmbeddedDatabase } from "../../dist/store/sql/database-pglite.js";
import { addSegment, idOf, train } from "./crash-people.mjs";
import { profileOf, startSession } from "./records.mjs";

const PROCESS = fileURLToPath(new URL("./crash-process.mjs", import.meta.url));
const PREFIX = "m";
const PEOPLE = 60;
/** Every third person has two recordings, and all but every fifth have a print. */
const stateOf = (number) => ({
  segments: number % 3 === 0 ? 2 : 1,
  printVersion: number % 5 === 0 ? 0 : 1,
  pending: null,
});
const personOf = (number) => `${PREFIX}${number}`;
const MASTER_KEY = new Uint8Array(32).fill(7);

/** Undoes the migrations, the newest first, up to the tables of the first version. */
const UNDONE = [
  `ALTER TABLE vivavoce.audio_models DROP COLUMN part_of; ALTER TABLE vivavoce.segments DROP COLUMN part_of`,
  `ALTER TABLE vivavoce.jobs DROP COLUMN created_at`,
  `ALTER TABLE vivavoce.profiles DROP COLUMN name; ALTER TABLE vivavoce.scopes DROP COLUMN names_check`,
  `ALTER TABLE vivavoce.profiles DROP COLUMN consent`,
  `ALTER TABLE vivavoce.profiles RESET (toast_tuple_target)`,
  `DROP TABLE vivavoce.matches`,
  `ALTER TABLE vivavoce.audio_models ADD FOREIGN KEY (scope, session) REFERENCES vivavoce.sessions;
   ALTER TABLE vivavoce.checks ADD FOREIGN KEY (scope, session) REFERENCES vivavoce.sessions`,
  `ALTER TABLE vivavoce.groups DROP COLUMN version`,
  `ALTER TABLE vivavoce.jobs DROP COLUMN alive_at`,
  `DELETE FROM vivavoce.migrations WHERE version > 1`,
];

/** The keys' note that all names are sealed: store/sql/old-names.ts. */
const ALL_SEALED = createHash("sha256").update("\0sealed names").digest("hex").slice(0, 32);

async function makeOld(store, database, shelf) {
  await startSession(store, "session");
  for (let number = 1; number <= PEOPLE; number++) {
    const person = personOf(number);
    const { segments, printVersion } = stateOf(number);
    await store.profiles.create(profileOf(idOf(person), person));
    for (let segment = 1; segment <= segments; segment++) await addSegment(store, person, segment, "session");
    if (printVersion > 0) await train(store, person, false);
  }
  await store.close();
  const old = await database();
  const named = "jsonb_set(data::jsonb, $2, to_jsonb($3::text))::text";
  for (let number = 1; number <= PEOPLE; number++) {
    const name = personOf(number);
    const { id, owner } = profileOf(idOf(name), name);
    const path = ["owner", "externalId"];
    await old.query(`UPDATE vivavoce.profiles SET data = ${named} WHERE id = $1`, [id, path, name]);
    const renamed = `UPDATE vivavoce.owners SET external = $3, data = ${named} WHERE id = $1`;
    await old.query(renamed, [owner.id, ["externalId"], name]);
  }
  for (const statements of UNDONE) await old.foreign(statements);
  await old.close();
  const keys = await shelf();
  await keys.destroy("\0secrets", [ALL_SEALED]);
  await keys.close();
}

/** The requested number of old stores: `location` and `keys` as crash-process.mjs takes them. */
export async function oldFolders(root, withDatabase) {
  const original = await withDatabase(`${root}-original`);
  await makeOld(
    await openEmbeddedStore(original),
    () => openEmbeddedDatabase(`${original}/database`),
    () => openFolderShelf(`${original}/keys`, nodeAead),
  );
  let last = null;
  let made = 0;
  return async () => {
    if (last) rmSync(last, { recursive: true, force: true });
    last = `${root}-${++made}`;
    cpSync(original, last, { recursive: true });
    return { location: last, keys: "-" };
  };
}

export async function oldDatabases(server) {
  const location = await server.createDatabase("old_store");
  const keys = await server.createDatabase("old_keys");
  await makeOld(
    await openPostgresStore(location, { keys, masterKey: MASTER_KEY }),
    () => openPostgresDatabase(location),
    async () => openPostgresShelf(await openPostgresDatabase(keys), nodeAead, { masterKey: MASTER_KEY }),
  );
  let made = 0;
  return async () => {
    made++;
    return {
      location: await server.createDatabase(`store_${made}`, "old_store"),
      keys: await server.createDatabase(`keys_${made}`, "old_keys"),
    };
  };
}

export async function migrationLane({ name, nextOld, random, isOver, isTurn, compare, counts, violate }) {
  const people = new Map(Array.from({ length: PEOPLE }, (_, i) => [personOf(i + 1), stateOf(i + 1)]));
  let place = await nextOld();
  /** How long a whole start takes; the first one is not killed. */
  let wholeMs = null;
  while (!isOver()) {
    while (!isTurn()) await new Promise((wake) => setTimeout(wake, 500));
    counts.starts++;
    const args = ["--liftoff-only", PROCESS, place.location, place.keys, PREFIX, "1000", "1"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    let errors = "";
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    const ended = new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
    const startedAt = performance.now();
    const timer = wholeMs && setTimeout(() => child.kill("SIGKILL"), random.next() * 1.2 * wholeMs);
    let isThrough = false;
    for await (const line of createInterface({ input: child.stdout })) {
      if (isThrough || !line.endsWith("}")) continue;
      isThrough = true;
      clearTimeout(timer);
      wholeMs = performance.now() - startedAt;
      compare(JSON.parse(line).stock, people, counts, (text) => violate(`migration of ${name}: ${text}`));
      child.kill("SIGKILL");
    }
    const { code, signal } = await ended;
    if (signal !== "SIGKILL") violate(`migration of ${name}: ended by itself (${code}): ${errors.slice(0, 700)}`);
    if (isThrough) {
      counts.migrated++;
      place = await nextOld();
    } else {
      counts.kills++;
      counts.killsAtMigration++;
    }
  }
}
