import type { ServerResponse } from "node:http";
import http2, { type Http2ServerResponse } from "node:http2";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ConnectRouterOptions,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import {
  createAsyncIterable,
  type EnvelopedMessage,
  encodeEnvelope,
  pipe,
  readAllBytes,
  transformDecompressEnvelope,
  transformJoinEnvelopes,
  transformSplitEnvelope,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  endStreamToJson,
  errorFromJsonBytes,
  errorToJsonBytes,
  parseContentType as parseConnectType,
} from "@connectrpc/connect/protocol-connect";
import { parseContentType as parseGrpcType } from "@connectrpc/connect/protocol-grpc";
import { parseContentType as parseGrpcWebType } from "@connectrpc/connect/protocol-grpc-web";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { LONGEST_TIMEOUT_MS } from "../contract/call-limit.js";
import { stackOf } from "../contract/error-causes.js";
import { LiveProcessor, StatusCode, StatusError } from "../contract/index.js";
import { METHODS } from "../contract/operations.js";
import { asStatusError, callerGone, connectErrorOf, endedWith } from "./call-errors.js";
import type { Call, Dispatcher } from "./dispatch.js";
import {
  addHealth,
  createReflection,
  type HealthParts,
  LONGEST_STANDARD_MESSAGE,
  type Reflection,
} from "./grpc-standard.js";
import { createUnaryGrpc } from "./grpc-unary.js";
import { COMPRESSIONS, compressionOf, isGone, plainMessage, sendGrpc, trailersOf } from "./grpc-wire.js";
import type { Caller } from "./guard.js";
import { requestIdOf } from "./http/transcoder.js";
import { headerOf, type NodeHandler, pathOf } from "./listen.js";
import type { Log } from "./log.js";
import { boundBinary, boundJson } from "./message-values.js";
import type { Protocol } from "./metrics.js";
import { badRequest, Refusal } from "./refusal.js";

const address = createContextKey("", { description: "network address of the caller" });
const admission = createContextKey<Promise<Caller> | null>(null, { description: "the guard's answer" });

/** Media types have no case (RFC 9110 §8.3.1). */
const GRPC = /^application\/grpc/i;
const GRPC_WEB = /^application\/grpc-web/i;
const CONNECT_STREAM = /^application\/connect/i;

/** Longer paths are cut in messages. */
const LONGEST_PATH = 200;

const LISTEN_PATH = `/${LiveProcessor.typeName}/${LiveProcessor.method.listen.name}`;

export interface RpcParts {
  readonly dispatcher: Dispatcher;
  readonly messageBytes: number;
  readonly liveIdleSeconds: number;
  readonly log: Log;
  readonly addressOf: (request: Parameters<NodeHandler>[0]) => string;
  readonly health: HealthParts;
}

/** Every method on gRPC, gRPC-Web and Connect, through the same dispatcher as HTTP; `fallback` for all other paths. */
export function createRpcHandler(parts: RpcParts, fallback: NodeHandler): NodeHandler {
  const options: ConnectRouterOptions = {
    acceptCompression: COMPRESSIONS,
    // Responses are not compressed: they are small, errors of Connect must be read again below, and anybody may ask for reflection.
    compressMinBytes: 0xffffffff,
    readMaxBytes: parts.messageBytes,
    // A live call may last hours.
    maxTimeoutMs: LONGEST_TIMEOUT_MS,
    jsonOptions: { ignoreUnknownFields: false },
  };
  const reflection = createReflection();
  const grpc = grpcHandlers(parts, options, reflection);
  const connect = connectHandlers(parts, options);
  const unary = createUnaryGrpc(parts);

  const unsent = (error: unknown) => parts.log.error("a response could not be sent", { stack: stackOf(error) });

  const enter = (handle: Handle, values: ContextValues, ...[request, response]: Parameters<NodeHandler>): void => {
    let call: UniversalServerRequest;
    try {
      call = universalRequestFromNodeRequest(request, response, undefined, values);
    } catch {
      // Host and path are not a URL, or the host is missing.
      response.writeHead(400);
      response.end();
      return;
    }
    handle(call)
      .then((answer) => (pathOf(request) === LISTEN_PATH ? whileRead(answer, response, parts.liveIdleSeconds) : answer))
      .then((answer) => universalResponseToNodeResponse(answer, response))
      .catch((error: unknown) => {
        // The caller disconnected before the response was sent.
        if (ConnectError.from(error).code !== Code.Aborted) unsent(error);
      });
  };

  return (request, response) => {
    const method = unary.methodOf(request);
    if (method) {
      unary.handle(method, request, response, parts.addressOf(request));
      return;
    }
    if (reflection.handles(request)) {
      reflection.handle(request, response as Http2ServerResponse).catch(unsent);
      return;
    }
    const path = pathOf(request);
    const handle = GRPC.test(request.headers["content-type"] ?? "")
      ? (grpc.get(path) ?? unknownMethod)
      : connect.get(path);
    if (!handle) {
      fallback(request, response);
      return;
    }
    const from = parts.addressOf(request);
    const values = createContextValues().set(address, from);
    const refusable = refusableCall(request, PROTECTED.get(path));
    if (!refusable) return enter(handle, values, request, response);
    const caller = parts.dispatcher.admit(request.headers.authorization ?? null, from);
    const notAdmitted = (error: unknown) => {
      const requestId = requestIdOf(headerOf(request, "x-request-id"));
      const call = { protocol: refusable.protocol, address: from, requestId };
      refuse(response, refusable, parts.dispatcher.refused(call, error, refusable.method));
    };
    caller
      .then(
        () =>
          isGone(response)
            ? notAdmitted(callerGone(new Error("the connection closed")))
            : enter(handle, values.set(admission, caller), request, response),
        notAdmitted,
      )
      .catch(unsent);
  };
}

/** Those that need a token, by path. */
const PROTECTED = new Map(METHODS.map((method) => [`/${method.parent.typeName}/${method.name}`, method]));

interface RefusableCall {
  readonly method: DescMethod;
  readonly protocol: Protocol;
  /** Type of the response. */
  readonly type: string;
}

/** A call that needs a token, in a form that the framework accepts. It refuses others before it reads anything of them. */
function refusableCall(request: Parameters<NodeHandler>[0], method: DescMethod | undefined): RefusableCall | null {
  if (!method || request.method !== "POST") return null;
  if (method.methodKind === "bidi_streaming" && request.httpVersionMajor === 1) return null;
  const given = request.headers["content-type"] ?? null;
  const ending = ({ binary }: { readonly binary: boolean }) => (binary ? "+proto" : "+json");
  const grpc = parseGrpcType(given);
  if (grpc) return { method, protocol: "grpc", type: `application/grpc${ending(grpc)}` };
  const web = parseGrpcWebType(given);
  if (web && !web.text) return { method, protocol: "grpc-web", type: `application/grpc-web${ending(web)}` };
  const connect = parseConnectType(given);
  if (!connect || connect.stream !== (method.methodKind !== "unary")) return null;
  return {
    method,
    protocol: "connect",
    type: connect.stream ? `application/connect${ending(connect)}` : "application/json",
  };
}

/** The framework's answer, at a fraction of its cost: anybody can cause it as often as they like. */
function refuse(response: Parameters<NodeHandler>[1], { method, protocol, type }: RefusableCall, error: StatusError) {
  const { requestId } = error.status;
  if (protocol !== "connect") return sendGrpc(response, type, requestId, trailersOf(error));
  if (isGone(response)) return;
  const failure = connectErrorOf(error);
  // HTTP/1.1 and HTTP/2 have different types but accept the same.
  const http1 = response as ServerResponse;
  if (method.methodKind === "unary") {
    const body = errorToJsonBytes(failure, undefined);
    const headers = { "content-type": type, "content-length": body.length, ...Object.fromEntries(failure.metadata) };
    http1.writeHead(codeToHttpStatus(failure.code), headers).end(body);
  } else {
    const last = JSON.stringify(endStreamToJson(new Headers(), failure, undefined));
    const body = encodeEnvelope(endStreamFlag, Buffer.from(last));
    http1.writeHead(200, { "content-type": type, "x-request-id": requestId }).end(body);
  }
}

/**
 * Cuts off a live call whose client takes no messages for this long. The call waits for it and does not see time pass,
 * and pings keep its connection busy.
 */
function whileRead(
  answer: UniversalServerResponse,
  response: Parameters<NodeHandler>[1],
  seconds: number,
): UniversalServerResponse {
  // A request that cannot be read is answered without messages.
  if (!answer.body) return answer;
  const messages = answer.body[Symbol.asyncIterator]();
  let unread: NodeJS.Timeout | undefined;
  let hasEnded = false;
  /** The next message is asked for when the last one has been taken. */
  const next = async () => {
    clearTimeout(unread);
    const message = await messages.next();
    if (!message.done && !hasEnded) unread = setTimeout(() => cutOff(response), seconds * 1000);
    return message;
  };
  const end = (step: "return" | "throw") => async (reason?: unknown) => {
    // A message that comes now is taken by nobody.
    hasEnded = true;
    clearTimeout(unread);
    return (await messages[step]?.(reason)) ?? { done: true as const, value: undefined };
  };
  // The framework waits forever for a message to be taken on a stream that has closed, and the call with it.
  response.once("close", () => void end("return")().catch(() => {}));
  const watched = { next, return: end("return"), throw: end("throw") };
  return { ...answer, body: { [Symbol.asyncIterator]: () => watched } };
}

function cutOff(response: Parameters<NodeHandler>[1]): void {
  if (!("stream" in response)) return void response.destroy();
  response.stream.close(http2.constants.NGHTTP2_CANCEL);
  // A closed stream would still wait for somebody to read what the client sent.
  response.stream.destroy();
}

type Handle = (...request: Parameters<UniversalHandler>) => ReturnType<UniversalHandler>;

/** A client of gRPC-Web reads the status of an answer without messages from its headers. */
const unknownMethod: Handle = async ({ url, header }) => {
  const path = new URL(url).pathname.slice(0, LONGEST_PATH);
  const refused = new Refusal(StatusCode.NOT_IMPLEMENTED, `there is no method ${path}`);
  refused.status.requestId = requestIdOf(header.get("x-request-id"));
  const type = header.get("content-type") ?? "";
  const status = new Headers({ ...trailersOf(refused) });
  return GRPC_WEB.test(type)
    ? { status: 200, header: new Headers([["content-type", type], ...status]) }
    : { status: 200, header: new Headers({ "content-type": type }), body: createAsyncIterable([]), trailer: status };
};

/**
 * In gRPC a single message looks like a stream of one, so every method is registered as a stream. Its message is then
 * read where errors get the contract's status, and only after the caller is admitted.
 */
function grpcHandlers(parts: RpcParts, options: ConnectRouterOptions, reflection: Reflection): Map<string, Handle> {
  const { dispatcher, health } = parts;
  const router = createConnectRouter(options);
  for (const method of METHODS) {
    if (method.methodKind !== "unary") {
      router.rpc(method, streaming(dispatcher, method) as never);
      continue;
    }
    const unary = (requests: AsyncIterable<Message>, context: HandlerContext) =>
      answer(context, (call) => dispatcher.unary(method, () => onlyMessage(requests), call));
    router.rpc({ ...method, methodKind: "client_streaming" } as DescMethod, unary as never);
  }
  const standard = createConnectRouter({ ...options, readMaxBytes: LONGEST_STANDARD_MESSAGE });
  addHealth(standard, health);
  reflection.add(standard);
  return new Map([
    ...router.handlers.map((handler): [string, Handle] => [
      handler.requestPath,
      withPlainMessage((request) => handler(boundStream(request, handler.method, parts.messageBytes))),
    ]),
    // Their messages are too short to have many values.
    ...standard.handlers.map((handler): [string, Handle] => [handler.requestPath, withPlainMessage(handler)]),
  ]);
}

function connectHandlers(parts: RpcParts, options: ConnectRouterOptions): Map<string, Handle> {
  const { dispatcher } = parts;
  const router = createConnectRouter(options);
  for (const method of METHODS) {
    const unary = (request: Message, context: HandlerContext) =>
      answer(context, (call) => dispatcher.unary(method, async () => request, call));
    router.rpc(method, (method.methodKind === "unary" ? unary : streaming(dispatcher, method)) as never);
  }
  return new Map(
    router.handlers.map((handler) => [
      handler.requestPath,
      handler.method.methodKind === "unary"
        ? withStatus((request) => handler(boundUnary(request, handler.method, parts)), handler.method, dispatcher)
        : (request) => handler(boundStream(request, handler.method, parts.messageBytes)),
    ]),
  );
}

/** Before the framework decodes a message, its values are counted; for that it must be decompressed here. */
function boundMessage({ header }: UniversalServerRequest, { input }: DescMethod, bytes: Uint8Array): void {
  try {
    if (/json/i.test(header.get("content-type") ?? "")) boundJson(bytes);
    else boundBinary(input, bytes);
  } catch (error) {
    throw new ConnectError((error as Error).message, Code.InvalidArgument);
  }
}

/** The header without the encoding and the length that it gives, and what undoes the encoding. The framework refuses one that is unknown. */
function decoded(request: UniversalServerRequest, encodingName: string) {
  const compression = compressionOf(request.header.get(encodingName));
  const header = new Headers(request.header);
  if (compression) header.delete(encodingName);
  header.delete("content-length");
  return { header, compression };
}

function boundStream(request: UniversalServerRequest, method: DescMethod, limit: number): UniversalServerRequest {
  const isConnect = CONNECT_STREAM.test(request.header.get("content-type") ?? "");
  const { header, compression } = decoded(request, isConnect ? "connect-content-encoding" : "grpc-encoding");
  if (compression === undefined) return request;
  const counted = async function* (messages: AsyncIterable<EnvelopedMessage>) {
    for await (const message of messages) {
      boundMessage(request, method, message.data);
      yield message;
    }
  };
  const body = pipe(
    request.body as AsyncIterable<Uint8Array>,
    transformSplitEnvelope(limit),
    transformDecompressEnvelope(compression, limit),
    counted,
    transformJoinEnvelopes(),
    { propagateDownStreamError: true },
  );
  return { ...request, header, body };
}

/** The framework decodes the message before it calls us. */
function boundUnary(
  request: UniversalServerRequest,
  method: DescMethod,
  { dispatcher, messageBytes }: RpcParts,
): UniversalServerRequest {
  const { header, compression } = decoded(request, "content-encoding");
  if (request.method !== "POST" || compression === undefined) return request;
  const body = async function* () {
    const sent = request.body as AsyncIterable<Uint8Array>;
    const ended = new AbortController();
    const end = () => ended.abort(callerGone(new ConnectError("the deadline passed", Code.DeadlineExceeded)));
    // The framework begins to watch it when the message is there, and refuses one that is too long.
    const timeoutMs = Number(header.get("connect-timeout-ms") ?? Number.NaN);
    const deadline = timeoutMs <= LONGEST_TIMEOUT_MS ? setTimeout(end, timeoutMs) : undefined;
    let bytes = await dispatcher
      .reading(() => readAllBytes(sent, messageBytes), ended.signal)
      .catch(async (error: unknown) => {
        throw error instanceof StatusError ? await unread(error, request, method, dispatcher) : error;
      })
      .finally(() => clearTimeout(deadline));
    if (compression) bytes = await compression.decompress(bytes, messageBytes);
    boundMessage(request, method, bytes);
    yield bytes;
  };
  return { ...request, header, body: body() };
}

/** The trailers are known when the body has ended. */
function withPlainMessage(handler: Handle): Handle {
  return async (request) => {
    const response = await handler(request);
    const { body, trailer } = response;
    if (!trailer) return response;
    const whole = async function* () {
      yield* body as AsyncIterable<Uint8Array>;
      plainMessage(trailer);
    };
    return { ...response, body: whole() };
  };
}

/** A recording in pieces, or a call as it is spoken. */
const streaming = (dispatcher: Dispatcher, method: DescMethod) =>
  method.methodKind === "bidi_streaming"
    ? async function* (requests: AsyncIterable<Message>, context: HandlerContext): AsyncGenerator<Message> {
        try {
          yield* dispatcher.live(requests, callOf(context));
        } catch (error) {
          throw connectErrorOf(asStatusError(error));
        }
      }
    : (requests: AsyncIterable<Message>, context: HandlerContext) =>
        answer(context, (call) => dispatcher.clientStream(method, requests, call));

async function onlyMessage(messages: AsyncIterable<Message>): Promise<Message> {
  let only: Message | null = null;
  for await (const message of messages) {
    if (only !== null) throw badRequest("expected one message, got several");
    only = message;
  }
  if (only === null) throw badRequest("expected one message, got none");
  return only;
}

/** A message that Connect cannot parse never reaches an operation; its error gets the contract's status here. */
function withStatus(handler: Handle, method: DescMethod, dispatcher: Dispatcher): Handle {
  return async (request) => {
    const response = await handler(request);
    if (response.status === 200 || !response.header?.get("content-type")?.startsWith("application/json"))
      return response;
    const bytes = await readAllBytes(response.body as AsyncIterable<Uint8Array>, Number.POSITIVE_INFINITY);
    const refused = errorFromJsonBytes(bytes, undefined, new ConnectError("the request cannot be read"));
    if (refused.details.length > 0) return { ...response, body: createAsyncIterable([bytes]) };
    const error = await unread(asStatusError(refused), request, method, dispatcher);
    const body = errorToJsonBytes(error, undefined);
    const header = new Headers(response.header);
    error.metadata.forEach((value, name) => {
      header.set(name, value);
    });
    header.set("content-length", String(body.byteLength));
    return { ...response, status: codeToHttpStatus(error.code), header, body: createAsyncIterable([body]) };
  };
}

/** The error of a call whose message never reaches the dispatcher. */
async function unread(
  error: StatusError,
  { header, contextValues }: UniversalServerRequest,
  method: DescMethod,
  dispatcher: Dispatcher,
): Promise<ConnectError> {
  const values = contextValues ?? createContextValues();
  const requestId = requestIdOf(header.get("x-request-id"));
  const call = { protocol: "connect", address: values.get(address), requestId } as const;
  return connectErrorOf(dispatcher.refused(call, error, method, (await values.get(admission))?.id));
}

function callOf(context: HandlerContext): Call {
  const requestId = requestIdOf(context.requestHeader.get("x-request-id"));
  context.responseHeader.set("x-request-id", requestId);
  const caller = context.values.get(admission);
  return {
    protocol: context.protocolName as Protocol,
    authorization: context.requestHeader.get("authorization"),
    ...(caller && { caller }),
    address: context.values.get(address),
    requestId,
    ended: endedWith(context.signal),
  };
}

async function answer(context: HandlerContext, dispatch: (call: Call) => Promise<Message>): Promise<Message> {
  try {
    return await dispatch(callOf(context));
  } catch (error) {
    throw connectErrorOf(asStatusError(error));
  }
}
