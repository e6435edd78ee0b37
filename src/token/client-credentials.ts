import type { Audiences, IssueToken } from "./access-token.js";
import type { Applications, AuthenticatedClient } from "./applications.js";
import { type Audit, loggableClientId } from "./audit.js";
import { BASIC_CHALLENGE, type ClientPassword } from "./basic.js";
import { type Clock, epochSeconds } from "./clock.js";
import { isProfileClientId, type ProfileCredentials } from "./credentials.js";
import { OAuthError } from "./errors.js";
import type { Revocations } from "./revocations.js";
import { isRuntimeScope, PLATFORM_SCOPE, parseScope } from "./scopes.js";
import type { Throttle } from "./throttle.js";

/** The response of the runtime token endpoint, with the contract's fields. */
export interface TokenResponse {
  readonly access_token: string;
  readonly expires_in: number;
  readonly scope: string;
  readonly token_type: "bearer";
}

/** Who asks for an access token, and for what. */
export interface ClientCredentialsRequest {
  readonly client: ClientPassword;
  readonly scope: string | null;
  readonly address: string;
}

/**
 * Checks a secret behind the throttle and reports the outcome to it. `countFirst` is for people, who type one password at a time;
 * a program may ask for several tokens at once.
 */
export async function throttled<T>(
  throttle: Throttle,
  client: string,
  address: string,
  check: () => Promise<T | null>,
  options: { countFirst?: boolean } = {},
): Promise<T | null> {
  const attempt = await throttle.attempt(client, address, options);
  const found = await check();
  await (found === null ? attempt.failed() : attempt.succeeded());
  return found;
}

/** The client of this id and secret; a wrong secret is counted, reported and refused. */
export async function knownClient<T>(
  { clientThrottle, audit }: { clientThrottle: Throttle; audit: Audit },
  audience: keyof Audiences,
  { clientId, secret }: ClientPassword,
  address: string,
  authenticate: (clientId: string, secret: string) => Promise<T | null>,
): Promise<T> {
  const known = await throttled(clientThrottle, clientId, address, () => authenticate(clientId, secret));
  if (known !== null) return known;
  audit({ event: "client-refused", audience, clientId: loggableClientId(clientId), address });
  throw new OAuthError("invalid_client", "the client is unknown or its secret is wrong", {
    headers: { "WWW-Authenticate": BASIC_CHALLENGE },
  });
}

/** The scopes to grant: all that were asked for, or an error that names the first one not allowed. */
function runtimeScope(client: AuthenticatedClient, asked: readonly string[]): string {
  for (const scope of asked) {
    if (!isRuntimeScope(scope) || !client.scopes.includes(scope))
      throw new OAuthError("invalid_scope", `this client may not request the scope ${scope}`);
    if (scope === "bio" && client.gkScopes.length === 0)
      throw new OAuthError(
        "invalid_scope",
        "this client is not bound to a biometric scope; bind it with vivavoce token client bind",
      );
  }
  return asked.join(" ");
}

/** `client_credentials` for runtime clients (their scopes) and service accounts (`platform-api`). */
export function createClientCredentialsGrant(options: {
  applications: Applications;
  credentials: ProfileCredentials;
  issue: IssueToken;
  revocations: Revocations;
  clientThrottle: Throttle;
  audit: Audit;
  clock: Clock;
}): (request: ClientCredentialsRequest) => Promise<TokenResponse> {
  const { applications, credentials, issue, revocations, audit, clock } = options;

  async function runtime(
    { client, scope, address }: ClientCredentialsRequest,
    issuedAt: number,
  ): Promise<Parameters<IssueToken>[0]> {
    const known = await knownClient(options, "runtime", client, address, applications.authenticate);
    const granted = runtimeScope(known, askedScopes(scope));
    const bio = granted.split(" ").includes("bio");
    const gkScopes = new Set(bio ? known.gkScopes : []);
    // It would be refused as long as it lives: for example, the client was unbound and bound again in this second.
    if (await revocations.isRevoked({ jti: null, clientId: known.id, gkScopes, issuedAt }))
      throw new OAuthError("temporarily_unavailable", "the tokens of this client were just ended; try again", {
        status: 503,
        headers: { "Retry-After": "1" },
      });
    return {
      audience: "runtime",
      subject: known.id,
      clientId: known.id,
      scope: granted,
      claims: { app_id: known.applicationId, ...(bio && { gk_scopes: known.gkScopes }) },
    };
  }

  async function tooling({ client, scope, address }: ClientCredentialsRequest): Promise<Parameters<IssueToken>[0]> {
    const known = await knownClient(options, "tooling", client, address, credentials.authenticate);
    if (known.credential.kind !== "service")
      throw new OAuthError(
        "unauthorized_client",
        "this credential is for authorization code, not for client credentials",
      );
    const other = askedScopes(scope).find((asked) => asked !== PLATFORM_SCOPE);
    if (other !== undefined) throw new OAuthError("invalid_scope", `this client may not request the scope ${other}`);
    return {
      audience: "tooling",
      subject: known.user.id,
      clientId: known.credential.clientId,
      scope: PLATFORM_SCOPE,
      claims: { password_set_at: known.user.passwordSetAt },
    };
  }

  const askedScopes = (scope: string | null): string[] => parseScope(scope ?? "");

  return async (request) => {
    const issuedAt = epochSeconds(clock);
    const wanted = isProfileClientId(request.client.clientId)
      ? await tooling(request)
      : await runtime(request, issuedAt);
    const { token, jti, expiresIn } = await issue({ ...wanted, issuedAt });
    audit({
      event: "token-issued",
      audience: wanted.audience,
      clientId: wanted.clientId,
      scope: wanted.scope,
      jti,
      address: request.address,
    });
    return { access_token: token, expires_in: expiresIn, scope: wanted.scope, token_type: "bearer" };
  };
}
