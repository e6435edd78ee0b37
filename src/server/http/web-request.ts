import { endedWith } from "../call-errors.js";
import { tooLarge } from "../refusal.js";
import { brokenOff, type HttpAnswer, type HttpRequest } from "./transcoder.js";

/** A `Request` as the bindings read it: for telephone lines, and for an app without a server. */
export function requestOf(request: Request, address: string): HttpRequest {
  const { pathname, search } = new URL(request.url);
  return {
    verb: request.method,
    target: `${pathname}${search}`,
    address,
    ended: () => endedWith(request.signal),
    header: (name) => request.headers.get(name) ?? undefined,
    chunks: () => bodyOf(request),
    async bytes(limit) {
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      try {
        for await (const chunk of bodyOf(request)) {
          bytes += chunk.length;
          if (bytes > limit) break;
          chunks.push(chunk);
        }
      } catch (error) {
        throw brokenOff(error);
      }
      if (bytes > limit) throw tooLarge("the body", limit);
      return Buffer.concat(chunks);
    },
  };
}

/** In Node a body can be iterated over, which the types of browsers do not say. */
const bodyOf = ({ body }: Request) => (body ?? []) as unknown as AsyncIterable<Uint8Array>;

export const responseOf = ({ status, headers, body }: HttpAnswer): Response => new Response(body, { status, headers });
