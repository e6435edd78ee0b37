import { callerGone } from "../dispatch.js";
import type { NodeRequest, NodeResponse } from "../listen.js";
import { tooLarge } from "../refusal.js";
import { brokenOff, type HttpAnswer, type HttpRequest, type Transcoder } from "./transcoder.js";

/** Answers a request of the contract straight on its connection; `null` when its path is none of the contract's. */
export function answerOn(
  request: NodeRequest,
  response: NodeResponse,
  address: string,
  transcode: Transcoder,
): Promise<void> | null {
  const target = request.url ?? "";
  // A whole URL as the target is for proxies: the app takes it apart.
  if (!target.startsWith("/")) return null;
  return transcode(requestOn(request, response, address, target))?.then((answer) => write(response, answer)) ?? null;
}

function requestOn(request: NodeRequest, response: NodeResponse, address: string, target: string): HttpRequest {
  return {
    verb: request.method ?? "",
    target,
    address,
    ended: () => endedWith(response),
    header(name) {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    },
    // Left open when reading ends early: the answer still has to go out.
    chunks: () => request.iterator({ destroyOnReturn: false }),
    bytes: (limit) => bytesOf(request, limit),
  };
}

/** Aborted when the caller goes away. */
function endedWith(response: NodeResponse): AbortController {
  const ended = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) ended.abort(callerGone(new Error("the connection closed")));
  });
  return ended;
}

/** By events: iterating over a small body costs more than everything else in a call. */
function bytesOf(request: NodeRequest, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(brokenOff());
    // A small body has come with its head.
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
      request.pause();
      reject(tooLarge("the body", limit));
    };
    request.on("data", keep);
    request.once("error", (error) => reject(brokenOff(error)));
    const closed = () => reject(brokenOff());
    request.once("close", closed);
    request.once("end", () => {
      // Every request is closed in the end: an error made for each would cost more than reading it.
      request.off("close", closed);
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
  });
}

function write(response: NodeResponse, { status, headers, body }: HttpAnswer): void {
  if (response.destroyed) return;
  const bytes = Buffer.from(body);
  // Typed apart for HTTP/1.1 and HTTP/2, though they take the same.
  (response.writeHead as (status: number, headers: object) => void).call(response, status, {
    ...headers,
    "content-length": bytes.length,
  });
  response.end(bytes);
}
