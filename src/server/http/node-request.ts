import { callerGone } from "../call-errors.js";
import { headerOf, type NodeRequest, type NodeResponse } from "../listen.js";
import { tooLarge } from "../refusal.js";
import { brokenOff, type HttpAnswer, type HttpRequest, type Transcoder } from "./transcoder.js";

/** Answers a request of the contract directly on its connection; `null` if the contract does not have its path. */
export function answerOn(
  request: NodeRequest,
  response: NodeResponse,
  address: string,
  transcode: Transcoder,
): Promise<void> | null {
  return transcode(requestOn(request, response, address))?.then((answer) => write(response, answer)) ?? null;
}

function requestOn(request: NodeRequest, response: NodeResponse, address: string): HttpRequest {
  return {
    verb: request.method!,
    // A complete URL, as sent to proxies, is not a path of the contract; the app parses it.
    target: request.url!,
    address,
    ended: () => endedWith(response),
    header: (name) => headerOf(request, name),
    // Stays open when reading ends early: the response still has to be sent.
    chunks: () => request.iterator({ destroyOnReturn: false }),
    bytes: (limit) => bytesOf(request, limit),
  };
}

/** Aborted when the caller goes away. Node reports an HTTP/2 stream that the caller closed as completely written. */
function endedWith(response: NodeResponse): AbortController {
  const ended = new AbortController();
  response.once("close", () => {
    if (!response.writableEnded) ended.abort(callerGone(new Error("the connection closed")));
  });
  return ended;
}

/** Uses events: iterating over a small body costs more than the rest of the call. */
function bytesOf(request: NodeRequest, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(brokenOff());
    // A small body arrived with the headers.
    if (request.complete) {
      const all: Uint8Array = request.read() ?? new Uint8Array();
      return all.length > limit ? reject(tooLarge("the body", limit)) : resolve(all);
    }
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    const keep = (chunk: Uint8Array) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes <= limit) return;
      request.off("data", keep);
      reject(tooLarge("the body", limit));
    };
    request.on("data", keep);
    request.once("error", (error) => reject(brokenOff(error)));
    const closed = () => reject(brokenOff());
    request.once("close", closed);
    request.once("end", () => {
      // Every request is closed in the end: creating an error for each would cost more than reading it.
      request.off("close", closed);
      resolve(Buffer.concat(chunks));
    });
  });
}

function write(response: NodeResponse, { status, headers, body }: HttpAnswer): void {
  if (response.destroyed) return;
  const bytes = Buffer.from(body);
  // HTTP/1.1 and HTTP/2 have different types but accept the same.
  (response.writeHead as (status: number, headers: object) => void).call(response, status, {
    ...headers,
    "content-length": bytes.length,
  });
  response.end(bytes);
}
