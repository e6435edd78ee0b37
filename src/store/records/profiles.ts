/** Owners, profiles with their segments and templates, and the prints that galleries load. */
import { opened, printsAmong, readListed } from "../damaged-profiles.js";
import { decodeTemplate, encodeTemplate, joinProcessed, splitProcessed } from "../encoding.js";
import { ProfileKeyLostError } from "../errors.js";
import {
  type EnrollmentSegment,
  type Id,
  type ListedProfile,
  mayBeUsed,
  type OnDamaged,
  type Print,
  type Profile,
  type Store,
} from "../port.js";
import type { DataKey } from "../seal/key-ring.js";
import { profilePlace, segmentPlace } from "../seal/vault.js";
import { markPrintChanged, type RecordContext } from "./context.js";
import { eraseProfile } from "./erasure.js";
import { afterId, inStoreWords, keysBetween, type StoredProfile, type StoredSegment, within } from "./tables.js";

const PRINTS_AT_ONCE = 500;

export function createOwners({ db }: RecordContext): Store["owners"] {
  return {
    async find(scopeId, kind, externalId) {
      return (await db.getFromIndex("owners", "name", [scopeId, kind, externalId])) ?? null;
    },
    async getMany(scopeId, ids) {
      const found = await Promise.all([...new Set(ids)].map((id) => db.get("owners", [scopeId, id])));
      return found.flatMap((owner) => owner ?? []);
    },
  };
}

export function createProfiles(context: RecordContext): Store["profiles"] {
  const { db, vault } = context;

  async function findStored(scopeId: Id, kind: string, externalId: string, tag: string) {
    const owner = await db.getFromIndex("owners", "name", [scopeId, kind, externalId]);
    return owner && (await db.getFromIndex("profiles", "tag", [scopeId, owner.id, tag]));
  }

  async function readAll(scopeId: Id, stored: readonly StoredProfile[]): Promise<ListedProfile[]> {
    const sealed = stored.flatMap(({ id, sealed: bytes }) =>
      bytes ? [{ place: profilePlace("template", scopeId, id), bytes }] : [],
    );
    const templates = await vault.openAll(scopeId, sealed);
    let next = 0;
    const parts = stored.map((profile) => ({ profile, bytes: profile.sealed && templates[next++] }));
    const keyIds = parts.flatMap(({ profile, bytes }) => (profile.sealed && !bytes ? [profile.keyId] : []));
    const destroyed = keyIds.length > 0 ? await vault.ring.shelf.destroyedOf(scopeId, keyIds) : new Set();
    return parts.flatMap(({ profile: { sealed, keyId, ...plain }, bytes }): ListedProfile[] => {
      if (bytes || !sealed) return [{ ...plain, template: bytes ? decodeTemplate(bytes) : null }];
      // A profile whose key was destroyed in the meantime is erased.
      return destroyed.has(keyId) ? [] : [{ ...plain, damage: new ProfileKeyLostError(plain.id) }];
    });
  }

  const listed = (scopeId: Id, stored: readonly StoredProfile[]): Promise<ListedProfile[]> =>
    readListed(
      stored,
      (some) => readAll(scopeId, some),
      async ({ sealed: _sealed, keyId: _keyId, ...plain }, damage) => ({ ...plain, damage }),
    );

  async function readOne(scopeId: Id, stored: StoredProfile | undefined): Promise<Profile | null> {
    const [profile] = stored ? await readAll(scopeId, [stored]) : [];
    return profile ? opened(profile) : null;
  }

  async function storedOf(scopeId: Id, ids: readonly Id[]): Promise<StoredProfile[]> {
    const stored = await db.transact(["profiles"], ({ profiles }) =>
      Promise.all([...new Set(ids)].map((id) => profiles.get([scopeId, id]))),
    );
    return stored.flatMap((profile) => profile ?? []);
  }

  async function readPrints(
    scopeId: Id,
    stored: readonly StoredProfile[],
    onDamaged: OnDamaged | undefined,
  ): Promise<Print[]> {
    const trained = stored.filter((profile) => profile.sealed !== null && mayBeUsed(profile));
    return printsAmong(await listed(scopeId, trained), onDamaged);
  }

  /** To seal more for the profile; `null` if it does not exist or its key was destroyed, which means that it is erased. */
  async function keyOfProfile(scopeId: Id, profile: StoredProfile | undefined): Promise<DataKey | null> {
    const key = profile ? await vault.key(scopeId, profile.keyId) : null;
    if (profile && !key) await vault.assertDestroyed(scopeId, profile.id, profile.keyId);
    return key;
  }

  async function sealSegment(
    key: DataKey,
    scopeId: Id,
    id: Id,
    segment: EnrollmentSegment,
  ): Promise<Omit<StoredSegment, "position">> {
    const { plain: processed, content } = splitProcessed(segment.processed);
    const sealed = await vault.seal(key, segmentPlace(scopeId, id, processed.id), content);
    return { scopeId, profileId: id, audioModelId: processed.id, addedAt: segment.addedAt, processed, sealed };
  }

  return {
    async create(given) {
      const { scopeId, id, tag, template, ...plain } = given;
      if (await findStored(scopeId, given.owner.kind, given.owner.externalId, tag)) return null;
      const key = await vault.ring.create(scopeId, "profile");
      const sealed =
        template && (await vault.seal(key, profilePlace("template", scopeId, id), encodeTemplate(template)));
      let stored: StoredProfile | undefined;
      const write = db.transact(["owners", "profiles", "scopes", "printChanges"], async (tables) => {
        const { owners, profiles, scopes } = tables;
        const { kind, externalId } = given.owner;
        const known = await owners.index("name").get([scopeId, kind, externalId]);
        const owner = known ?? given.owner;
        if (await profiles.index("tag").getKey([scopeId, owner.id, tag])) return undefined;
        const next = { ...plain, id, scopeId, tag, owner, generation: 0, keyId: key.id, sealed };
        await profiles.add(next);
        if (!known) await owners.add(owner);
        if (sealed) await markPrintChanged(tables, scopeId, id);
        else if (!(await scopes.get(scopeId))) await scopes.put({ scopeId, printsVersion: 0 });
        return next;
      });
      try {
        stored = await inStoreWords(id, write);
      } finally {
        if (!stored) await vault.ring.destroy(scopeId, [key.id]);
      }
      return readOne(scopeId, stored);
    },

    get: async (scopeId, id) => readOne(scopeId, await db.get("profiles", [scopeId, id])),

    getMany: async (scopeId, ids) => listed(scopeId, await storedOf(scopeId, ids)),

    find: async (scopeId, ...name) => readOne(scopeId, await findStored(scopeId, ...name)),

    async list(scopeId, after, limit, kind) {
      const found: ListedProfile[] = [];
      for (let last = after; found.length < limit; ) {
        const wanted = limit - found.length;
        const atOnce = kind ? Math.max(wanted, PRINTS_AT_ONCE) : wanted;
        const stored = await db.getAll("profiles", afterId(scopeId, last), atOnce);
        const ofKind = kind ? stored.filter(({ owner }) => owner.kind === kind) : stored;
        const taken = ofKind.slice(0, wanted);
        found.push(...(await listed(scopeId, taken)));
        const isRest = taken.length === ofKind.length;
        // A short page means the end, so profiles erased meanwhile must not make a page short.
        if (isRest && stored.length < atOnce) break;
        last = (isRest ? stored : taken).at(-1)!.id;
      }
      return found;
    },

    count: (scopeId) => db.count("profiles", within(scopeId)),

    async ofOwners(scopeId, ownerIds) {
      const each = [...new Set(ownerIds)].map((id) => db.getAllFromIndex("profiles", "owner", [scopeId, id]));
      return listed(scopeId, (await Promise.all(each)).flat());
    },

    async segments(scopeId, id) {
      const stored = await db.getAll("segments", within(scopeId, id));
      const placeOf = ({ audioModelId }: StoredSegment) => segmentPlace(scopeId, id, audioModelId);
      const sealed = stored.map((segment) => ({ place: placeOf(segment), bytes: segment.sealed }));
      const opened = await vault.openAll(scopeId, sealed);
      return stored.flatMap(({ addedAt, processed }, i) => {
        const voice = opened[i];
        return voice ? [{ profileId: id, addedAt, processed: joinProcessed(processed, voice) }] : [];
      });
    },

    async addSegment(scopeId, id, generation, segment) {
      const key = await keyOfProfile(scopeId, await db.get("profiles", [scopeId, id]));
      if (!key) return "missing";
      const stored = await sealSegment(key, scopeId, id, segment);
      return db.transact(["profiles", "segments"], async ({ profiles, segments }) => {
        const profile = await profiles.get([scopeId, id]);
        if (!profile) return "missing";
        if (await segments.index("enrolled").getKey([scopeId, id, stored.audioModelId])) return "already";
        const { printType } = segment.processed;
        if (profile.printType !== null && profile.printType !== printType) return "wrong-type";
        if (profile.generation !== generation) return "moved";
        const position = await segments.count(within(scopeId, id));
        await segments.add({ ...stored, position });
        await profiles.put({ ...profile, printType, generation: generation + 1 });
        return "added";
      });
    },

    async train(scopeId, id, generation, { template, status, printVersion, segments }) {
      const known = await db.get("profiles", [scopeId, id]);
      const key = known?.generation === generation ? await keyOfProfile(scopeId, known) : null;
      if (!key) return false;
      const sealed = await vault.seal(key, profilePlace("template", scopeId, id), encodeTemplate(template));
      const stored: Omit<StoredSegment, "position">[] = [];
      for (const segment of segments ?? []) stored.push(await sealSegment(key, scopeId, id, segment));
      return db.transact(["profiles", "segments", "scopes", "printChanges"], async (tables) => {
        const profile = await tables.profiles.get([scopeId, id]);
        if (profile?.generation !== generation) return false;
        await tables.profiles.put({ ...profile, sealed, status, printVersion, generation: generation + 1 });
        if (segments) {
          await tables.segments.delete(within(scopeId, id));
          for (const [position, segment] of stored.entries()) await tables.segments.add({ ...segment, position });
        }
        await markPrintChanged(tables, scopeId, id);
        return true;
      });
    },

    setConsent: (scopeId, id, consent) =>
      db.transact(["profiles", "scopes", "printChanges"], async (tables) => {
        const profile = await tables.profiles.get([scopeId, id]);
        if (!profile) return false;
        await tables.profiles.put({ ...profile, consent, generation: profile.generation + 1 });
        if (profile.sealed) await markPrintChanged(tables, scopeId, id);
        return true;
      }),

    erase: (scopeId, id, onUnopened) => eraseProfile(context, scopeId, id, onUnopened),

    async *prints(scopeId, kind, onDamaged) {
      for (let after: Id | null | undefined = null; after !== undefined; ) {
        const stored: StoredProfile[] = await db.getAll("profiles", afterId(scopeId, after), PRINTS_AT_ONCE);
        const ofKind = stored.filter(({ owner }) => owner.kind === kind);
        yield* await readPrints(scopeId, ofKind, onDamaged);
        after = stored.at(-1)?.id;
      }
    },

    printsOf: async (scopeId, ids, onDamaged) => readPrints(scopeId, await storedOf(scopeId, ids), onDamaged),

    async printsVersion(scopeId) {
      return (await db.get("scopes", scopeId))?.printsVersion ?? 0;
    },

    printsChangedSince: (scopeId, version) =>
      db.transact(["scopes", "printChanges"], async ({ scopes, printChanges }) => {
        const current = (await scopes.get(scopeId))?.printsVersion ?? 0;
        const since = version > current ? 0 : version;
        const range = keysBetween([scopeId, since], [scopeId, []], true);
        const changes = await printChanges.index("version").getAll(range);
        return { version: current, ids: changes.map(({ profileId }) => profileId) };
      }),
  };
}
