import { callerGone } from "../call-errors.js";
import { headerOf, type NodeRequest, type NodeResponse } from "../listen.js";
import { tooLarge } from "../refusal.js";
import { wholeBody } from "../whole-body.js";
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

async function bytesOf(request: NodeRequest, limit: number): Promise<Uint8Array> {
  const faults = { tooLarge: () => tooLarge("the body", limit), brokenOff };
  if (request.destroyed || !request.complete) return wholeBody(request, limit, faults);
  // A small body arrived with the headers.
  const all: Uint8Array = request.read() ?? new Uint8Array();
  if (all.length > limit) throw faults.tooLarge();
  return all;
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
