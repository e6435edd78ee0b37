/** Groups and watchlists: tags and members. */
import type { Group, GroupKind, Id, Members, Store } from "../port.js";
import { inStoreWords, records, type SqlContext } from "./context.js";
import type { Queries } from "./database.js";
import { escapeText, keyOf, rowKey, unescapeText } from "./text.js";

/** A group, with what `GROUP` or `SIZE` computes of its members. */
interface GroupRow<Computed> extends Record<string, unknown> {
  readonly data: string;
  readonly profiles: Computed;
  readonly owners: Computed;
}

const groupsWith = (computed: string): string => {
  const of = (kind: string) => `(SELECT ${computed} FROM vivavoce.group_members m
     WHERE m.scope = g.scope AND m.group_id = g.id AND m.kind = '${kind}')`;
  return `SELECT g.data, ${of("profile")} AS profiles, ${of("owner")} AS owners FROM vivavoce.groups g`;
};
const GROUP = groupsWith("array_agg(m.member::text ORDER BY m.position)");
const SIZE = groupsWith("count(*)");

/** The tag as JSON, which holds any text. The same expression as in its index: see the migrations. */
const TAG = String.raw`(substring(data FROM '"tag":("(?:[^"\\]|\\.)*")') COLLATE "C")`;

export function createGroups({ database }: SqlContext): Store["groups"] {
  /** Locks the group against a concurrent delete while its members change. */
  function change(
    scopeId: Id,
    kind: GroupKind,
    id: Id,
    work: (tx: Queries, group: readonly string[]) => Promise<void>,
  ): Promise<boolean> {
    return database.transaction(async (tx) => {
      const group = rowKey(scopeId, id);
      const rows = await tx.query(
        "UPDATE vivavoce.groups SET version = version + 1 WHERE scope = $1 AND id = $2 AND kind = $3 RETURNING 1",
        [...group, kind],
      );
      if (rows.length === 0) return false;
      await work(tx, group);
      return true;
    });
  }

  return {
    async create(group) {
      const { profileIds, ownerIds, ...plain } = group;
      const key = rowKey(group.scopeId, group.id);
      const insert = database.transaction(async (tx) => {
        await tx.query("INSERT INTO vivavoce.groups (scope, id, kind, data) VALUES ($1, $2, $3, $4)", [
          ...key,
          group.kind,
          JSON.stringify(plain),
        ]);
        await addMembers(tx, key, { profileIds, ownerIds });
      });
      await inStoreWords(group.id, insert);
    },
    async get(scopeId, kind, id) {
      const rows = await database.query<GroupRow<string[] | null>>(
        `${GROUP} WHERE g.scope = $1 AND g.id = $2 AND g.kind = $3`,
        [...rowKey(scopeId, id), kind],
      );
      return rows[0] ? readGroup(rows[0]) : null;
    },
    async version(scopeId, kind, id) {
      const [row] = await database.query<{ version: number | string }>(
        "SELECT version FROM vivavoce.groups WHERE scope = $1 AND id = $2 AND kind = $3",
        [...rowKey(scopeId, id), kind],
      );
      return row ? Number(row.version) : null;
    },
    async withTag(scopeId, kind, tag, limit) {
      const rows = await database.query<{ id: string }>(
        `SELECT id FROM vivavoce.groups WHERE scope = $1 AND kind = $2
           AND hashtextextended(${TAG}, 0) = hashtextextended($3 COLLATE "C", 0) AND ${TAG} = $3
         ORDER BY position LIMIT $4`,
        [keyOf(scopeId), kind, JSON.stringify(tag), limit],
      );
      return rows.map(({ id }) => unescapeText(id));
    },
    async sizes(scopeId, kind, after, limit) {
      const rows = await database.query<GroupRow<number | string>>(
        `${SIZE} WHERE g.scope = $1 AND g.id > $2 AND g.kind = $3 ORDER BY g.id LIMIT $4`,
        [...rowKey(scopeId, after ?? ""), kind, limit],
      );
      return rows.map(({ data, profiles, owners }) => ({
        ...JSON.parse(data),
        profiles: Number(profiles),
        owners: Number(owners),
      }));
    },
    holding: (scopeId, profileId, ownerId) =>
      records(
        database,
        `SELECT g.data FROM vivavoce.groups g WHERE g.scope = $1 AND g.id IN (
           SELECT group_id FROM vivavoce.group_members WHERE scope = $1
             AND ((kind = 'profile' AND member = $2) OR (kind = 'owner' AND member = $3)))
         ORDER BY g.id`,
        [...rowKey(scopeId, profileId), escapeText(ownerId)],
      ),
    async delete(scopeId, kind, id) {
      const rows = await database.query(
        "DELETE FROM vivavoce.groups WHERE scope = $1 AND id = $2 AND kind = $3 RETURNING 1",
        [...rowKey(scopeId, id), kind],
      );
      return rows.length > 0;
    },
    addMembers: (scopeId, kind, id, members) =>
      change(scopeId, kind, id, (tx, group) => addMembers(tx, group, members)),
    removeMembers: (scopeId, kind, id, { profileIds, ownerIds }) =>
      change(scopeId, kind, id, async (tx, group) => {
        await tx.query(
          `DELETE FROM vivavoce.group_members WHERE scope = $1 AND group_id = $2
             AND ((kind = 'profile' AND member = ANY($3::text[])) OR (kind = 'owner' AND member = ANY($4::text[])))`,
          [...group, profileIds.map(escapeText), ownerIds.map(escapeText)],
        );
      }),
  };
}

async function addMembers(tx: Queries, group: readonly string[], { profileIds, ownerIds }: Members): Promise<void> {
  for (const [kind, ids] of [
    ["profile", profileIds],
    ["owner", ownerIds],
  ] as const) {
    if (ids.length === 0) continue;
    await tx.query(
      `INSERT INTO vivavoce.group_members (scope, group_id, kind, member)
       SELECT $1, $2, $3, member FROM unnest($4::text[]) WITH ORDINALITY AS given (member, place) ORDER BY place
       ON CONFLICT DO NOTHING`,
      [...group, kind, ids.map(escapeText)],
    );
  }
}

function readGroup({ data, profiles, owners }: GroupRow<string[] | null>): Group {
  return {
    ...JSON.parse(data),
    profileIds: (profiles ?? []).map(unescapeText),
    ownerIds: (owners ?? []).map(unescapeText),
  };
}
