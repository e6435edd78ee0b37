/** Owners, profiles with their segments and templates, and the prints that galleries load. */
import { opened, printsAmong, readListed } from "../damaged-profiles.js";
import { decodeJson, decodeTemplate, encodeTemplate, joinProcessed, splitProcessed } from "../encoding.js";
import { ProfileKeyLostError, SealError } from "../errors.js";
import type {
  EnrollmentSegment,
  Id,
  ListedProfile,
  NamelessOwner,
  NewProfile,
  OwnerKind,
  PlainProcessed,
  Print,
  Profile,
  RecordedConsent,
  Store,
} from "../port.js";
import type { DataKey, KeyId } from "../seal/key-ring.js";
import { keyIdOf, profilePlace, segmentPlace } from "../seal/vault.js";
import { inStoreWords, markPrintChanged, records, type SqlContext } from "./context.js";
import { type Queries, wasRefused } from "./database.js";
import { eraseProfile } from "./erasure.js";
import { escapeText, keyOf, rowKey, textOrNull, unescapeText } from "./text.js";

interface ProfileRow extends Record<string, unknown> {
  readonly scope: string;
  readonly id: string;
  readonly owner: string;
  readonly kind: OwnerKind;
  readonly tag: string;
  readonly print_type: string | null;
  readonly print_version: number;
  readonly generation: number | string;
  readonly status: number;
  readonly key_id: KeyId;
  readonly data: string;
  readonly template: Uint8Array | null;
  /** Sealed; `null` if an earlier version wrote it into the data and the key to seal it was missing, or if the row was altered. */
  readonly name: Uint8Array | null;
  /** JSON. */
  readonly consent: string | null;
}

/** Owners never change, so a profile's data includes its owner: reading a profile reads one row. */
const PROFILE =
  "SELECT scope, id, owner, kind, tag, print_type, print_version, generation, status, key_id, data, name, template, consent FROM vivavoce.profiles";
const OWNER_ID = "(SELECT o.id FROM vivavoce.owners o WHERE o.scope = $1 AND o.kind = $2 AND o.external = $3)";

const PRINTS_AT_ONCE = 2_000;

export function createOwners({ database, names }: SqlContext): Store["owners"] {
  return {
    async find(scopeId, kind, externalId) {
      const [owner] = await records<NamelessOwner>(
        database,
        "SELECT data FROM vivavoce.owners WHERE scope = $1 AND kind = $2 AND external = $3",
        [keyOf(scopeId), kind, await names.find(scopeId, externalId)],
      );
      return owner ? { ...owner, externalId } : null;
    },
    getMany: (scopeId, ids) =>
      records(database, "SELECT data FROM vivavoce.owners WHERE scope = $1 AND id = ANY($2::text[])", [
        keyOf(scopeId),
        [...new Set(ids)].map(escapeText),
      ]),
  };
}

export function createProfiles(context: SqlContext): Store["profiles"] {
  const { database, vault, names } = context;

  /** A damaged profile is an error when it alone is requested; lists mark it, so that the others can be used. */
  async function selectOne(scopeId: Id, where: string, values: readonly unknown[]): Promise<Profile | null> {
    const rows = await database.query<ProfileRow>(`${PROFILE} ${where}`, values);
    const [profile] = await readProfiles(context, scopeId, rows);
    return profile ? opened(profile) : null;
  }

  const listed = (scopeId: Id, rows: readonly ProfileRow[]): Promise<ListedProfile[]> =>
    readListed(
      rows,
      (some) => readProfiles(context, scopeId, some),
      async (row, damage) => {
        const [named] = await readProfiles(context, scopeId, [{ ...row, template: null }]).catch(() => []);
        return { ...(named ?? nameless(scopeId, row)), damage };
      },
    );

  async function select(scopeId: Id, where: string, values: readonly unknown[]): Promise<ListedProfile[]> {
    return listed(scopeId, await database.query<ProfileRow>(`${PROFILE} ${where}`, values));
  }

  /** To seal more for the profile; `null` if it does not exist or its key was destroyed, which means that it is erased. */
  async function keyOfProfile(scopeId: Id, id: Id): Promise<{ key: DataKey; generation: number } | null> {
    const [row] = await database.query<{ key_id: KeyId; generation: number | string }>(
      "SELECT key_id, generation FROM vivavoce.profiles WHERE scope = $1 AND id = $2",
      rowKey(scopeId, id),
    );
    if (!row) return null;
    const key = await vault.key(scopeId, row.key_id);
    if (!key) await vault.assertDestroyed(scopeId, id, row.key_id);
    return key && { key, generation: Number(row.generation) };
  }

  return {
    async create(given) {
      const { scopeId, id } = given;
      const ownerKey = await names.make(scopeId, given.owner.externalId);
      // A key that is created but not used leaves a trace in the ring, so ask first. The transaction has the final answer.
      const taken = await database.query(
        `SELECT 1 FROM vivavoce.profiles WHERE scope = $1 AND owner = ${OWNER_ID} AND tag = $4`,
        [keyOf(scopeId), given.owner.kind, ownerKey, keyOf(given.tag)],
      );
      if (taken.length > 0) return null;
      const key = await vault.ring.create(scopeId, "profile");
      const sealed = {
        keyId: key.id,
        name: await names.seal(key, scopeId, id, given.owner.externalId),
        template:
          given.template &&
          (await vault.seal(key, profilePlace("template", scopeId, id), encodeTemplate(given.template))),
      };
      const insert = database
        .transaction((tx) => insertProfile(tx, given, ownerKey, sealed))
        .catch(async (error) => {
          // Only if the profile was certainly not written: without its key it could never be used.
          if (wasRefused(error)) await vault.ring.destroy(scopeId, [key.id]);
          throw error;
        });
      const profile = await inStoreWords(id, insert);
      if (!profile) await vault.ring.destroy(scopeId, [key.id]);
      return profile;
    },

    get: (scopeId, id) => selectOne(scopeId, "WHERE scope = $1 AND id = $2", rowKey(scopeId, id)),

    getMany: (scopeId, ids) =>
      select(scopeId, "WHERE scope = $1 AND id = ANY($2::text[])", [keyOf(scopeId), [...new Set(ids)].map(escapeText)]),

    async find(scopeId, kind, externalId, tag) {
      const profile = await selectOne(scopeId, `WHERE scope = $1 AND owner = ${OWNER_ID} AND tag = $4`, [
        keyOf(scopeId),
        kind,
        await names.find(scopeId, externalId),
        keyOf(tag),
      ]);
      // The name is sealed, what leads to it is not.
      if (profile && profile.owner.externalId !== externalId) throw moved(profile.id);
      return profile;
    },

    async list(scopeId, after, limit, kind) {
      const found: ListedProfile[] = [];
      const ofKind = kind ? "AND kind = $4" : "";
      for (let last = escapeText(after ?? ""); found.length < limit; ) {
        const wanted = limit - found.length;
        const rows = await database.query<ProfileRow>(
          `${PROFILE} WHERE scope = $1 AND id > $2 ${ofKind} ORDER BY id LIMIT $3`,
          [keyOf(scopeId), last, wanted, ...(kind ? [kind] : [])],
        );
        found.push(...(await listed(scopeId, rows)));
        // A short page means the end, so profiles erased meanwhile must not make a page short.
        if (rows.length < wanted) break;
        last = rows.at(-1)!.id;
      }
      return found;
    },

    async count(scopeId) {
      const [row] = await database.query<{ profiles: number | string }>(
        "SELECT count(*) AS profiles FROM vivavoce.profiles WHERE scope = $1",
        [keyOf(scopeId)],
      );
      return Number(row!.profiles);
    },

    ofOwners: (scopeId, ownerIds) =>
      select(scopeId, "WHERE scope = $1 AND owner = ANY($2::text[]) ORDER BY position", [
        keyOf(scopeId),
        [...new Set(ownerIds)].map(escapeText),
      ]),

    async segments(scopeId, id) {
      const rows = await database.query<{ data: string; voice: Uint8Array }>(
        "SELECT data, voice FROM vivavoce.segments WHERE scope = $1 AND profile = $2 ORDER BY position",
        rowKey(scopeId, id),
      );
      const plain = rows.map(({ data }) => JSON.parse(data) as PlainSegment);
      const sealed = rows.map(({ voice }, i) => ({
        place: segmentPlace(scopeId, id, plain[i]!.processed.id),
        bytes: voice,
      }));
      const opened = await vault.openAll(scopeId, sealed);
      const unopened = opened.indexOf(null);
      if (unopened >= 0) await vault.assertDestroyed(scopeId, id, keyIdOf(sealed[unopened]!.bytes));
      return plain.flatMap(({ addedAt, processed }, i) => {
        const voice = opened[i];
        return voice ? [{ profileId: id, addedAt, processed: joinProcessed(processed, voice) }] : [];
      });
    },

    async addSegment(scopeId, id, generation, segment) {
      const profile = rowKey(scopeId, id);
      const known = await keyOfProfile(scopeId, id);
      if (!known) return "missing";
      const row = await sealSegment(context, known.key, scopeId, id, segment);
      return database.transaction(async (tx) => {
        const [at] = await tx.query<{ print_type: string | null; generation: number | string; there: boolean }>(
          `SELECT print_type, generation,
             EXISTS (SELECT 1 FROM vivavoce.segments s WHERE s.scope = $1 AND s.profile = $2 AND s.audio_model = $3) AS there
           FROM vivavoce.profiles WHERE scope = $1 AND id = $2 FOR UPDATE`,
          [...profile, row.audioModel],
        );
        if (!at) return "missing";
        if (at.there) return "already";
        const printType = escapeText(segment.processed.printType);
        if (at.print_type !== null && at.print_type !== printType) return "wrong-type";
        if (Number(at.generation) !== generation) return "moved";
        await insertSegment(tx, profile, row);
        await tx.query(
          "UPDATE vivavoce.profiles SET print_type = $3, generation = generation + 1 WHERE scope = $1 AND id = $2",
          [...profile, printType],
        );
        return "added";
      });
    },

    async train(scopeId, id, generation, { template, status, printVersion, segments }) {
      const profile = rowKey(scopeId, id);
      const known = await keyOfProfile(scopeId, id);
      if (known?.generation !== generation) return false;
      const { key } = known;
      const sealed = await vault.seal(key, profilePlace("template", scopeId, id), encodeTemplate(template));
      const rows: SegmentRow[] = [];
      for (const segment of segments ?? []) rows.push(await sealSegment(context, key, scopeId, id, segment));
      return database.transaction(async (tx) => {
        const moved = await tx.query(
          `UPDATE vivavoce.profiles SET template = $4, status = $5, print_version = $6, generation = generation + 1
           WHERE scope = $1 AND id = $2 AND generation = $3 RETURNING 1`,
          [...profile, generation, sealed, status, printVersion],
        );
        if (moved.length === 0) return false;
        if (segments) {
          await tx.query("DELETE FROM vivavoce.segments WHERE scope = $1 AND profile = $2", profile);
          for (const row of rows) await insertSegment(tx, profile, row);
        }
        await markPrintChanged(tx, scopeId, id);
        return true;
      });
    },

    async setConsent(scopeId, id, consent) {
      return database.transaction(async (tx) => {
        const rows = await tx.query<{ trained: boolean }>(
          `UPDATE vivavoce.profiles SET consent = $3, generation = generation + 1
           WHERE scope = $1 AND id = $2 RETURNING template IS NOT NULL AS trained`,
          [...rowKey(scopeId, id), JSON.stringify(consent)],
        );
        if (rows[0]?.trained) await markPrintChanged(tx, scopeId, id);
        return rows.length > 0;
      });
    },

    erase: (scopeId, id, onUnopened) => eraseProfile(context, scopeId, id, onUnopened),

    async *prints(scopeId, kind, onDamaged) {
      const batch = `${PROFILE} WHERE scope = $1 AND kind = $2 AND template IS NOT NULL AND id > $3
        ORDER BY id LIMIT ${PRINTS_AT_ONCE}`;
      for (let after: string | undefined = ""; after !== undefined; ) {
        const rows: ProfileRow[] = await database.query<ProfileRow>(batch, [keyOf(scopeId), kind, after]);
        yield* printsAmong(await listed(scopeId, rows), onDamaged);
        after = rows.at(-1)?.id;
      }
    },

    async printsOf(scopeId, ids, onDamaged) {
      const wanted = [...new Set(ids)].map(escapeText);
      const found: Print[] = [];
      for (let at = 0; at < wanted.length; at += PRINTS_AT_ONCE) {
        const rows = await database.query<ProfileRow>(
          `${PROFILE} WHERE scope = $1 AND id = ANY($2::text[]) AND template IS NOT NULL`,
          [keyOf(scopeId), wanted.slice(at, at + PRINTS_AT_ONCE)],
        );
        found.push(...printsAmong(await listed(scopeId, rows), onDamaged));
      }
      return found;
    },

    async printsVersion(scopeId) {
      const [row] = await database.query<{ version: number | string }>(
        "SELECT prints_version AS version FROM vivavoce.scopes WHERE scope = $1",
        [keyOf(scopeId)],
      );
      return Number(row?.version ?? 0);
    },

    async printsChangedSince(scopeId, version) {
      // One statement, so that version and ids are from the same moment.
      const rows = await database.query<{ version: number | string; profile: string | null }>(
        `SELECT s.prints_version AS version, c.profile FROM vivavoce.scopes s
         LEFT JOIN vivavoce.print_changes c
           ON c.scope = s.scope AND c.version > CASE WHEN $2::bigint > s.prints_version THEN 0 ELSE $2::bigint END
         WHERE s.scope = $1`,
        [keyOf(scopeId), version],
      );
      const ids = rows.flatMap(({ profile }) => (profile === null ? [] : [unescapeText(profile)]));
      return { version: Number(rows[0]?.version ?? 0), ids };
    },
  };
}

/** `null` when the owner already has a profile with this tag. */
async function insertProfile(
  tx: Queries,
  given: NewProfile,
  ownerKey: string,
  { keyId, name, template }: Readonly<{ keyId: KeyId; name: Uint8Array; template: Uint8Array | null }>,
): Promise<Profile | null> {
  const { scopeId, id, tag, printType, printVersion, status, createdAt } = given;
  const scope = keyOf(scopeId);
  const { externalId, ...nameless } = given.owner;
  const owner = await insertOwner(tx, nameless, ownerKey);
  const made = await tx.query(
    `INSERT INTO vivavoce.profiles
       (scope, id, owner, kind, tag, print_type, print_version, generation, status, key_id, data, name, template)
     VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $10, $11, $12)
     ON CONFLICT (scope, owner, tag) DO NOTHING RETURNING 1`,
    [
      scope,
      escapeText(id),
      escapeText(owner.id),
      owner.kind,
      keyOf(tag),
      textOrNull(printType),
      printVersion,
      status,
      keyId,
      JSON.stringify({ id, scopeId, owner, tag, createdAt } satisfies PlainProfile),
      name,
      template,
    ],
  );
  if (made.length === 0) return null;
  if (template) await markPrintChanged(tx, scopeId, id);
  return { ...given, owner: { ...owner, externalId }, generation: 0 };
}

/** The owner with this name, locked until the transaction ends: two profiles of an owner are created one after the other. */
async function insertOwner(tx: Queries, owner: NamelessOwner, ownerKey: string): Promise<NamelessOwner> {
  const [stored] = await records<NamelessOwner>(
    tx,
    `INSERT INTO vivavoce.owners (scope, id, kind, external, data) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (scope, kind, external) DO UPDATE SET external = excluded.external RETURNING data`,
    [...rowKey(owner.scopeId, owner.id), owner.kind, ownerKey, JSON.stringify(owner)],
  );
  return stored!;
}

type PlainSegment = { readonly addedAt: number; readonly processed: PlainProcessed };

type SegmentRow = Awaited<ReturnType<typeof sealSegment>>;

/** A profile keeps its own copy of what was enrolled, sealed with its own key: sessions and their recordings can be deleted. */
async function sealSegment(
  { vault }: SqlContext,
  key: DataKey,
  scopeId: Id,
  profileId: Id,
  { addedAt, processed }: EnrollmentSegment,
) {
  const { plain, content } = splitProcessed(processed);
  return {
    audioModel: escapeText(processed.id),
    media: escapeText(processed.mediaSegmentId),
    partOf: textOrNull(processed.partOf),
    data: JSON.stringify({ addedAt, processed: plain } satisfies PlainSegment),
    voice: await vault.seal(key, segmentPlace(scopeId, profileId, processed.id), content),
  };
}

async function insertSegment(tx: Queries, profile: readonly string[], row: SegmentRow): Promise<void> {
  await tx.query(
    `INSERT INTO vivavoce.segments (scope, profile, audio_model, media, part_of, data, voice)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [...profile, row.audioModel, row.media, row.partOf, row.data, row.voice],
  );
}

type PlainProfile = Pick<Profile, "id" | "scopeId" | "tag" | "createdAt"> & { readonly owner: NamelessOwner };

/** The data names the place that the sealed parts are bound to: if all of them were copied from another row, only this shows it. */
function plainOf({ scope, id, data, consent }: ProfileRow): PlainProfile {
  const plain = parsed<PlainProfile>(data);
  if (!plain?.owner || (consent !== null && !parsed(consent))) throw altered(unescapeText(id));
  if (keyOf(plain.scopeId) !== scope || escapeText(plain.id) !== id) throw moved(unescapeText(id));
  return plain;
}

/** `null` if it is not JSON. */
function parsed<T>(text: string): T | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const altered = (profileId: Id) =>
  new SealError("damaged", `the row of profile ${profileId} was altered; restore it from a backup`);

const moved = (profileId: Id) =>
  new SealError("damaged", `the profile ${profileId} has the data of another one; restore it from a backup`);

const unsealed = (profileId: Id) =>
  new SealError(
    "damaged",
    `the name of profile ${profileId} is not sealed (its key was missing at the start, or its row was altered): restore the keys or the database ` +
      "from a backup and start again, or delete the profile",
  );

const profileOf = (row: ProfileRow, plain: PlainProfile, externalId: string): Omit<Profile, "template"> => ({
  ...plain,
  owner: { ...plain.owner, externalId },
  printType: row.print_type === null ? null : unescapeText(row.print_type),
  printVersion: row.print_version,
  generation: Number(row.generation),
  status: row.status,
  ...(row.consent === null ? {} : { consent: parsed<RecordedConsent>(row.consent)! }),
});

/** Its data may be that of another profile, or not JSON. */
const nameless = (scopeId: Id, row: ProfileRow): Omit<Profile, "template"> => {
  const owner = { id: unescapeText(row.owner), scopeId, kind: row.kind };
  const createdAt = parsed<PlainProfile>(row.data)?.createdAt ?? 0;
  const plain = { id: unescapeText(row.id), scopeId, owner, tag: unescapeText(row.tag), createdAt };
  return profileOf({ ...row, consent: row.consent && parsed(row.consent) ? row.consent : null }, plain, "");
};

/** Rows of one scope. A profile whose key was destroyed in the meantime is erased, and left out. */
async function readProfiles({ vault }: SqlContext, scopeId: Id, rows: readonly ProfileRow[]): Promise<ListedProfile[]> {
  const plain = rows.map(plainOf);
  const sealed = rows.flatMap(({ name, template }, i) => {
    const { id } = plain[i]!;
    if (!name) throw unsealed(id);
    return [
      { place: profilePlace("name", scopeId, id), bytes: name },
      ...(template ? [{ place: profilePlace("template", scopeId, id), bytes: template }] : []),
    ];
  });
  const opened = rows.length > 0 ? await vault.openAll(scopeId, sealed) : [];
  let next = 0;
  const parts = rows.map((row) => ({ row, name: opened[next++], bytes: row.template && opened[next++] }));
  const isOpen = ({ row, name, bytes }: (typeof parts)[number]) => name && (bytes || !row.template);
  const keyIds = parts.flatMap((one) => (isOpen(one) ? [] : [one.row.key_id]));
  const destroyed = keyIds.length > 0 ? await vault.ring.shelf.destroyedOf(scopeId, keyIds) : new Set();
  return parts.flatMap((one, i): ListedProfile[] => {
    const { row, name, bytes } = one;
    if (isOpen(one))
      return [{ ...profileOf(row, plain[i]!, decodeJson(name!)), template: bytes ? decodeTemplate(bytes) : null }];
    return destroyed.has(row.key_id)
      ? []
      : [{ ...nameless(scopeId, row), damage: new ProfileKeyLostError(plain[i]!.id) }];
  });
}
