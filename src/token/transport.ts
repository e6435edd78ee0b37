import type { HttpBindings } from "@hono/node-server";
import type { Context, ErrorHandler } from "hono";
import type { Audit } from "./audit.js";
import { errorResponse, OAuthError } from "./errors.js";

/** Under `@hono/node-server` the raw request and answer are there; without a port they are not. */
export type Env = { Bindings: Partial<HttpBindings> };

export interface TransportOptions {
  /** Whose `X-Forwarded-For` is believed: nobody's, unless a proxy of ours stands in front. */
  readonly trustProxy?: boolean;
}

/** Who asks, for the throttle. */
export function addressOf(c: Context<Env>, { trustProxy = false }: TransportOptions): string {
  if (trustProxy) {
    // The last entry is the one that our own proxy wrote.
    const forwarded = c.req.header("X-Forwarded-For")?.split(",").at(-1)?.trim();
    if (forwarded) return forwarded;
  }
  return c.env?.incoming?.socket?.remoteAddress ?? "unknown";
}

/** Every error as `{ error, error_description }`; what we did not foresee says nothing of our inside. */
export const answerErrors =
  (audit: Audit): ErrorHandler<Env> =>
  (error) => {
    if (error instanceof OAuthError) return errorResponse(error);
    audit({ event: "failure", stack: error.stack ?? error.name });
    return errorResponse(new OAuthError("server_error", "the server failed"));
  };

/** For paths that know one method only. */
export const onlyMethod = (method: string) => (): Response =>
  errorResponse(
    new OAuthError("invalid_request", `only ${method} is understood here`, { status: 405, headers: { Allow: method } }),
  );
