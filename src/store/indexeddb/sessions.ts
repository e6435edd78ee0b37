/** Engagements, sessions and their checks. */
import { StoreError } from "../errors.js";
import type { Session, Store } from "../port.js";
import type { IdbContext } from "./context.js";
import { addProcessed } from "./recordings.js";
import { inStoreWords, type StoredSession, within } from "./schema.js";

export function createEngagements({ db }: IdbContext): Store["engagements"] {
  return {
    async create(engagement) {
      await inStoreWords(engagement.id, db.add("engagements", engagement));
    },
    async get(scopeId, id) {
      return (await db.get("engagements", [scopeId, id])) ?? null;
    },
    async stop(scopeId, id, at) {
      const tx = db.transaction("engagements", "readwrite");
      const engagement = await tx.store.get([scopeId, id]);
      const stops = engagement?.stoppedAt === null;
      if (stops) await tx.store.put({ ...engagement, stoppedAt: at });
      await tx.done;
      return stops;
    },
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
    async stop(scopeId, id, at) {
      const tx = db.transaction("sessions", "readwrite");
      const session = await tx.store.get([scopeId, id]);
      const stops = session?.stoppedAt === null;
      if (stops) await tx.store.put({ ...session, stoppedAt: at });
      await tx.done;
      return stops;
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
    async addCheck(check, heard) {
      if (heard) return addProcessed(context, heard, check);
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

function plainSession({ mediaKey: _, modelKey: __, ...session }: StoredSession): Session {
  return session;
}
