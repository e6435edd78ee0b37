import type { NodeHandler, NodeRequest } from "../listen.js";

/** A host, with or without a port, that is this machine. */
export const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/**
 * If tokens are off, every program on this machine may call, and so could every web page open in its browser. A browser
 * sends the origin of the page and the host that the page addresses. We refuse origins that are not listed, and hosts
 * that are not this machine (a name that was pointed here).
 */
export function localCallersOnly(
  handler: NodeHandler,
  ownOrigin: () => string,
  origins: readonly string[],
): NodeHandler {
  return (request, response) => {
    const why = refusal(request, ownOrigin(), origins);
    if (why === null) return handler(request, response);
    response.writeHead(403, { "content-type": "application/json", "cache-control": "no-store" });
    response.end(JSON.stringify({ status: { statusCode: "PERMISSION_DENIED", message: why } }));
  };
}

function refusal(request: NodeRequest, ownOrigin: string, origins: readonly string[]): string | null {
  const { headers } = request;
  const host = String(headers[":authority"] ?? headers.host ?? "");
  if (host !== "" && !LOOPBACK.test(host) && host !== new URL(ownOrigin).host)
    return `tokens are off, so only callers on this machine are served; the request is for ${host.slice(0, 100)}`;
  const { origin } = headers;
  if (origin === undefined || origin === ownOrigin || origins.includes(origin) || isLoopbackOrigin(origin)) return null;
  return "tokens are off, so pages of other origins are not served; list the origin in cors.origins to allow it";
}

/** A page on this machine, on any port. No other page can have such an origin, whatever its name resolves to. */
export function isLoopbackOrigin(origin: string): boolean {
  return URL.canParse(origin) && LOOPBACK.test(new URL(origin).host);
}
