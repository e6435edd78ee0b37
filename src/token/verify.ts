import { readFile } from "node:fs/promises";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from "jose";
import { type Clock, checkedClock, systemClock } from "./clock.js";
import { OAuthError } from "./errors.js";
import type { IssuedToken } from "./revocations.js";

/** Where an issuer's public keys come from: a function, the keys themselves, a URL (`https://…`, `http://…`) or a file (path or `file:` URL). */
export type KeySource = JSONWebKeySet | URL | string | ((fresh?: boolean) => Promise<JSONWebKeySet>);

/** An issuer whose tokens are accepted. */
export interface TrustedIssuer {
  /** Compared with `iss` exactly. */
  readonly issuer: string;
  readonly keys: KeySource;
  readonly audience: string | readonly string[];
  /** Accepted signature algorithms; the token cannot choose. Default: ES256, RS256, PS256, EdDSA. Symmetric ones and `none` are refused. */
  readonly algorithms?: readonly string[];
  /** The claim with the biometric scope ids: an array, or a string with spaces. Default `gk_scopes`. */
  readonly gkScopesClaim?: string;
  /** The claim with the scopes. Default `scope`, else `scp`. */
  readonly scopeClaim?: string;
  /** Required `typ` of the header, such as `at+jwt` for our own tokens. Default: not checked. */
  readonly type?: string;
  /** Allowed difference between our clock and this issuer's, if it differs from the verifier's setting; at most 300. */
  readonly clockSkewS?: number;
  /** Whether a token was revoked before it expired; asked with every call. */
  readonly isRevoked?: (token: IssuedToken) => Promise<boolean> | boolean;
}

/** Trusted issuers and settings of a verifier. */
export interface VerifierOptions {
  readonly issuers: readonly TrustedIssuer[];
  readonly clock?: Clock;
  /** Allowed difference between our clock and the issuer's; at most 300. */
  readonly clockSkewS?: number;
  /** The name in `WWW-Authenticate`. */
  readonly realm?: string;
}

/** The contents of a verified token. */
export interface VerifiedToken {
  readonly issuer: string;
  readonly subject: string;
  readonly clientId: string;
  readonly scopes: ReadonlySet<string>;
  /** Biometric scope ids that the token opens; if empty, it opens none. */
  readonly gkScopes: ReadonlySet<string>;
  /** Epoch seconds. */
  readonly expiresAt: number;
  readonly jti: string | null;
  /** The key that signed it; `null` if the token names none. */
  readonly keyId: string | null;
  readonly claims: JWTPayload;
}

/** Checks tokens offline, with the public keys of their issuers. */
export interface Verifier {
  /** Checks a token and, if given, that it has `scope`. Throws `OAuthError` with the status, body and `WWW-Authenticate` header to send. */
  verify(token: string, scope?: string): Promise<VerifiedToken>;
  /** The same for the value of an `Authorization` header. */
  authorize(header: string | null | undefined, scope?: string): Promise<VerifiedToken>;
  /** Whether a token that was verified earlier has been revoked since, even if it has also expired. */
  isRevoked(token: VerifiedToken): Promise<boolean>;
}

const ALGORITHMS = ["ES256", "RS256", "PS256", "EdDSA", "Ed25519"];
const SIGNATURES = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/;
const DEFAULT_SKEW_S = 30;
const LONGEST_SKEW_S = 300;
/** A token normally has a few hundred bytes. */
const LONGEST_TOKEN = 16_384;
const RELOAD_FILE_AFTER_MS = 10_000;
/** How long a verified token is accepted without another signature check, and how many tokens are remembered. */
const REMEMBER_MS = 60_000;
const REMEMBERED = 2_000;

/** The error response of a protected resource (RFC 6750 §3). */
export function bearerError(
  code: "invalid_request" | "invalid_token" | "insufficient_scope" | "access_denied",
  description: string,
  { realm = "vivavoce", scope }: { realm?: string; scope?: string } = {},
): OAuthError {
  const error = new OAuthError(code, description);
  const parts = [`realm="${realm}"`, `error="${code}"`, `error_description="${error.message}"`];
  if (scope) parts.push(`scope="${scope}"`);
  return new OAuthError(code, description, { headers: { "WWW-Authenticate": `Bearer ${parts.join(", ")}` } });
}

/** Without credentials the challenge has no error code (RFC 6750 §3.1). */
const missingToken = (realm: string, scope?: string): OAuthError =>
  new OAuthError("invalid_token", "an access token is required", {
    headers: { "WWW-Authenticate": `Bearer realm="${realm}"${scope ? `, scope="${scope}"` : ""}` },
  });

/** The keys of an issuer; `version` changes whenever the keys do. */
interface IssuerKeys {
  readonly get: JWTVerifyGetKey;
  version(): Promise<unknown>;
}

/** Keys from this process or from a file: read again when a token names an unknown key. */
function reloading(load: (fresh: boolean) => Promise<JSONWebKeySet>, clock: Clock): IssuerKeys {
  interface Loaded {
    readonly get: JWTVerifyGetKey;
    readonly text: string;
  }
  let current: Loaded | null = null;
  let loadedAt = Number.NEGATIVE_INFINITY;
  let loading: Promise<Loaded> | null = null;

  const reload = (fresh: boolean): Promise<Loaded> => {
    loading ??= load(fresh)
      .then((set) => {
        // Imported keys are cached per set, so an unchanged set is kept.
        const text = JSON.stringify(set);
        if (current?.text !== text) current = { get: createLocalJWKSet(set), text };
        loadedAt = clock.now();
        return current;
      })
      .finally(() => {
        loading = null;
      });
    return loading;
  };

  const age = (): number => clock.now() - loadedAt;
  const recent = (): Loaded | null => (age() >= 0 && age() <= RELOAD_FILE_AFTER_MS ? current : null);
  const known = async (): Promise<Loaded> => recent() ?? reload(false);

  return {
    async get(header, token) {
      const loadedBefore = recent() !== null;
      const { get } = await known();
      try {
        return await get(header, token);
      } catch (error) {
        // Many forged key ids must not cause many reads.
        if (loadedBefore && age() < 1000) throw error;
        return (await reload(true)).get(header, token);
      }
    },
    version: known,
  };
}

const UNREACHABLE_MS = 5_000;

/**
 * The library fetches the keys again when it next checks a signature. After a failed fetch the issuer is not asked for a few seconds:
 * anybody can send tokens in its name, and each would cost a fetch.
 */
function untilFailed(get: JWTVerifyGetKey, clock: Clock): JWTVerifyGetKey {
  let failed: { readonly error: unknown; readonly at: number } | null = null;
  return async (header, token) => {
    const age = failed ? clock.now() - failed.at : Number.POSITIVE_INFINITY;
    if (failed && age >= 0 && age < UNREACHABLE_MS) throw failed.error;
    try {
      const key = await get(header, token);
      failed = null;
      return key;
    } catch (error) {
      // If the token is at fault (an unknown key, or none named where several fit), the keys were read.
      if (refusal(error) === null) failed = { error, at: clock.now() };
      throw error;
    }
  };
}

function keysOf(source: KeySource, clock: Clock): IssuerKeys {
  if (typeof source === "function") return reloading((fresh) => source(fresh), clock);
  if (typeof source === "object" && "keys" in source)
    return { get: createLocalJWKSet(source), version: async () => source };
  const text = String(source);
  if (/^https?:/.test(text)) {
    const get = createRemoteJWKSet(new URL(text), {
      cooldownDuration: 30_000,
      cacheMaxAge: 600_000,
      timeoutDuration: 5_000,
    });
    return { get: untilFailed(get, clock), version: async () => get };
  }
  const file = text.startsWith("file:") ? new URL(text) : text;
  return reloading(async () => JSON.parse(await readFile(file, "utf8")) as JSONWebKeySet, clock);
}

const words = (value: unknown): Set<string> => {
  if (typeof value === "string") return new Set(value.split(" ").filter((word) => word !== ""));
  if (Array.isArray(value))
    return new Set(value.filter((word): word is string => typeof word === "string" && word !== ""));
  return new Set();
};

/** Why a token is refused, in words that help its holder but tell a forger nothing new. */
function refusal(error: unknown): string | null {
  if (error instanceof errors.JWTExpired) return "Access Token Expired";
  if (error instanceof errors.JWTClaimValidationFailed) return `the token's ${error.claim} is not accepted here`;
  if (error instanceof errors.JOSEAlgNotAllowed) return "the token's algorithm is not accepted here";
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return "the token's key is unknown";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the token's signature is wrong";
  if (
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JOSENotSupported
  )
    return "the token is malformed";
  return null;
}

/** Verifies access tokens offline: the issuer is asked only for its keys, and seldom. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { issuers, clockSkewS = DEFAULT_SKEW_S, realm = "vivavoce" } = options;
  const clock = checkedClock(options.clock ?? systemClock);
  if (issuers.length === 0) throw new TypeError("a verifier needs at least one issuer");

  const trusted = new Map<string, { keys: IssuerKeys; algorithms: string[]; skewS: number; from: TrustedIssuer }>();
  for (const from of issuers) {
    const algorithms = [...(from.algorithms ?? ALGORITHMS)];
    const wrong = algorithms.find((algorithm) => !SIGNATURES.test(algorithm));
    if (wrong !== undefined) throw new TypeError(`algorithms must be public-key signatures, got ${wrong}`);
    if (from.audience.length === 0) throw new TypeError(`issuer ${from.issuer} must have an audience`);
    if (trusted.has(from.issuer)) throw new TypeError(`issuer ${from.issuer} is listed twice`);
    const skewS = from.clockSkewS ?? clockSkewS;
    if (!(skewS >= 0 && skewS <= LONGEST_SKEW_S))
      throw new RangeError(`clockSkewS must be 0 to ${LONGEST_SKEW_S}, got ${skewS}`);
    trusted.set(from.issuer, { keys: keysOf(from.keys, clock), algorithms, skewS, from });
  }

  const refuse = (description: string): never => {
    throw bearerError("invalid_token", description, { realm });
  };

  /** A client sends the same token with every call, so a token verified recently skips the signature check while its key is valid. */
  const remembered = new Map<string, { verified: VerifiedToken; keys: IssuerKeys; version: unknown; until: number }>();

  async function recall(token: string): Promise<VerifiedToken | null> {
    const entry = remembered.get(token);
    if (!entry) return null;
    const left = entry.until - clock.now();
    const version = await entry.keys.version().catch(() => null);
    if (left > 0 && left <= REMEMBER_MS && version === entry.version) return entry.verified;
    remembered.delete(token);
    return null;
  }

  async function remember(token: string, verified: VerifiedToken, keys: IssuerKeys, skewS: number): Promise<void> {
    const until = Math.min(clock.now() + REMEMBER_MS, (verified.expiresAt + skewS) * 1000);
    remembered.set(token, { verified, keys, version: await keys.version(), until });
    if (remembered.size > REMEMBERED) remembered.delete(remembered.keys().next().value as string);
  }

  async function isRevoked(verified: VerifiedToken): Promise<boolean> {
    const { from } = trusted.get(verified.issuer)!;
    return (await from.isRevoked?.({ ...verified, issuedAt: Number(verified.claims.iat ?? 0) })) ?? false;
  }

  async function verify(token: string, scope?: string): Promise<VerifiedToken> {
    const verified = (await recall(token)) ?? (await verifySignature(token));
    if (await isRevoked(verified)) refuse("the token was revoked");
    if (scope !== undefined && !verified.scopes.has(scope))
      throw bearerError("insufficient_scope", `the token needs the scope ${scope}`, { realm, scope });
    return verified;
  }

  async function verifySignature(token: string): Promise<VerifiedToken> {
    if (token.length > LONGEST_TOKEN) refuse("the token is malformed");
    let named: string | undefined;
    try {
      named = decodeJwt(token).iss;
    } catch {
      refuse("the token is malformed");
    }
    const issuer = trusted.get(named ?? "") ?? refuse("the token's issuer is not trusted here");
    const { from, skewS } = issuer;
    let payload: JWTPayload;
    let keyId: string | null;
    try {
      const checked = await jwtVerify(token, issuer.keys.get, {
        issuer: from.issuer,
        audience: from.audience as string | string[],
        algorithms: issuer.algorithms,
        clockTolerance: skewS,
        currentDate: new Date(clock.now()),
        requiredClaims: ["exp"],
        ...(from.type === undefined ? {} : { typ: from.type }),
      });
      payload = checked.payload;
      keyId = checked.protectedHeader.kid ?? null;
    } catch (error) {
      const why = refusal(error);
      if (why !== null) return refuse(why);
      // The keys could not be read, which is not the token's fault.
      throw new OAuthError("server_error", "the keys of the token's issuer cannot be fetched; try again later", {
        status: 503,
        headers: { "Retry-After": "5" },
        cause: error,
      });
    }
    if (payload.iat !== undefined && payload.iat > clock.now() / 1000 + skewS)
      refuse("the token's iat is in the future; check the clocks of its issuer and of this machine");
    for (const claim of ["sub", "jti"])
      if (!["string", "undefined"].includes(typeof payload[claim])) refuse(`the token's ${claim} must be a string`);
    const scopes = words(payload[from.scopeClaim ?? (payload.scope === undefined ? "scp" : "scope")]);
    const verified: VerifiedToken = {
      issuer: from.issuer,
      subject: payload.sub ?? "",
      clientId:
        typeof payload.client_id === "string"
          ? payload.client_id
          : typeof payload.azp === "string"
            ? payload.azp
            : (payload.sub ?? ""),
      scopes,
      gkScopes: words(payload[from.gkScopesClaim ?? "gk_scopes"]),
      expiresAt: payload.exp as number,
      jti: payload.jti ?? null,
      keyId,
      claims: payload,
    };
    await remember(token, verified, issuer.keys, skewS);
    return verified;
  }

  return {
    verify,
    isRevoked,
    async authorize(header, scope) {
      // An Authorization header without a token counts as a missing header.
      if (!header || /^bearer *$/i.test(header)) throw missingToken(realm, scope);
      const match = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(header);
      if (!match) {
        if (/^bearer\b/i.test(header))
          throw bearerError(
            "invalid_request",
            "the token in the Authorization header has characters that are not allowed",
            { realm },
          );
        throw missingToken(realm, scope);
      }
      return verify(match[1] as string, scope);
    },
  };
}
