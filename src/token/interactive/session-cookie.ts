import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { TokenService } from "../service.js";
import type { BrowserSession } from "../sessions.js";
import type { User } from "../users.js";

const SESSION_COOKIE = "vivavoce_session";

type Service = Pick<TokenService, "issuer" | "sessions">;

export const cookieOptions = ({ issuer }: Pick<TokenService, "issuer">) =>
  ({ path: "/", httpOnly: true, secure: issuer.startsWith("https:"), sameSite: "Lax" }) as const;

export const sessionOf = (c: Context, { sessions }: Service): Promise<BrowserSession | null> =>
  sessions.find(getCookie(c, SESSION_COOKIE));

/** Starts a session and ends the one that the browser had before. */
export async function startSession(c: Context, service: Service, user: User): Promise<BrowserSession> {
  await service.sessions.end(getCookie(c, SESSION_COOKIE) ?? "");
  const { cookie, expiresAt } = await service.sessions.start(user);
  setCookie(c, SESSION_COOKIE, cookie, { ...cookieOptions(service), expires: new Date(expiresAt) });
  return (await service.sessions.find(cookie))!;
}

export async function endSession(c: Context, service: Service): Promise<void> {
  await service.sessions.end(getCookie(c, SESSION_COOKIE) ?? "");
  deleteCookie(c, SESSION_COOKIE, cookieOptions(service));
}
