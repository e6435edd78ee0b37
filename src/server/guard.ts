import { StatusCode } from "../contract/index.js";
import { OAuthError, type Verifier } from "../token/index.js";
import { busy, Refusal } from "./refusal.js";

/** The caller and the biometric scopes it may access. */
export interface Caller {
  /** Client id of the token, or the network address if tokens are off. */
  readonly id: string;
  mayTouch(gkScopeId: string): boolean;
  /** Whether the caller has lost its access to this scope since. That its token has expired does not count. */
  isRevoked?(gkScopeId: string): Promise<boolean>;
}

/** Decides who may call the operations. */
export interface Guard {
  /** Throws a `Refusal` if the caller is not allowed. */
  admit(authorization: string | null, address: string): Promise<Caller>;
}

const SCOPE = "bio";

export function tokenGuard(verifier: Verifier): Guard {
  return {
    async admit(authorization) {
      try {
        const token = await verifier.authorize(authorization, SCOPE);
        return {
          id: token.clientId,
          mayTouch: (gkScopeId) => token.gkScopes.has(gkScopeId),
          // The token may have ended for the sake of another scope.
          isRevoked: (gkScopeId) => verifier.isRevoked({ ...token, gkScopes: new Set([gkScopeId]) }),
        };
      } catch (error) {
        if (error instanceof OAuthError) throw refusalOf(error);
        throw error;
      }
    },
  };
}

/** Refuses every call until the real guard is set. */
export const closedGuard: Guard = {
  async admit() {
    throw busy("the box is starting; try again in a second", 1);
  },
};

/** Admits everybody. The configuration allows it on loopback only. */
export const openGuard: Guard = {
  async admit(_, address) {
    return { id: address, mayTouch: () => true };
  },
};

function refusalOf(error: OAuthError): Refusal {
  const headers = Object.fromEntries(Object.entries(error.headers).map(([name, value]) => [name.toLowerCase(), value]));
  if (error.status === 403) return new Refusal(StatusCode.PERMISSION_DENIED, error.message, { headers });
  if (error.status >= 500)
    return new Refusal(StatusCode.BUSY, error.message, { retryAfterSeconds: 5, cause: error.cause });
  if (error.status === 400) return new Refusal(StatusCode.BAD_REQUEST, error.message, { headers });
  return new Refusal(StatusCode.NOT_AUTHORIZED, error.message, { headers });
}
