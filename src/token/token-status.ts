/** Token introspection (RFC 7662) and revocation (RFC 7009). */
import type { KnownClient } from "./client-authentication.js";
import { OAuthError } from "./errors.js";
import type { TokenService } from "./service.js";
import { userOfToken } from "./tooling-user.js";
import type { VerifiedToken, Verifier } from "./verify.js";

type Service = Pick<TokenService, "runtime" | "tooling" | "revocations" | "userOf" | "documents">;

/** Our own token if it is valid now, else `null`. */
async function validToken(service: Service, token: string): Promise<VerifiedToken | null> {
  const runtime = await verified(service.runtime, token);
  if (runtime) return runtime;
  const tooling = await verified(service.tooling, token);
  return tooling && (await userOfToken(service, tooling)) ? tooling : null;
}

async function verified(verifier: Verifier, token: string): Promise<VerifiedToken | null> {
  try {
    return await verifier.verify(token);
  } catch (error) {
    if (!(error instanceof OAuthError) || error.status >= 500) throw error;
    return null;
  }
}

const owns = (client: KnownClient, token: VerifiedToken): boolean =>
  token.clientId === client.clientId || (client.applicationId !== null && token.claims.app_id === client.applicationId);

/** A token of another client is reported as inactive, so that nothing is revealed about it. */
export async function introspect(service: Service, client: KnownClient, token: string): Promise<object> {
  const found = await validToken(service, token);
  if (!found || !owns(client, found)) return { active: false };
  const { aud, exp, gk_scopes, iat, iss, jti, scope, sub } = found.claims;
  return {
    active: true,
    token_type: "bearer",
    client_id: found.clientId,
    scope,
    sub,
    aud,
    iss,
    exp,
    iat,
    jti,
    gk_scopes,
  };
}

/** Revoking a token that is no longer valid is not an error (RFC 7009). */
export async function revoke(service: Service, client: KnownClient, token: string): Promise<void> {
  const found = await validToken(service, token);
  if (!found) return;
  if (!owns(client, found)) throw new OAuthError("unauthorized_client", "the token was issued to another client");
  await service.revocations.revoke(found, found.expiresAt);
}
