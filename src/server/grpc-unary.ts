import type { EventEmitter } from "node:events";
import { create, type DescMethod, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { stackOf } from "../contract/error-causes.js";
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponseSchema,
} from "../contract/gen/grpc/health/v1/health_pb.js";
import { StatusCode } from "../contract/index.js";
import { orAborted } from "../contract/on-abort.js";
import { METHODS } from "../contract/operations.js";
import { asStatusError, callerGone } from "./call-errors.js";
import type { Call, Dispatcher } from "./dispatch.js";
import { type HealthParts, healthCheck, LONGEST_STANDARD_MESSAGE } from "./grpc-standard.js";
import { FINE, GRPC, HEAD_BYTES, messageOf, plainTypeOf, sendGrpc, trailersOf, unexpectedFlags } from "./grpc-wire.js";
import { requestIdOf } from "./http/transcoder.js";
import { headerOf, type NodeRequest, type NodeResponse } from "./listen.js";
import type { Log } from "./log.js";
import { badRequest, Refusal, tooLarge } from "./refusal.js";
import { wholeBody } from "./whole-body.js";

interface UnaryMethod {
  readonly method: DescMethod;
  readonly longestMessage: number;
  readonly run: (read: () => Promise<Message>, call: Call) => Promise<Message>;
}

const LONGEST_TIMEOUT_MS = 3_600_000;
const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * A plain unary call of gRPC or gRPC-Web, directly on its request: the framework's pipeline costs more than the rest of
 * the call. Handles what nearly every client sends, one binary uncompressed message; everything else goes to the framework.
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
    run: async (read, { ended }) => {
      const request = (await orAborted(read(), ended.signal)) as HealthCheckRequest;
      return create(HealthCheckResponseSchema, await check(request));
    },
  });
  const paths = new Map(methods.map((one) => [`/${one.method.parent.typeName}/${one.method.name}`, one]));

  async function answer(
    { method, longestMessage, run }: UnaryMethod,
    request: NodeRequest,
    response: NodeResponse,
    address: string,
  ): Promise<void> {
    const type = plainTypeOf(request)!;
    const requestId = requestIdOf(headerOf(request, "x-request-id"));
    let trailers: Readonly<Record<string, string>> = FINE;
    let message: Uint8Array | null = null;
    const caller = watch("stream" in request ? request.stream : response);
    try {
      const answered = await run(
        async () => {
          caller.endAfter(timeoutMs(headerOf(request, "grpc-timeout")));
          return messageOf(method, await onlyFrame(request, longestMessage));
        },
        {
          protocol: type === GRPC ? "grpc" : "grpc-web",
          authorization: request.headers.authorization ?? null,
          address,
          requestId,
          ended: caller.ended,
        },
      );
      message = toBinary(method.output, answered);
    } catch (error) {
      const refused = asStatusError(error);
      // The dispatcher has set it, except for a health check, which does not go through it.
      refused.status.requestId = requestId;
      trailers = trailersOf(refused);
    } finally {
      caller.forget();
    }
    sendGrpc(response, type, requestId, trailers, message);
  }

  return {
    /** The method, if this code handles the call. */
    methodOf: (request: NodeRequest) => (plainTypeOf(request) ? paths.get(request.url!) : undefined),
    handle(method: UnaryMethod, request: NodeRequest, response: NodeResponse, address: string): void {
      answer(method, request, response, address).catch((error: unknown) =>
        log.error("a response could not be sent", { stack: stackOf(error) }),
      );
    },
  };
}

/** Aborts when the caller disconnects or its deadline passes. */
function watch(stream: EventEmitter) {
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
    throw badRequest(
      `the grpc-timeout header must be 1 to 8 digits and a unit (H, M, S, m, u or n), got "${text.slice(0, 40)}"`,
      "grpc-timeout",
    );
  return Math.min(LONGEST_TIMEOUT_MS, Number(value) * UNIT_MS[unit]!);
}

/** The payload of the single frame of a stream. */
async function onlyFrame(request: NodeRequest, limit: number): Promise<Uint8Array> {
  const stream = "stream" in request ? request.stream : request;
  // An empty body may have ended during authentication; no event would follow.
  if (stream.readableEnded) throw badRequest("expected one message, got none");
  const all = await wholeBody(stream, HEAD_BYTES + limit, {
    tooLarge: () => tooLarge("the message", limit),
    brokenOff,
  });
  if (all.length === 0) throw badRequest("expected one message, got none");
  if (all.length < HEAD_BYTES) throw badRequest("the message is incomplete");
  const length = new DataView(all.buffer, all.byteOffset).getUint32(1);
  if (all[0] !== 0) throw unexpectedFlags(all[0]!);
  if (length > all.length - HEAD_BYTES) throw badRequest("the message is incomplete");
  if (length < all.length - HEAD_BYTES) throw badRequest("expected one message, got several");
  return all.subarray(HEAD_BYTES);
}

const brokenOff = (cause?: unknown) => new Refusal(StatusCode.CANCELLED, "the message is incomplete", { cause });
