/** Engagements, sessions and their checks. */
import { StoreError } from "../errors.js";
import type { Id, Session, Store } from "../port.js";
import type { RecordContext } from "./context.js";
import { addProcessed } from "./recordings.js";
import { inStoreWords, keysBetween, type StoreDatabase, type StoredSession, tableOf, within } from "./tables.js";

export function createEngagements({ db }: RecordContext): Store["engagements"] {
  return {
    async create(engagement) {
      await inStoreWords(engagement.id, db.add("engagements", engagement));
    },
    async get(scopeId, id) {
      return (await db.get("engagements", [scopeId, id])) ?? null;
    },
    stop: (...which) => stop(db, "engagements", ...which),
  };
}

export function createSessions(context: RecordContext): Store["sessions"] {
  const { db } = context;
  return {
    async create(session) {
      const write = db.transact(["engagements", "sessions"], async ({ engagements, sessions }) => {
        const known = await engagements.getKey([session.scopeId, session.engagementId]);
        if (!known) throw new StoreError("unknown-parent", `engagement ${session.engagementId} does not exist`);
        await sessions.add({ ...session, mediaKey: null, modelKey: null });
      });
      await inStoreWords(session.id, write);
    },
    async get(scopeId, id) {
      const session = await db.get("sessions", [scopeId, id]);
      return session ? plainSession(session) : null;
    },
    stop: (...which) => stop(db, "sessions", ...which),
    async capTimes(now) {
      await db.transact(["sessions"], async ({ sessions }) => {
        for (const session of await sessions.getAll()) {
          const { startedAt, stoppedAt } = session;
          if (Math.max(startedAt, stoppedAt ?? startedAt) <= now) continue;
          const capped = { startedAt: Math.min(startedAt, now), stoppedAt: stoppedAt && Math.min(stoppedAt, now) };
          await sessions.put({ ...session, ...capped });
        }
      });
    },
    async ofEngagement(scopeId, engagementId) {
      const sessions = await db.getAllFromIndex("sessions", "engagement", [scopeId, engagementId]);
      return sessions.map(plainSession).sort((a, b) => a.startedAt - b.startedAt);
    },
    async list(scopeId, before, limit) {
      const range = before === null ? within(scopeId) : keysBetween([scopeId], [scopeId, before], false, true);
      return (await db.last("sessions", range, limit)).map(plainSession);
    },
    async addCheck(check, analyzed) {
      if (analyzed) return addProcessed(context, analyzed, check.matchedProfileIds ?? [], check);
      const write = db.transact(["sessions", "checks"], async ({ sessions, checks }) => {
        const known = await sessions.getKey([check.scopeId, check.sessionId]);
        if (!known) throw new StoreError("unknown-parent", `session ${check.sessionId} does not exist`);
        await checks.add(check);
      });
      await inStoreWords(check.id, write);
    },
    checks: (scopeId, sessionId) => db.getAllFromIndex("checks", "session", [scopeId, sessionId]),
    async recentChecks(scopeId, limit) {
      const checks = (await db.getAll("checks")).filter((check) => check.scopeId === scopeId);
      return checks
        .reverse()
        .sort((a, b) => b.at - a.at)
        .slice(0, Math.max(0, limit));
    },
  };
}

const stop = (db: StoreDatabase, name: "engagements" | "sessions", scopeId: Id, id: Id, at: number) =>
  db.transact([name], async (tables) => {
    const table = tableOf<typeof name>(tables, name);
    const found = await table.get([scopeId, id]);
    if (found?.stoppedAt !== null) return false;
    await table.put({ ...found, stoppedAt: at });
    return true;
  });

function plainSession({ mediaKey: _, modelKey: __, ...session }: StoredSession): Session {
  return session;
}
