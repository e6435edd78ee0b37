import { connectionFault } from "../contract/connection-fault.js";
import { type Clock, systemClock } from "./clock.js";

export type { Clock } from "./clock.js";

/** Runs in Node and in browsers: it needs only fetch and a clock, no timers. */
export interface TokenCacheOptions {
  /** The token endpoint: `oauth_server_url` of the configuration file. */
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** One scope, or several separated by spaces. */
  readonly scope: string;
  /** More form fields, such as the engagement endpoint's `client_id`. */
  readonly fields?: Readonly<Record<string, string>>;
  /** A token is renewed when less than this is left of its lifetime; at most half of the lifetime is used. */
  readonly renewBeforeS?: number;
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  readonly fetch?: typeof fetch;
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
  ) {
    super(message);
  }
}

/** One token for many callers, renewed before it expires. */
export interface TokenCache {
  /** A valid token, shared by all callers. When there is none, concurrent callers share one request. */
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

/** A cache for one client. The first request is sent when the first token is asked for. */
export function createTokenCache(options: TokenCacheOptions): TokenCache {
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
    if (!response.ok) {
      throw new TokenRequestError(
        response.status,
        String(body.error ?? "unknown"),
        String(body.error_description ?? `the token endpoint answered ${response.status}`),
      );
    }
    const { access_token: token, expires_in: expiresIn, token_type: type } = body;
    if (typeof token !== "string" || token === "" || String(type).toLowerCase() !== "bearer") {
      throw new TokenRequestError(response.status, "malformed", "the token endpoint's answer has no bearer token");
    }
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
