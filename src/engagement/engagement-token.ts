import type { IssueToken } from "../token/access-token.js";
import type { Audit } from "../token/audit.js";
import { type ClientCredentialsRequest, knownClient, type TokenResponse } from "../token/client-credentials.js";
import { OAuthError } from "../token/errors.js";
import { parseScope } from "../token/scopes.js";
import type { Throttle } from "../token/throttle.js";
import type { Registrations } from "./registrations.js";

/** The response of the engagement token endpoint, with the contract's fields. */
export interface EngagementTokenResponse extends TokenResponse {
  readonly sites: readonly string[];
  readonly jti: string;
}

/** Who asks for an engagement token, and for what: some of the scopes of the registration, or all. */
export type EngagementTokenRequest = ClientCredentialsRequest;

export function createEngagementGrant(options: {
  registrations: Registrations;
  issue: IssueToken;
  clientThrottle: Throttle;
  audit: Audit;
}): (request: EngagementTokenRequest) => Promise<EngagementTokenResponse> {
  const { registrations, issue, audit } = options;
  return async ({ client, scope, address }) => {
    const registration = await knownClient(options, "engagement", client, address, registrations.authenticate);
    const granted = scope === null ? registration.scopes : parseScope(scope);
    const other = granted.find((asked) => !registration.scopes.includes(asked));
    if (other !== undefined) throw new OAuthError("invalid_scope", `this client may not request the scope ${other}`);
    const { clientId, sites } = registration;
    const { token, jti, expiresIn } = await issue({
      audience: "engagement",
      subject: clientId,
      clientId,
      scope: granted.join(" "),
      claims: { sites },
    });
    audit({ event: "token-issued", audience: "engagement", clientId, scope: granted.join(" "), jti, address });
    return { access_token: token, token_type: "bearer", expires_in: expiresIn, scope: granted.join(" "), sites, jti };
  };
}
