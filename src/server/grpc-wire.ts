/** gRPC and gRPC-Web on Node's requests, for calls that do not need the framework. */
import type { ServerResponse } from "node:http";
import { type DescMethod, fromBinary, type Message } from "@bufbuild/protobuf";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { StatusError } from "../contract/index.js";
import { connectErrorOf } from "./call-errors.js";
import type { NodeRequest, NodeResponse } from "./listen.js";
import { boundBinary } from "./message-values.js";
import { badRequest } from "./refusal.js";

export const GRPC = "application/grpc+proto";
const GRPC_WEB = "application/grpc-web+proto";
/** The type of the response to each type of a request. */
const TYPES = new Map([
  ["application/grpc", GRPC],
  [GRPC, GRPC],
  ["application/grpc-web", GRPC_WEB],
  [GRPC_WEB, GRPC_WEB],
]);
export const HEAD_BYTES = 5;
const TRAILERS_FLAG = 0x80;

export const FINE = { "grpc-status": "0" };

export function trailersOf(error: StatusError): Record<string, string> {
  const trailers = new Headers();
  setTrailerStatus(trailers, connectErrorOf(error));
  plainMessage(trailers);
  return Object.fromEntries(trailers);
}

/**
 * gRPC sends printable ASCII unchanged, except `%`. The framework also escapes commas and semicolons, and clients that
 * decode only what must be escaped (grpc-js) would show the escapes to people.
 */
export function plainMessage(trailers: Headers): void {
  const escaped = trailers.get("grpc-message");
  if (escaped === null) return;
  trailers.set(
    "grpc-message",
    decodeURIComponent(escaped).replace(/[^\x20-\x24\x26-\x7e]+/g, (rest) => encodeURIComponent(rest)),
  );
}

/** For calls that announce no compression: the first byte of a message has no other use. */
export const unexpectedFlags = (flags: number) =>
  badRequest(`a gRPC message without a grpc-encoding header must begin with the byte 0, got ${flags}`);

/** What requests may be compressed with. */
export const COMPRESSIONS = [compressionGzip, compressionBrotli];

/** What an encoding is undone with: `null` for none, `undefined` if it is unknown. */
export const compressionOf = (encoding?: string | null) =>
  (encoding ?? "identity") === "identity" ? null : COMPRESSIONS.find(({ name }) => name === encoding);

/** The same for a gRPC call. */
export const encodingOf = ({ headers }: NodeRequest) => compressionOf(headers["grpc-encoding"]?.toString());

/** The type of the response, if the messages of a gRPC call are binary. */
export const binaryTypeOf = ({ method, headers }: NodeRequest): string | undefined =>
  method === "POST" ? TYPES.get(headers["content-type"] ?? "") : undefined;

/** The same, if they are not compressed either. */
export const plainTypeOf = (request: NodeRequest): string | undefined =>
  encodingOf(request) === null ? binaryTypeOf(request) : undefined;

/** Whether the caller has disconnected. */
export const isGone = (response: NodeResponse): boolean =>
  "stream" in response ? response.stream.destroyed || response.stream.closed : response.destroyed;

/** In gRPC-Web the trailers are the last frame of the body. */
export function sendGrpc(
  response: NodeResponse,
  type: string,
  requestId: string,
  trailers: Readonly<Record<string, string>>,
  message: Uint8Array | null = null,
): void {
  if (isGone(response)) return;
  const frames = message ? [framed(0, message)] : [];
  if (type.startsWith("application/grpc-web")) {
    const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`);
    frames.push(framed(TRAILERS_FLAG, Buffer.from(lines.join(""))));
  } else response.addTrailers(trailers);
  // HTTP/1.1 and HTTP/2 have different types but accept the same.
  const headers = { "content-type": type, "x-request-id": requestId };
  (response as ServerResponse).writeHead(200, headers).end(Buffer.concat(frames));
}

export function framed(flags: number, data: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + data.length);
  frame[0] = flags;
  frame.writeUInt32BE(data.length, 1);
  frame.set(data, HEAD_BYTES);
  return frame;
}

export function messageOf(method: DescMethod, bytes: Uint8Array): Message {
  boundBinary(method.input, bytes);
  try {
    return fromBinary(method.input, bytes);
  } catch (error) {
    throw badRequest(`expected a ${method.input.name}: ${(error as Error).message}`);
  }
}
