import { PLATFORM_SCOPE } from "./scopes.js";
import type { TokenService } from "./service.js";
import type { User } from "./users.js";
import { bearerError } from "./verify.js";

/** Whom the token in an `Authorization` header speaks for, as they are now; throws `OAuthError` when it opens nothing (any more). */
export type ToolingUser = (authorization: string | null | undefined) => Promise<User>;

export function createToolingUser(
  service: Pick<TokenService, "tooling" | "userOf">,
  grantStands: (grantId: string) => Promise<boolean>,
): ToolingUser {
  return async (authorization) => {
    const token = await service.tooling.authorize(authorization, PLATFORM_SCOPE);
    const { grant_id: grantId } = token.claims;
    // A code that was used twice, a deleted credential, a disabled user: none waits for the token's end.
    const stands = grantId === undefined || (typeof grantId === "string" && (await grantStands(grantId)));
    const user = stands ? await service.userOf(token.clientId, token.subject) : null;
    if (!user) throw bearerError("invalid_token", "the token was revoked");
    return user;
  };
}
