import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { stackOf } from "../contract/error-causes.js";
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponseSchema,
} from "../contract/gen/grpc/health/v1/health_pb.js";
import { StatusCode, type StatusError } from "../contract/index.js";
import { METHODS } from "../contract/operations.js";
import { asStatusError, callerGone } from "./call-errors.js";
import { connectErrorOf } from "./connect-error.js";
import type { Call, Dispatcher } from "./dispatch.js";
import { plainMessage } from "./grpc-message.js";
import { type HealthParts, healthCheck, LONGEST_STANDARD_MESSAGE } from "./grpc-standard.js";
import { requestIdOf } from "./http/transcoder.js";
import { headerOf, type NodeRequest, type NodeResponse } from "./listen.js";
import type { Log } from "./log.js";
import { boundBinary } from "./message-values.js";
import { badRequest, Refusal, tooLarge } from "./refusal.js";
import { wholeBody } from "./whole-body.js";

interface UnaryMethod {
  readonly method: DescMethod;
  readonly longestMessage: number;
  readonly run: (read: () => Promise<Message>, call: Call) => Promise<Message>;
}

const TYPES = new Set(["application/grpc", "application/grpc+proto"]);
const HEAD_BYTES = 5;
const LONGEST_TIMEOUT_MS = 3_600_000;
const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * A plain unary gRPC call, directly on its HTTP/2 stream: the framework's pipeline costs more than the rest of the
 * call. Handles what nearly every client sends, one binary uncompressed message; everything else goes to the framework.
 */
export function createUnaryGrpc(parts: {
  readonly dispatcher: Dispatcher;
  readonly messageBytes: number;
  readonly health: HealthParts;
  readonly log: Log;
}) {
  const { dispatcher, messageBytes, log } = parts;
  const check = healthCheck(parts.health);
  const methods: UnaryMethod[] = METHODS.filter((method) => method.methodKind === "unary").map((method) => ({
    method,
    longestMessage: messageBytes,
    run: (read, call) => dispatcher.unary(method, read, call),
  }));
  methods.push({
    method: Health.method.check,
    longestMessage: LONGEST_STANDARD_MESSAGE,
    run: async (read) => create(HealthCheckResponseSchema, await check((await read()) as HealthCheckRequest)),
  });
  const paths = new Map(methods.map((one) => [`/${one.method.parent.typeName}/${one.method.name}`, one]));

  async function answer(
    { method, longestMessage, run }: UnaryMethod,
    request: Http2ServerRequest,
    response: Http2ServerResponse,
    address: string,
  ): Promise<void> {
    const { headers, stream } = request;
    const requestId = requestIdOf(headerOf(request, "x-request-id"));
    let trailers: Readonly<Record<string, string>> = FINE;
    let body: Uint8Array | null = null;
    const caller = watch(stream);
    try {
      const message = await run(
        async () => {
          caller.endAfter(timeoutMs(headerOf(request, "grpc-timeout")));
          return messageOf(method, await onlyFrame(stream, longestMessage));
        },
        {
          protocol: "grpc",
          authorization: headers.authorization ?? null,
          address,
          requestId,
          ended: caller.ended,
        },
      );
      body = framed(toBinary(method.output, message));
    } catch (error) {
      trailers = trailersOf(asStatusError(error));
    } finally {
      caller.forget();
    }
    if (stream.destroyed || stream.closed) return;
    response.addTrailers(trailers);
    stream.respond(
      { ":status": 200, "content-type": "application/grpc+proto", "x-request-id": requestId },
      { waitForTrailers: true },
    );
    stream.end(body ?? undefined);
  }

  return {
    /** The method, if this code handles the call. */
    methodOf(request: NodeRequest): UnaryMethod | undefined {
      if (!("stream" in request) || request.method !== "POST") return undefined;
      if (!TYPES.has(request.headers["content-type"] ?? "")) return undefined;
      if ((request.headers["grpc-encoding"] ?? "identity") !== "identity") return undefined;
      return paths.get(request.url);
    },
    handle(method: UnaryMethod, request: NodeRequest, response: NodeResponse, address: string): void {
      answer(method, request as Http2ServerRequest, response as Http2ServerResponse, address).catch((error: unknown) =>
        log.error("a response could not be sent", { stack: stackOf(error) }),
      );
    },
  };
}

const FINE = { "grpc-status": "0" };

export function trailersOf(error: StatusError): Record<string, string> {
  const trailers = new Headers();
  setTrailerStatus(trailers, connectErrorOf(error));
  plainMessage(trailers);
  return Object.fromEntries(trailers);
}

/** Aborts when the caller disconnects or its deadline passes. */
function watch(stream: ServerHttp2Stream) {
  const ended = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const end = (reason: ConnectError) => ended.abort(callerGone(reason));
  const closed = () => end(new ConnectError("the caller disconnected", Code.Canceled));
  stream.once("close", closed);
  return {
    ended,
    endAfter(ms: number | null): void {
      if (ms === null) return;
      timer = setTimeout(() => end(new ConnectError("the deadline passed", Code.DeadlineExceeded)), ms);
    },
    forget(): void {
      clearTimeout(timer);
      stream.off("close", closed);
    },
  };
}

function timeoutMs(text: string | undefined): number | null {
  if (text === undefined) return null;
  const [, value, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  if (value === undefined || unit === undefined)
    throw badRequest("the grpc-timeout header is malformed", "grpc-timeout");
  return Math.min(LONGEST_TIMEOUT_MS, Number(value) * UNIT_MS[unit]!);
}

/** The payload of the single frame of a stream. */
async function onlyFrame(stream: ServerHttp2Stream, limit: number): Promise<Uint8Array> {
  // An empty body may have ended during authentication; no event would follow.
  if (stream.readableEnded) throw badRequest("expected one message, got none");
  const all = await wholeBody(stream, HEAD_BYTES + limit, {
    tooLarge: () => tooLarge("the message", limit),
    brokenOff,
  });
  if (all.length === 0) throw badRequest("expected one message, got none");
  if (all.length < HEAD_BYTES) throw badRequest("the message is incomplete");
  const length = new DataView(all.buffer, all.byteOffset).getUint32(1);
  if (all[0] !== 0) throw badRequest("compressed gRPC messages are not supported");
  if (length > all.length - HEAD_BYTES) throw badRequest("the message is incomplete");
  if (length < all.length - HEAD_BYTES) throw badRequest("expected one message, got several");
  return all.subarray(HEAD_BYTES);
}

const brokenOff = (cause?: unknown) => new Refusal(StatusCode.CANCELLED, "the message is incomplete", { cause });

function messageOf(method: DescMethod, bytes: Uint8Array): Message {
  boundBinary(method.input, bytes);
  try {
    return fromBinary(method.input, bytes);
  } catch (error) {
    throw badRequest(`expected a ${method.input.name}: ${(error as Error).message}`);
  }
}

function framed(message: Uint8Array): Uint8Array {
  const frame = new Uint8Array(HEAD_BYTES + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, HEAD_BYTES);
  return frame;
}
