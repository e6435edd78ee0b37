import { cors } from "@connectrpc/connect";
import type { NodeHandler } from "../listen.js";

const METHODS = "GET, POST, PUT, PATCH, DELETE";
const ALLOWED = ["authorization", "x-request-id", ...cors.allowedHeaders].join(", ").toLowerCase();
const EXPOSED = ["x-request-id", "retry-after", "www-authenticate", ...cors.exposedHeaders].join(", ").toLowerCase();
/** Browsers repeat the preflight after at most this time. */
const PREFLIGHT_S = 7200;

/**
 * Lets pages of these origins call from a browser, on every transport. Never with cookies: a page sends its own token
 * and cannot use anybody's signed-in session.
 */
export function withCors(handler: NodeHandler, origins: readonly string[]): NodeHandler {
  if (origins.length === 0) return handler;
  const known = new Set(origins);
  return (request, response) => {
    const { origin } = request.headers;
    response.setHeader("vary", "origin");
    if (origin !== undefined && known.has(origin)) {
      response.setHeader("access-control-allow-origin", origin);
      response.setHeader("access-control-expose-headers", EXPOSED);
      if (request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined) {
        response.setHeader("access-control-allow-methods", METHODS);
        response.setHeader("access-control-allow-headers", ALLOWED);
        response.setHeader("access-control-max-age", String(PREFLIGHT_S));
        response.writeHead(204);
        response.end();
        return;
      }
    }
    handler(request, response);
  };
}
