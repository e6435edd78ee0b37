/**
 * The tables, version by version. A released version is never edited: changes are a new version at the end.
 * Keys come first in every table; `data` is the plain part of a record as JSON; sealed data is bytea.
 */
import { StoreError } from "../errors.js";
import type { Database } from "./database.js";

const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE vivavoce.settings (name text PRIMARY KEY, value text NOT NULL);

  CREATE TABLE vivavoce.scopes (
    scope text COLLATE "C" PRIMARY KEY,
    scope_id text NOT NULL,
    prints_version bigint NOT NULL DEFAULT 0
  );

  CREATE TABLE vivavoce.engagements (
    scope text COLLATE "C", id text COLLATE "C",
    stopped_at double precision,
    data text NOT NULL,
    PRIMARY KEY (scope, id)
  );

  CREATE TABLE vivavoce.sessions (
    scope text COLLATE "C", id text COLLATE "C",
    engagement text COLLATE "C" NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    started_at double precision NOT NULL,
    stopped_at double precision,
    media_key text,
    model_key text,
    data text NOT NULL,
    PRIMARY KEY (scope, id),
    FOREIGN KEY (scope, engagement) REFERENCES vivavoce.engagements
  );
  CREATE INDEX ON vivavoce.sessions (scope, engagement);
  CREATE INDEX ON vivavoce.sessions (started_at) WHERE media_key IS NOT NULL;
  CREATE INDEX ON vivavoce.sessions (started_at) WHERE model_key IS NOT NULL;

  CREATE TABLE vivavoce.checks (
    scope text COLLATE "C", id text COLLATE "C",
    session text COLLATE "C" NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    at double precision NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (scope, id),
    FOREIGN KEY (scope, session) REFERENCES vivavoce.sessions
  );
  CREATE INDEX ON vivavoce.checks (scope, session);
  CREATE INDEX ON vivavoce.checks (scope, at, position);

  CREATE TABLE vivavoce.media (
    scope text COLLATE "C", id text COLLATE "C",
    session text COLLATE "C" NOT NULL,
    part_of text COLLATE "C",
    data text NOT NULL,
    audio bytea NOT NULL,
    PRIMARY KEY (scope, id),
    FOREIGN KEY (scope, session) REFERENCES vivavoce.sessions
  );
  CREATE INDEX ON vivavoce.media (scope, session);
  CREATE INDEX ON vivavoce.media (scope, part_of) WHERE part_of IS NOT NULL;

  CREATE TABLE vivavoce.audio_models (
    scope text COLLATE "C", id text COLLATE "C",
    session text COLLATE "C" NOT NULL,
    media text COLLATE "C" NOT NULL,
    data text NOT NULL,
    voice bytea NOT NULL,
    PRIMARY KEY (scope, id),
    FOREIGN KEY (scope, session) REFERENCES vivavoce.sessions
  );
  CREATE INDEX ON vivavoce.audio_models (scope, session);
  CREATE INDEX ON vivavoce.audio_models (scope, media);

  CREATE TABLE vivavoce.owners (
    scope text COLLATE "C", id text COLLATE "C",
    kind text NOT NULL,
    external text COLLATE "C" NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (scope, id),
    UNIQUE (scope, kind, external)
  );

  CREATE TABLE vivavoce.profiles (
    scope text COLLATE "C", id text COLLATE "C",
    owner text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    tag text COLLATE "C" NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    print_type text,
    print_version integer NOT NULL,
    generation bigint NOT NULL,
    status integer NOT NULL,
    key_id text NOT NULL,
    data text NOT NULL,
    template bytea,
    PRIMARY KEY (scope, id),
    UNIQUE (scope, owner, tag),
    FOREIGN KEY (scope, owner) REFERENCES vivavoce.owners
  );
  CREATE INDEX ON vivavoce.profiles (scope, kind, id) WHERE template IS NOT NULL;
  CREATE INDEX ON vivavoce.profiles (key_id);

  CREATE TABLE vivavoce.segments (
    scope text COLLATE "C", profile text COLLATE "C", audio_model text COLLATE "C",
    media text COLLATE "C" NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    data text NOT NULL,
    voice bytea NOT NULL,
    PRIMARY KEY (scope, profile, audio_model),
    FOREIGN KEY (scope, profile) REFERENCES vivavoce.profiles
  );
  CREATE INDEX ON vivavoce.segments (scope, audio_model);

  CREATE TABLE vivavoce.print_changes (
    scope text COLLATE "C", profile text COLLATE "C",
    version bigint NOT NULL,
    PRIMARY KEY (scope, profile)
  );
  CREATE INDEX ON vivavoce.print_changes (scope, version);

  CREATE TABLE vivavoce.groups (
    scope text COLLATE "C", kind text, id text COLLATE "C",
    position bigint GENERATED ALWAYS AS IDENTITY,
    data text NOT NULL,
    PRIMARY KEY (scope, id)
  );

  CREATE TABLE vivavoce.group_members (
    scope text COLLATE "C", group_id text COLLATE "C", kind text, member text COLLATE "C",
    position bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (scope, group_id, kind, member),
    FOREIGN KEY (scope, group_id) REFERENCES vivavoce.groups ON DELETE CASCADE
  );
  CREATE INDEX ON vivavoce.group_members (scope, kind, member);

  CREATE TABLE vivavoce.jobs (
    scope text COLLATE "C", id text COLLATE "C",
    queue_id text NOT NULL,
    state integer NOT NULL,
    progress double precision NOT NULL,
    result text NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (scope, id)
  );
  CREATE INDEX ON vivavoce.jobs (state);

  CREATE TABLE vivavoce.documents (
    collection text COLLATE "C", id text COLLATE "C",
    document_id text NOT NULL,
    document bytea NOT NULL,
    expires_at double precision,
    PRIMARY KEY (collection, id)
  );
  CREATE INDEX ON vivavoce.documents (expires_at) WHERE expires_at IS NOT NULL;

  -- Sealed bytes look random: trying to compress them is wasted.
  ALTER TABLE vivavoce.media ALTER COLUMN audio SET STORAGE EXTERNAL;
  ALTER TABLE vivavoce.audio_models ALTER COLUMN voice SET STORAGE EXTERNAL;
  ALTER TABLE vivavoce.profiles ALTER COLUMN template SET STORAGE EXTERNAL;
  ALTER TABLE vivavoce.segments ALTER COLUMN voice SET STORAGE EXTERNAL;

  -- Keys whose rows are gone: written in the transaction that removes the rows, emptied once the keys are destroyed.
  CREATE TABLE vivavoce.doomed_keys (key_id text PRIMARY KEY, scope_id text NOT NULL);
  `,
  `
  -- The last sign of life of the replica that works on it.
  ALTER TABLE vivavoce.jobs ADD COLUMN alive_at timestamptz;
  `,
  `
  ALTER TABLE vivavoce.groups ADD COLUMN version bigint NOT NULL DEFAULT 0;
  `,
  `
  -- Both are inserted from their session's row, which is never deleted: the constraints would only look for it again, at every check.
  ALTER TABLE vivavoce.audio_models DROP CONSTRAINT audio_models_scope_session_fkey;
  ALTER TABLE vivavoce.checks DROP CONSTRAINT checks_scope_session_fkey;
  `,
  `
  -- Audio models of checks that a print matched: they are erased with it.
  CREATE TABLE vivavoce.matches (
    scope text COLLATE "C", profile text COLLATE "C", audio_model text COLLATE "C",
    PRIMARY KEY (scope, profile, audio_model)
  );
  `,
  `
  -- A template of 256 doubles stays in its row: galleries read them all, and would look for each elsewhere.
  ALTER TABLE vivavoce.profiles SET (toast_tuple_target = 8160);
  `,
  `
  ALTER TABLE vivavoce.profiles ADD COLUMN consent text;
  `,
  `
  -- Names are sealed (names.ts): owners are found by a digest, profiles hold the name. Old rows follow when the keys are open.
  ALTER TABLE vivavoce.profiles ADD COLUMN name bytea;
  ALTER TABLE vivavoce.profiles ALTER COLUMN name SET STORAGE EXTERNAL;
  ALTER TABLE vivavoce.scopes ADD COLUMN names_check text;
  CREATE INDEX ON vivavoce.profiles (scope) WHERE name IS NULL;
  `,
  `
  -- Jobs that have ended are removed some time after they were created. The time of older ones counts from this migration.
  ALTER TABLE vivavoce.jobs ADD COLUMN created_at double precision DEFAULT extract(epoch FROM now()) * 1000;
  `,
  `
  -- The recording that the media is a part of, for when the media has expired. It is unknown for older rows whose media is gone.
  ALTER TABLE vivavoce.audio_models ADD COLUMN part_of text COLLATE "C";
  ALTER TABLE vivavoce.segments ADD COLUMN part_of text COLLATE "C";
  UPDATE vivavoce.audio_models a SET part_of = m.part_of FROM vivavoce.media m
    WHERE m.scope = a.scope AND m.id = a.media AND m.part_of IS NOT NULL;
  UPDATE vivavoce.segments s SET part_of = m.part_of FROM vivavoce.media m
    WHERE m.scope = s.scope AND m.id = s.media AND m.part_of IS NOT NULL;
  CREATE INDEX ON vivavoce.audio_models (scope, part_of) WHERE part_of IS NOT NULL;
  `,
  String.raw`
  -- Groups by their tag, as JSON in their data (a quote inside another value has a backslash). Hashed, because a tag may be too long for an index.
  CREATE INDEX ON vivavoce.groups
    (scope, kind, hashtextextended((substring(data FROM '"tag":("(?:[^"\\]|\\.)*")') COLLATE "C"), 0));
  `,
  `
  -- Lists of one kind have the profiles without a template too.
  DROP INDEX vivavoce.profiles_scope_kind_id_idx;
  CREATE INDEX ON vivavoce.profiles (scope, kind, id);
  `,
];

/** An arbitrary number that no other program uses: replicas that start at the same time migrate one after the other. */
const MIGRATION_LOCK = 7_161_931_215;

/** `upTo`: stop at an older version, to create a store as it was then. */
export async function migrate(database: Database, upTo = MIGRATIONS.length): Promise<void> {
  await database.transaction(
    async (tx) => {
      await tx.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
      await tx.foreign(`
      CREATE SCHEMA IF NOT EXISTS vivavoce;
      CREATE TABLE IF NOT EXISTS vivavoce.migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
    `);
      const [newest] = await tx.query<{ version: number }>(
        "SELECT coalesce(max(version), 0) AS version FROM vivavoce.migrations",
      );
      const from = newest!.version;
      if (from > MIGRATIONS.length)
        throw new StoreError(
          "newer-schema",
          `the store has schema version ${from}; this vivavoce supports up to ${MIGRATIONS.length}. Update vivavoce`,
        );
      for (const [i, statements] of MIGRATIONS.entries()) {
        if (i < from || i >= upTo) continue;
        await tx.foreign(statements);
        await tx.query("INSERT INTO vivavoce.migrations (version) VALUES ($1)", [i + 1]);
      }
    },
    { slow: true },
  );
}
