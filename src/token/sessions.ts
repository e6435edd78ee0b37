import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock, Random } from "./clock.js";
import { collection, type Documents } from "./documents.js";
import type { User, Users } from "./users.js";

interface StoredSession {
  readonly userName: string;
  readonly userId: string;
  readonly formToken: string;
  /** Of the user, at the time of the sign-in. */
  readonly passwordSetAt: number;
}

/** A signed-in browser. */
export interface BrowserSession {
  readonly user: User;
  /** Included in every form shown to this browser, and must be sent back with it. */
  readonly formToken: string;
}

const LIFETIME_MS = 8 * 3_600_000;

export const sameText = (a: string, b: string): boolean => {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
};

/** Sessions are stored under a digest of their cookie, so reading the store does not give access to them. */
export function createBrowserSessions(options: { documents: Documents; clock: Clock; random: Random; users: Users }) {
  const { clock, random, users } = options;
  const sessions = collection<StoredSession>(options.documents, "token.sessions");
  const nonce = (): string => Buffer.from(random.bytes(32)).toString("base64url");
  const keyOf = (cookie: string): string => createHash("sha256").update(cookie).digest("base64url");

  return {
    /** Returns the value of the cookie. */
    async start(user: User): Promise<{ cookie: string; expiresAt: number }> {
      const cookie = nonce();
      const { name: userName, id: userId, passwordSetAt } = user;
      const expiresAt = clock.now() + LIFETIME_MS;
      const session: StoredSession = { userName, userId, formToken: nonce(), passwordSetAt };
      await sessions.insert(keyOf(cookie), session, expiresAt);
      return { cookie, expiresAt };
    },

    async find(cookie: string | undefined): Promise<BrowserSession | null> {
      const session = cookie ? await sessions.get(keyOf(cookie)) : null;
      if (!session) return null;
      const user = await users.find(session.userName, session.userId);
      const valid = user && !user.disabled && session.passwordSetAt === user.passwordSetAt;
      return valid ? { user, formToken: session.formToken } : null;
    },

    async end(cookie: string): Promise<void> {
      await sessions.delete(keyOf(cookie));
    },
  };
}
