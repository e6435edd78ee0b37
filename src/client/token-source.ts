import { StatusCode, StatusError } from "../contract/index.js";
import { createTokenCache, TokenRequestError } from "../token/cache.js";
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
  const { clientId, clientSecret, tokenUrl = `${url}/oauth2/token` } = credentials;
  const cache = createTokenCache({ tokenUrl, clientId, clientSecret, scope: "bio", fetch });
  return async () => {
    try {
      return await cache.token();
    } catch (error) {
      if (!(error instanceof TokenRequestError)) throw error;
      const statusCode = error.status >= 400 && error.status < 500 ? StatusCode.NOT_AUTHORIZED : StatusCode.BUSY;
      throw new StatusError({ statusCode, message: `no token from ${tokenUrl}: ${error.message}` }, { cause: error });
    }
  };
}
