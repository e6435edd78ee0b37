import { connectionFault } from "../contract/connection-fault.js";
import { type NamesOf, optionsFault } from "../contract/options-fault.js";
import { typeName } from "../type-name.js";
import { type Clock, systemClock } from "./clock.js";

export type { Clock } from "./clock.js";

/** The client of a token endpoint. */
export interface TokenCacheOptions {
  /** The token endpoint: `oauth_server_url` of the configuration file. */
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** One scope, or several separated by spaces. */
  readonly scope: string;
  /** More form fields, such as the engagement endpoint's `client_id`. */
  readonly fields?: Readonly<Record<string, string>>;
  /** A token is renewed when less than this is left of its lifetime, 60 by default; at most half of the lifetime is used. */
  readonly renewBeforeS?: number;
  /** Time limit of a request for a token; 10 s by default. */
  readonly timeoutMs?: number;
  /** For tests; the system's clock by default. */
  readonly clock?: Clock;
  /** By default the `fetch` of the runtime. */
  readonly fetch?: typeof fetch;
}

const optionNames: NamesOf<TokenCacheOptions> = {
  tokenUrl: true,
  clientId: true,
  clientSecret: true,
  scope: true,
  fields: true,
  renewBeforeS: true,
  timeoutMs: true,
  clock: true,
  fetch: true,
};

/** For callers without a type checker, and for settings that are missing: the endpoint would only say that it does not know the client. */
function checkOptions(options: TokenCacheOptions): void {
  const fault = optionsFault(options, optionNames);
  if (fault !== null) throw new TypeError(fault);
  for (const name of ["tokenUrl", "clientId", "clientSecret", "scope"] as const)
    if (typeof options[name] !== "string" || options[name] === "")
      throw new TypeError(
        `${name} must be a non-empty string, got ${options[name] === "" ? "an empty one" : typeName(options[name])}`,
      );
}

/** The token endpoint refused the request or could not be reached. */
export class TokenRequestError extends Error {
  override readonly name = "TokenRequestError";

  constructor(
    /** HTTP status; 0 when the endpoint was not reached. */
    readonly status: number,
    /** The `error` field of the response, such as `invalid_client`. */
    readonly code: string,
    message: string,
    /** How long the endpoint asks to wait (`Retry-After`); `null` if it does not say. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message);
  }
}

/** One token for many callers, renewed before it expires. */
export interface TokenCache {
  /**
   * A valid token, shared by all callers. When there is none, concurrent callers share one request. Rejects with `TokenRequestError` if the
   * endpoint gives none.
   */
  token(): Promise<string>;
  /** `Bearer …`, for REST. */
  authorization(): Promise<string>;
  /** Call this when the service refused the token before it expired: the next caller gets a new one. */
  discard(token: string): void;
}

const RENEW_BEFORE_S = 60;
const TIMEOUT_MS = 10_000;
/** After a failed renewal: an endpoint that never answers would hold up every call for the whole timeout. */
const RETRY_AFTER_MS = 5_000;

/** RFC 6749 appendix B, then base64. Colons in the id are escaped, so the header's own colon is unambiguous. */
export function basicAuthorization(clientId: string, clientSecret: string): string {
  const encode = (text: string): string => encodeURIComponent(text).replace(/%20/g, "+");
  // Percent-encoded, so ASCII: btoa is safe.
  return `Basic ${btoa(`${encode(clientId)}:${encode(clientSecret)}`)}`;
}

/** Seconds. The header may also be a date, which needs the same clock on both sides. */
function retryAfterOf(headers: Headers): number | null {
  const seconds = headers.get("retry-after") ?? "";
  return /^\d{1,9}$/.test(seconds) ? Number(seconds) : null;
}

/** A cache for one client, in Node and in browsers: it needs only fetch and a clock, no timers. The first request is sent when the first token is asked for. */
export function createTokenCache(options: TokenCacheOptions): TokenCache {
  checkOptions(options);
  const { clock = systemClock, renewBeforeS = RENEW_BEFORE_S, timeoutMs = TIMEOUT_MS } = options;
  const send = options.fetch ?? fetch;
  let held: { token: string; renewAt: number; expiresAt: number } | null = null;
  let pending: Promise<string> | null = null;

  async function request(): Promise<string> {
    const askedAt = clock.now();
    let response: Response;
    try {
      response = await send(options.tokenUrl, {
        method: "POST",
        headers: {
          Authorization: basicAuthorization(options.clientId, options.clientSecret),
          "Content-Type": "application/x-www-form-urlencoded",
          Accept: "application/json",
        },
        body: new URLSearchParams({
          grant_type: "client_credentials",
          scope: options.scope,
          ...options.fields,
        }).toString(),
        redirect: "error",
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (error) {
      throw new TokenRequestError(
        0,
        "unreachable",
        `the token endpoint cannot be reached: ${connectionFault(error) ?? (error instanceof Error ? error.message : "unknown")}`,
      );
    }
    const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
    if (!response.ok)
      throw new TokenRequestError(
        response.status,
        String(body.error ?? "unknown"),
        String(body.error_description ?? `the token endpoint answered ${response.status}`),
        retryAfterOf(response.headers),
      );
    const { access_token: token, expires_in: expiresIn, token_type: type } = body;
    if (typeof token !== "string" || token === "" || String(type).toLowerCase() !== "bearer")
      throw new TokenRequestError(response.status, "malformed", "the token endpoint's answer has no bearer token");
    const lifeS = typeof expiresIn === "number" && expiresIn > 0 ? expiresIn : 0;
    // Counted from the time of the request, because the response took some time.
    held = {
      token,
      renewAt: askedAt + 1000 * (lifeS - Math.min(renewBeforeS, lifeS / 2)),
      expiresAt: askedAt + 1000 * lifeS,
    };
    return token;
  }

  function renew(): Promise<string> {
    pending ??= request().finally(() => {
      pending = null;
    });
    return pending;
  }

  async function token(): Promise<string> {
    const now = clock.now();
    if (held && now < held.renewAt) return held.token;
    const current = held;
    try {
      return await renew();
    } catch (error) {
      // The old token is still valid, so a short outage of the endpoint does not stop the caller.
      const refused =
        error instanceof TokenRequestError && error.status >= 400 && error.status < 500 && error.status !== 429;
      const failedAt = clock.now();
      if (!current || held?.token !== current.token || failedAt >= current.expiresAt || refused) throw error;
      held = { ...current, renewAt: Math.min(failedAt + RETRY_AFTER_MS, current.expiresAt) };
      return current.token;
    }
  }

  return {
    token,
    authorization: async () => `Bearer ${await token()}`,
    discard(refused) {
      if (held?.token === refused) held = null;
    },
  };
}

/** For `credentials.createFromMetadataGenerator` of a gRPC library: sends the token with every call on the channel. */
export const grpcMetadataGenerator =
  <M extends { set(name: string, value: string): void }>(cache: TokenCache, newMetadata: () => M) =>
  (_params: unknown, callback: (error: Error | null, metadata?: M) => void): void => {
    cache.authorization().then(
      (authorization) => {
        const metadata = newMetadata();
        metadata.set("authorization", authorization);
        callback(null, metadata);
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error(String(error))),
    );
  };
