/** Engagements, sessions and their checks. */
import { StoreError } from "../errors.js";
import { type Engagement, type Session, type Store, withoutModel } from "../port.js";
import { inStoreWords, records, type SqlContext } from "./context.js";
import type { Database } from "./database.js";
import { addAudioModel, insertAudioModel, listedPrints, openSession } from "./recordings.js";
import { escapeText, keyOf, rowKey } from "./text.js";

export function createEngagements({ database }: SqlContext): Store["engagements"] {
  return {
    async create(engagement) {
      const { scopeId, id, stoppedAt } = engagement;
      await inStoreWords(
        id,
        database.query("INSERT INTO vivavoce.engagements (scope, id, stopped_at, data) VALUES ($1, $2, $3, $4)", [
          ...rowKey(scopeId, id),
          stoppedAt,
          JSON.stringify(engagement),
        ]),
      );
    },
    async get(scopeId, id) {
      const found = await select<Engagement>(database, "engagements WHERE scope = $1 AND id = $2", rowKey(scopeId, id));
      return found[0] ?? null;
    },
    stop: (scopeId, id, at) => stop(database, "engagements", scopeId, id, at),
  };
}

export function createSessions(context: SqlContext): Store["sessions"] {
  const { database } = context;
  return {
    async create(session) {
      const { scopeId, id, engagementId, startedAt, stoppedAt } = session;
      await inStoreWords(
        id,
        database.query(
          `INSERT INTO vivavoce.sessions (scope, id, engagement, started_at, stopped_at, data)
           VALUES ($1, $2, $3, $4, $5, $6)`,
          [...rowKey(scopeId, id), escapeText(engagementId), startedAt, stoppedAt, JSON.stringify(session)],
        ),
      );
    },
    async get(scopeId, id) {
      const found = await select<Session>(database, "sessions WHERE scope = $1 AND id = $2", rowKey(scopeId, id));
      return found[0] ?? null;
    },
    stop: (scopeId, id, at) => stop(database, "sessions", scopeId, id, at),
    async capTimes(now) {
      const cap = (time: "started_at" | "stopped_at") => `UPDATE vivavoce.sessions SET ${time} = $1
        WHERE ${time} > $1 AND (media_key IS NOT NULL OR model_key IS NOT NULL)`;
      for (const time of ["started_at", "stopped_at"] as const)
        await database.transaction((tx) => tx.query(cap(time), [now]), { slow: true });
    },
    ofEngagement: (scopeId, engagementId) =>
      select(
        database,
        "sessions WHERE scope = $1 AND engagement = $2 ORDER BY started_at, position",
        rowKey(scopeId, engagementId),
      ),
    list: (scopeId, before, limit) =>
      select(database, `sessions WHERE scope = $1 ${before === null ? "" : "AND id < $3"} ORDER BY id DESC LIMIT $2`, [
        keyOf(scopeId),
        Math.max(0, limit),
        ...(before === null ? [] : [escapeText(before)]),
      ]),
    async addCheck(check, analyzed) {
      const { scopeId, id, sessionId, at } = check;
      const [key, data] = [escapeText(id), JSON.stringify(check)];
      const { audioModelId, matchedProfileIds = [] } = check;
      const matches = [escapeText(audioModelId ?? ""), [...new Set(matchedProfileIds)].map(escapeText)];
      if (analyzed) {
        await addAudioModel(context, analyzed, (session, values) =>
          database.query(
            `WITH ${openSession(context, 13, session)}, model AS (${insertAudioModel} RETURNING scope),
               matched AS (${insertMatches("model", 12)})
             INSERT INTO vivavoce.checks (scope, id, session, at, data)
             SELECT scope, $9, session, $10, CASE WHEN complete THEN $11 ELSE $14 END FROM open RETURNING 1`,
            [...values, key, at, data, ...matches, JSON.stringify(withoutModel(check))],
          ),
        );
        return;
      }
      const rows = await inStoreWords(
        id,
        database.query(
          `WITH open AS (SELECT scope, id AS session FROM vivavoce.sessions WHERE scope = $1 AND id = $3),
             prints AS (${listedPrints(context, 7)}), matched AS (${insertMatches("open", 6)})
           INSERT INTO vivavoce.checks (scope, id, session, at, data)
           SELECT scope, $2, session, $4, $5 FROM open RETURNING 1`,
          [keyOf(scopeId), key, escapeText(sessionId), at, data, ...matches],
        ),
      );
      if (rows.length === 0) throw new StoreError("unknown-parent", `session ${sessionId} does not exist`);
    },
    checks: (scopeId, sessionId) =>
      records(
        database,
        "SELECT data FROM vivavoce.checks WHERE scope = $1 AND session = $2 ORDER BY position",
        rowKey(scopeId, sessionId),
      ),
    recentChecks: (scopeId, limit) =>
      records(database, "SELECT data FROM vivavoce.checks WHERE scope = $1 ORDER BY at DESC, position DESC LIMIT $2", [
        keyOf(scopeId),
        Math.max(0, limit),
      ]),
  };
}

/** `from` provides the scope; the parameter is the audio model. Without one there is nothing to erase with the prints. */
const insertMatches = (from: string, audioModel: number): string =>
  `INSERT INTO vivavoce.matches (scope, profile, audio_model)
   SELECT scope, prints.id, $${audioModel} FROM ${from}, prints WHERE $${audioModel} <> '' ON CONFLICT DO NOTHING`;

async function stop(
  database: Database,
  table: "engagements" | "sessions",
  scopeId: string,
  id: string,
  at: number,
): Promise<boolean> {
  const rows = await database.query(
    `UPDATE vivavoce.${table} SET stopped_at = $3 WHERE scope = $1 AND id = $2 AND stopped_at IS NULL RETURNING 1`,
    [...rowKey(scopeId, id), at],
  );
  return rows.length > 0;
}

/** Engagements or sessions: `from` is the table and which of its rows. The time when one was stopped is in a column next to its data. */
async function select<T>(database: Database, from: string, values: readonly unknown[]): Promise<T[]> {
  const rows = await database.query<{ data: string; stopped_at: number | null }>(
    `SELECT data, stopped_at FROM vivavoce.${from}`,
    values,
  );
  return rows.map(({ data, stopped_at }) => ({ ...JSON.parse(data), stoppedAt: stopped_at }));
}
