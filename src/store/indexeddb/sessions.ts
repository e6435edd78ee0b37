/** Engagements, sessions and their checks. */
import { StoreError } from "../errors.js";
import { cappedAt, type Id, type Session, type Store } from "../port.js";
import type { IdbContext } from "./context.js";
import { addProcessed } from "./recordings.js";
import { inStoreWords, type StoreDatabase, type StoredSession, within } from "./schema.js";

export function createEngagements({ db }: IdbContext): Store["engagements"] {
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

export function createSessions(context: IdbContext): Store["sessions"] {
  const { db } = context;
  return {
    async create(session) {
      const tx = db.transaction(["engagements", "sessions"], "readwrite");
      const known = await tx.objectStore("engagements").getKey([session.scopeId, session.engagementId]);
      if (!known) throw new StoreError("unknown-parent", `engagement ${session.engagementId} does not exist`);
      const stored: StoredSession = { ...session, mediaKey: null, modelKey: null };
      await inStoreWords(session.id, Promise.all([tx.objectStore("sessions").add(stored), tx.done]));
    },
    async get(scopeId, id) {
      const session = await db.get("sessions", [scopeId, id]);
      return session ? plainSession(session) : null;
    },
    stop: (...which) => stop(db, "sessions", ...which),
    async capTimes(now) {
      const tx = db.transaction("sessions", "readwrite");
      for await (const cursor of tx.store) {
        const session = cursor.value;
        if (Math.max(session.startedAt, session.stoppedAt ?? session.startedAt) > now)
          await cursor.update(cappedAt(session, now));
      }
      await tx.done;
    },
    async ofEngagement(scopeId, engagementId) {
      const sessions = await db.getAllFromIndex("sessions", "engagement", [scopeId, engagementId]);
      return sessions.map(plainSession).sort((a, b) => a.startedAt - b.startedAt);
    },
    async list(scopeId, before, limit) {
      const range = before === null ? within(scopeId) : IDBKeyRange.bound([scopeId], [scopeId, before], false, true);
      const found: Session[] = [];
      let cursor = limit > 0 ? await db.transaction("sessions").store.openCursor(range, "prev") : null;
      while (cursor && found.length < limit) {
        found.push(plainSession(cursor.value));
        cursor = await cursor.continue();
      }
      return found;
    },
    async addCheck(check, analyzed) {
      if (analyzed) return addProcessed(context, analyzed, check.matchedProfileIds ?? [], check);
      const tx = db.transaction(["sessions", "checks"], "readwrite");
      const known = await tx.objectStore("sessions").getKey([check.scopeId, check.sessionId]);
      if (!known) throw new StoreError("unknown-parent", `session ${check.sessionId} does not exist`);
      await inStoreWords(check.id, Promise.all([tx.objectStore("checks").add(check), tx.done]));
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

async function stop(db: StoreDatabase, store: "engagements" | "sessions", scopeId: Id, id: Id, at: number) {
  const tx = db.transaction(store, "readwrite");
  const found = await tx.store.get([scopeId, id]);
  const stops = found?.stoppedAt === null;
  if (stops) await tx.store.put({ ...found, stoppedAt: at } as StoredSession);
  await tx.done;
  return stops;
}

function plainSession({ mediaKey: _, modelKey: __, ...session }: StoredSession): Session {
  return session;
}
