import type { Context } from "hono";
import { matchedRoutes } from "hono/route";
import { stackOf } from "../contract/error-causes.js";
import { StatusCode } from "../contract/index.js";
import type { Audit } from "./audit.js";
import { errorResponse, OAuthError } from "./errors.js";
import { createPeerAddress, type NodeBindings, type TransportOptions } from "./peer-address.js";

export type Env = { Bindings: NodeBindings };

const UNFORWARDED = createPeerAddress();

export function addressOf(
  c: { readonly env: NodeBindings; readonly req: Pick<Context["req"], "header"> },
  { peerAddress = UNFORWARDED }: TransportOptions,
): string {
  return peerAddress(c.env?.incoming?.socket?.remoteAddress, c.req.header("X-Forwarded-For")) || "unknown";
}

/** For the log, after the answer: who changed what. A path that was refused may have a secret in place of an id, so only its form is logged. */
export function managed(c: Context, user: string) {
  const { method, path } = c.req;
  const { status } = c.res;
  const route = status < 400 ? path : (matchedRoutes(c).findLast((matched) => matched.method === method)?.path ?? "*");
  return { event: "managed", user, method, route, status } as const;
}

/** The answer to an unexpected error, which reveals no internals. */
export const serverFailed = (error?: unknown): OAuthError =>
  isUnavailable(error)
    ? new OAuthError("temporarily_unavailable", "the database does not answer; try again", {
        status: 503,
        headers: { "Retry-After": "5" },
        refusal: "databaseUnavailable",
      })
    : new OAuthError("server_error", "the box failed; its log has the cause", { refusal: "serverFailed" });

/** The store's error, also as an operation of the box reports it. */
const isUnavailable = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "unavailable" || error.code === StatusCode.BUSY);

/** Answers every error as `{ error, error_description }`. */
export const answerErrors =
  (audit: Audit) =>
  (error: Error): Response => {
    if (error instanceof OAuthError) return errorResponse(error);
    audit({ event: "failure", stack: stackOf(error) });
    return errorResponse(serverFailed(error));
  };

/** For paths that allow only one method. */
export const onlyMethod =
  (method: string) =>
  (c: Context): Response =>
    errorResponse(
      new OAuthError("invalid_request", `${c.req.method} is not allowed here; use ${method}`, {
        status: 405,
        headers: { Allow: method },
      }),
    );
