import { OAuthError } from "./errors.js";

/** The id and secret of a client. */
export interface ClientPassword {
  readonly clientId: string;
  readonly secret: string;
}

/** Decodes form encoding (RFC 6749 appendix B). */
function formDecode(text: string): string {
  try {
    return decodeURIComponent(text.replace(/\+/g, " "));
  } catch {
    throw invalidHeader("is not form-encoded");
  }
}

const invalidClient = (description: string): OAuthError =>
  new OAuthError("invalid_client", description, { headers: { "WWW-Authenticate": BASIC_CHALLENGE } });

const invalidHeader = (what: string): OAuthError => invalidClient(`the Authorization header ${what}`);

export const BASIC_CHALLENGE = 'Basic realm="vivavoce", charset="UTF-8"';

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;

/**
 * Reads `Basic <BASE64(client_id:client_secret)>`. Escaped ids (`appID%3A…`) are split at the first colon. A raw `appID:` id contains
 * colons, so it is split at the last one; generated secrets never contain a colon.
 */
export function parseBasic(header: string | null | undefined): ClientPassword {
  if (!header)
    throw invalidClient(
      "send the client id and secret in an Authorization header (Basic), or as the form fields client_id and client_secret",
    );
  const [scheme, encoded, ...rest] = header.trim().split(/ +/);
  if (scheme?.toLowerCase() !== "basic") throw invalidHeader("is not Basic");
  if (!encoded || rest.length > 0 || !BASE64.test(encoded)) throw invalidHeader("is not base64");
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const raw = text.startsWith("appID:");
  const colon = raw ? text.lastIndexOf(":") : text.indexOf(":");
  if (colon <= 0) throw invalidHeader("has no colon between client id and secret");
  const id = text.slice(0, colon);
  const secret = text.slice(colon + 1);
  return raw ? { clientId: id, secret } : { clientId: formDecode(id), secret: formDecode(secret) };
}
