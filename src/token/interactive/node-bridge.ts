import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";

type NodeHandler = (request: IncomingMessage, response: ServerResponse) => unknown;

/**
 * Makes the request and response pair of node:http from a fetch request, so that one fetch handler serves everything over HTTP/1.1,
 * HTTP/2 or without a port. Host and scheme are taken from the issuer, because a proxy in front may have changed them.
 */
export function nodePair(
  request: Request,
  issuer: string,
  body = "",
): { incoming: IncomingMessage; outgoing: ServerResponse } {
  const { pathname, search } = new URL(request.url);
  const { host, protocol } = new URL(issuer);
  const socket = new Socket();
  if (protocol === "https:") Object.assign(socket, { encrypted: true });
  const incoming = new IncomingMessage(socket);
  incoming.method = request.method;
  incoming.url = pathname + search;
  incoming.httpVersion = "1.1";
  incoming.headers = Object.fromEntries(request.headers);
  incoming.headers.host = host;
  if (body !== "") incoming.headers["content-length"] = String(Buffer.byteLength(body));
  if (body !== "") incoming.push(body);
  incoming.push(null);
  return { incoming, outgoing: new ServerResponse(incoming) };
}

/** Runs a node:http handler on the pair and collects its response. */
export function answerOf(handler: NodeHandler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<Response> {
  return new Promise((resolve, reject) => {
    // The library ends every response with its whole body.
    outgoing.end = (body?: unknown) => {
      const headers = new Headers();
      for (const [name, value] of Object.entries(outgoing.getHeaders())) {
        // Each cookie needs its own header.
        for (const one of Array.isArray(value) ? value : [value]) headers.append(name, String(one));
      }
      resolve(new Response(String(body ?? ""), { status: outgoing.statusCode, headers }));
      return outgoing;
    };
    Promise.resolve(handler(incoming, outgoing)).catch(reject);
  });
}
