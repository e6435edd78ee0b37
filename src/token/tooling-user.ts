import { issuedAtMs } from "./access-token.js";
import { grantStands } from "./grants.js";
import { PLATFORM_SCOPE } from "./scopes.js";
import type { TokenService } from "./service.js";
import type { User } from "./users.js";
import { bearerError, type VerifiedToken } from "./verify.js";

/** Whom the token in an `Authorization` header speaks for, as they are now; throws `OAuthError` when it opens nothing (any more). */
export type ToolingUser = (authorization: string | null | undefined) => Promise<User>;

type Service = Pick<TokenService, "tooling" | "userOf" | "documents">;

/**
 * The user of a tooling token as they are now. `null` for one of a code that was used twice, of a deleted credential, of a disabled user or
 * of before the password was set: none waits for the token's end.
 */
export async function userOfToken(service: Service, token: VerifiedToken): Promise<User | null> {
  const user = await service.userOf(token.clientId, token.subject);
  if (!user) return null;
  const { grant_id: grantId } = token.claims;
  // Grants end with the password. A service account has none: its tokens know to the millisecond when they were issued.
  const stands =
    grantId === undefined
      ? issuedAtMs(token.jti ?? "") >= user.passwordSetAt
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
