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
import { type Clock, systemClock } from "./clock.js";
import { OAuthError } from "./errors.js";
import type { IssuedToken } from "./revocations.js";

/** Where an issuer's public keys come from: in process, given, or at a URL (`https://…`, `http://…`) or in a file (a path or `file:` URL). */
export type KeySource = JSONWebKeySet | URL | string | ((fresh?: boolean) => Promise<JSONWebKeySet>);

/** An issuer whose tokens are accepted. */
export interface TrustedIssuer {
  /** Compared with `iss` exactly. */
  readonly issuer: string;
  readonly keys: KeySource;
  readonly audience: string | readonly string[];
  /** What a signature may use; a token cannot choose for itself. Default: ES256, RS256, PS256, EdDSA. Symmetric ones and `none` are refused. */
  readonly algorithms?: readonly string[];
  /** The claim with the biometric scope ids: an array, or a string with spaces. Default `gk_scopes`. */
  readonly gkScopesClaim?: string;
  /** The claim with the scopes. Default `scope`, else `scp`. */
  readonly scopeClaim?: string;
  /** The header's `typ` to insist on, as `at+jwt` for our own. Default: none. */
  readonly type?: string;
  /** Allowed between our clock and this issuer's, where it differs from the verifier's; at most 300. */
  readonly clockSkewS?: number;
  /** Whether a token ended before its time; asked with every call. */
  readonly isRevoked?: (token: IssuedToken) => Promise<boolean> | boolean;
}

/** Whose tokens are accepted, and for what. */
export interface VerifierOptions {
  readonly issuers: readonly TrustedIssuer[];
  readonly clock?: Clock;
  /** Allowed between our clock and the issuer's; at most 300. */
  readonly clockSkewS?: number;
  /** The name in `WWW-Authenticate`. */
  readonly realm?: string;
}

/** What a token says, after it was checked. */
export interface VerifiedToken {
  readonly issuer: string;
  readonly subject: string;
  readonly clientId: string;
  readonly scopes: ReadonlySet<string>;
  /** Biometric scope ids that the token opens; empty opens none. */
  readonly gkScopes: ReadonlySet<string>;
  /** Epoch seconds. */
  readonly expiresAt: number;
  readonly jti: string | null;
  readonly claims: JWTPayload;
}

/** Checks tokens offline, by the public keys of their issuers. */
export interface Verifier {
  /** Checks a token and, where given, that it has `scope`. Throws `OAuthError` with the status, body and `WWW-Authenticate` to answer with. */
  verify(token: string, scope?: string): Promise<VerifiedToken>;
  /** The same from an `Authorization` header's value. */
  authorize(header: string | null | undefined, scope?: string): Promise<VerifiedToken>;
}

const ALGORITHMS = ["ES256", "RS256", "PS256", "EdDSA", "Ed25519"];
const SIGNATURES = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/;
const DEFAULT_SKEW_S = 30;
const LONGEST_SKEW_S = 300;
/** A token is some hundred bytes; nobody signs a book. */
const LONGEST_TOKEN = 16_384;
const RELOAD_FILE_AFTER_MS = 10_000;
/** How long a verified token is taken without checking its signature again, and how many are. */
const REMEMBER_MS = 60_000;
const REMEMBERED = 2_000;

/** RFC 6750 §3: how a resource answers a request it refuses. */
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

/** No credentials at all: the challenge carries no error code (RFC 6750 §3.1). */
const missingToken = (realm: string, scope?: string): OAuthError =>
  new OAuthError("invalid_token", "an access token is required", {
    headers: { "WWW-Authenticate": `Bearer realm="${realm}"${scope ? `, scope="${scope}"` : ""}` },
  });

/** An issuer's keys; `version` is another thing whenever they were seen to have changed. */
interface IssuerKeys {
  readonly get: JWTVerifyGetKey;
  version(): Promise<unknown>;
}

/** Keys of an issuer in this process or in a file: read again when a token names a key that is not among them. */
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
        // The imported keys live in the set: the same keys again keep them.
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
  const stale = (): boolean => current === null || age() > RELOAD_FILE_AFTER_MS || age() < 0;
  const known = (): Promise<Loaded> | Loaded => (stale() || current === null ? reload(false) : current);

  return {
    async get(header, token) {
      const loadedBefore = !stale();
      const { get } = await known();
      try {
        return await get(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        // A flood of forged key ids must not become a flood of reads.
        if (loadedBefore && age() < 1000) throw error;
        return (await reload(true)).get(header, token);
      }
    },
    version: async () => known(),
  };
}

const UNREACHABLE_MS = 5_000;

/**
 * The library fetches the keys again itself when it next checks a signature. An issuer that could not be reached is left alone for a few
 * seconds: anybody can send tokens in its name, and each would cost a fetch.
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
      if (!(error instanceof errors.JWKSNoMatchingKey)) failed = { error, at: clock.now() };
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

/** Why a token is refused, in words that help its holder and tell a forger nothing he did not send. */
function refusal(error: unknown): string | null {
  if (error instanceof errors.JWTExpired) return "Access Token Expired";
  if (error instanceof errors.JWTClaimValidationFailed) return `the token's ${error.claim} is not accepted here`;
  if (error instanceof errors.JOSEAlgNotAllowed) return "the token's algorithm is not accepted here";
  if (error instanceof errors.JWKSTimeout) return null;
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

/** Verifies access tokens offline: no issuer is asked about a token, only (seldom) for its keys. */
export function createVerifier(options: VerifierOptions): Verifier {
  const { issuers, clock = systemClock, clockSkewS = DEFAULT_SKEW_S, realm = "vivavoce" } = options;
  if (issuers.length === 0) throw new TypeError("a verifier needs at least one issuer");

  const trusted = new Map<string, { keys: IssuerKeys; algorithms: string[]; skewS: number; from: TrustedIssuer }>();
  for (const from of issuers) {
    const algorithms = [...(from.algorithms ?? ALGORITHMS)];
    const wrong = algorithms.find((algorithm) => !SIGNATURES.test(algorithm));
    if (wrong !== undefined) throw new TypeError(`algorithm ${wrong} is not a public-key signature`);
    if (from.audience.length === 0) throw new TypeError(`issuer ${from.issuer} needs an audience`);
    if (trusted.has(from.issuer)) throw new TypeError(`issuer ${from.issuer} is named twice`);
    const skewS = from.clockSkewS ?? clockSkewS;
    if (!(skewS >= 0 && skewS <= LONGEST_SKEW_S))
      throw new RangeError(`clockSkewS must be 0 to ${LONGEST_SKEW_S}, got ${skewS}`);
    trusted.set(from.issuer, { keys: keysOf(from.keys, clock), algorithms, skewS, from });
  }

  const refuse = (description: string): never => {
    throw bearerError("invalid_token", description, { realm });
  };

  /** A client sends one token with every call: what was verified just now needs no second signature check while its key stands. */
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

  async function verify(token: string, scope?: string): Promise<VerifiedToken> {
    const verified = (await recall(token)) ?? (await verifySignature(token));
    const { isRevoked } = trusted.get(verified.issuer)!.from;
    if (isRevoked && (await isRevoked({ ...verified, issuedAt: Number(verified.claims.iat ?? 0) })))
      refuse("the token was revoked");
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
    try {
      ({ payload } = await jwtVerify(token, issuer.keys.get, {
        issuer: from.issuer,
        audience: from.audience as string | string[],
        algorithms: issuer.algorithms,
        clockTolerance: skewS,
        currentDate: new Date(clock.now()),
        requiredClaims: ["exp"],
        ...(from.type === undefined ? {} : { typ: from.type }),
      }));
    } catch (error) {
      const why = refusal(error);
      if (why !== null) return refuse(why);
      // The keys could not be read: that is our trouble, not the token's.
      throw new OAuthError("server_error", "the keys of the token's issuer cannot be fetched; try again later", {
        status: 503,
        headers: { "Retry-After": "5" },
      });
    }
    if (payload.iat !== undefined && payload.iat > clock.now() / 1000 + skewS)
      refuse("the token's iat is in the future");
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
      claims: payload,
    };
    await remember(token, verified, issuer.keys, skewS);
    return verified;
  }

  return {
    verify,
    async authorize(header, scope) {
      // Nothing behind the word is no token, as no header is.
      if (!header || /^bearer *$/i.test(header)) throw missingToken(realm, scope);
      const match = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(header);
      if (!match) {
        if (/^bearer\b/i.test(header))
          throw bearerError("invalid_request", "the Authorization header is malformed", { realm });
        throw missingToken(realm, scope);
      }
      return verify(match[1] as string, scope);
    },
  };
}
