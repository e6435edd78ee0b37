import type { Refusal } from "./refusals/en.js";

/** The HTTP status of each. */
const STATUS = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  invalid_scope: 400,
  invalid_target: 400,
  invalid_token: 401,
  insufficient_scope: 403,
  access_denied: 403,
  temporarily_unavailable: 429,
  not_found: 404,
  conflict: 409,
  server_error: 500,
};
/** All error codes of our authorization and resource servers (RFC 6749 §5.2, RFC 6750 §3.1, RFC 8707 §2, and our management interface). */
export type OAuthErrorCode = keyof typeof STATUS;

/** RFC 6749 allows printable ASCII without `"` and `\` in a description; it also ends up inside a quoted header value. */
const describable = (text: string): string => text.replace(/["\\]/g, "'").replace(/[^\x20-\x7e]/g, "?");

/** An error with a code of RFC 6749 or RFC 6750. */
export class OAuthError extends Error {
  override readonly name = "OAuthError";
  readonly code: OAuthErrorCode;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The name of the refusal, which pages translate into the reader's language. */
  readonly refusal: Refusal | null;

  constructor(
    code: OAuthErrorCode,
    description: string,
    details: { status?: number; headers?: Record<string, string>; refusal?: Refusal; cause?: unknown } = {},
  ) {
    super(describable(description), { cause: details.cause });
    this.code = code;
    this.status = details.status ?? STATUS[code];
    this.headers = details.headers ?? {};
    this.refusal = details.refusal ?? null;
  }

  get body(): { error: OAuthErrorCode; error_description: string; refusal?: Refusal } {
    const { code: error, message: error_description, refusal } = this;
    return { error, error_description, ...(refusal && { refusal }) };
  }
}

/** `refusal` names a problem that a person can correct. */
export const invalidRequest = (description: string, refusal?: Refusal): OAuthError =>
  new OAuthError("invalid_request", description, refusal && { refusal });

/** Responses of a token server, and of the resources its tokens open, must never be cached. */
export const NO_STORE: Readonly<Record<string, string>> = { "Cache-Control": "no-store", Pragma: "no-cache" };

/** The error as an HTTP response. */
export function errorResponse(error: OAuthError): Response {
  return new Response(JSON.stringify(error.body), {
    status: error.status,
    headers: { "Content-Type": "application/json", ...NO_STORE, ...error.headers },
  });
}
