import { StatusCode, StatusError } from "../contract/index.js";
import type { ConnectOptions, Credentials } from "./connect.js";

/** Where the next call's token comes from; `null`: the box is asked without one. */
export type TokenSource = () => Promise<string | null>;

export function tokenSource(
  token: ConnectOptions["token"],
  credentials: Credentials | undefined,
  url: string,
  fetch: typeof globalThis.fetch,
): TokenSource {
  if (token !== undefined && credentials) throw new TypeError("a token or credentials, not both");
  if (typeof token === "string") return async () => token;
  if (token) return token;
  if (!credentials) return async () => null;
  return cached(() => requestToken(credentials, credentials.tokenUrl ?? `${url}/oauth2/token`, fetch));
}

interface IssuedToken {
  readonly token: string;
  readonly lifetimeSeconds: number;
}

/** One request for however many calls wait, and a new token when nine tenths of its life are over. */
function cached(request: () => Promise<IssuedToken>): TokenSource {
  let current: { token: string; staleAt: number } | null = null;
  let pending: Promise<string> | null = null;
  return async () => {
    if (current && Date.now() < current.staleAt) return current.token;
    pending ??= request()
      .then(({ token, lifetimeSeconds }) => {
        current = { token, staleAt: Date.now() + lifetimeSeconds * 900 };
        return token;
      })
      .finally(() => {
        pending = null;
      });
    return pending;
  };
}

async function requestToken(
  { clientId, clientSecret }: Credentials,
  tokenUrl: string,
  fetch: typeof globalThis.fetch,
): Promise<IssuedToken> {
  const response = await fetch(tokenUrl, {
    method: "POST",
    headers: {
      // Form-encoded before base64 (RFC 6749 §2.3.1): a client id holds colons.
      authorization: `Basic ${btoa(`${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`)}`,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: "grant_type=client_credentials&scope=bio",
  });
  const answer = (await response.json().catch(() => ({}))) as {
    access_token?: string;
    expires_in?: number;
    error_description?: string;
    error?: string;
  };
  if (!response.ok || !answer.access_token) {
    throw new StatusError({
      statusCode: StatusCode.NOT_AUTHORIZED,
      message: `no token from ${tokenUrl}: ${answer.error_description ?? answer.error ?? `HTTP ${response.status}`}`,
    });
  }
  return { token: answer.access_token, lifetimeSeconds: answer.expires_in ?? 60 };
}
