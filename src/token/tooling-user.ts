import { grantStands } from "./grants.js";
import { PLATFORM_SCOPE } from "./scopes.js";
import type { TokenService } from "./service.js";
import type { User } from "./users.js";
import { bearerError, type VerifiedToken } from "./verify.js";

/** The current user behind the token in an `Authorization` header; throws `OAuthError` if the token is not, or no longer, valid. */
export type ToolingUser = (authorization: string | null | undefined) => Promise<User>;

type Service = Pick<TokenService, "tooling" | "userOf" | "documents">;

/**
 * The current user behind a tooling token. `null`, even before the token expires, if its code was used twice, its credential was deleted,
 * its user was disabled, or the password was set again.
 */
export async function userOfToken(service: Service, token: VerifiedToken): Promise<User | null> {
  const user = await service.userOf(token.clientId, token.subject);
  if (!user) return null;
  const { grant_id: grantId, password_set_at: passwordSetAt } = token.claims;
  // A new password ends grants. Tokens of a service account have no grant; they name the password that was valid then.
  const stands =
    grantId === undefined
      ? passwordSetAt === user.passwordSetAt
      : typeof grantId === "string" && (await grantStands(service.documents, grantId));
  return stands ? user : null;
}

export function createToolingUser(service: Service): ToolingUser {
  return async (authorization) => {
    const user = await userOfToken(service, await service.tooling.authorize(authorization, PLATFORM_SCOPE));
    if (!user) throw bearerError("invalid_token", "the token was revoked");
    return user;
  };
}
