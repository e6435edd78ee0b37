import { SignJWT } from "jose";
import { v7 as uuidv7 } from "uuid";
import { type Clock, epochSeconds, type Random } from "./clock.js";
import type { Keyring } from "./keyring.js";

/** One audience for each service: none accepts another's tokens. */
export interface Audiences {
  readonly runtime: string;
  readonly tooling: string;
  readonly engagement: string;
}

/** The default audiences. Each service refuses the tokens of the others. */
export const AUDIENCES: Audiences = {
  runtime: "vivavoce:runtime",
  tooling: "vivavoce:tooling",
  engagement: "vivavoce:engagement",
};

/** Seconds. */
export const LIFETIMES = { runtime: 900, tooling: 3600, engagement: 3600 } as const;

export interface TokenRequest {
  readonly audience: keyof Audiences;
  readonly subject: string;
  readonly clientId: string;
  readonly scope: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Seconds: when the client's rights were read, or earlier. What ends them afterwards ends the token too. Default: now. */
  readonly issuedAt?: number;
}

export interface AccessToken {
  readonly token: string;
  readonly jti: string;
  readonly expiresIn: number;
}

export type IssueToken = (request: TokenRequest) => Promise<AccessToken>;

export const newId = (clock: Clock, random: Random): string => uuidv7({ msecs: clock.now(), random: random.bytes(16) });

/** Signs access tokens in the JWT profile of RFC 9068. */
export function createIssuer(options: {
  issuer: string;
  audiences: Audiences;
  keyring: Keyring;
  clock: Clock;
  random: Random;
}): IssueToken {
  const { issuer, audiences, keyring, clock, random } = options;
  return async ({ audience, subject, clientId, scope, claims = {}, issuedAt = epochSeconds(clock) }) => {
    const { kid, algorithm, key } = await keyring.signer();
    const expiresIn = LIFETIMES[audience];
    const jti = newId(clock, random);
    const token = await new SignJWT({ ...claims, client_id: clientId, scope })
      .setProtectedHeader({ alg: algorithm, kid, typ: "at+jwt" })
      .setIssuer(issuer)
      .setAudience(audiences[audience])
      .setSubject(subject)
      .setJti(jti)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + expiresIn)
      .sign(key);
    return { token, jti, expiresIn };
  };
}
