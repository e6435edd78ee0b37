import type { DescMethod, Message } from "@bufbuild/protobuf";
import {
  type Code,
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import { type StatusError, StatusSchema } from "../contract/index.js";
import { transportCodes } from "../contract/status-codes.js";
import { asStatusError, type Call, type Dispatcher } from "./dispatch.js";
import { requestIdOf } from "./http/transcoder.js";
import type { Protocol } from "./metrics.js";
import { METHODS } from "./operations.js";
import { headersOf } from "./refusal.js";

const address = createContextKey("", { description: "network address of the caller" });

export const contextValuesFor = (remoteAddress: string | undefined) =>
  createContextValues().set(address, remoteAddress ?? "");

/** Every method on gRPC, gRPC-Web and Connect, through the same dispatcher as HTTP. */
export function rpcRoutes(dispatcher: Dispatcher): (router: ConnectRouter) => void {
  return (router) => {
    for (const method of METHODS) {
      router.rpc(method, implementation(dispatcher, method) as never);
    }
  };
}

function implementation(dispatcher: Dispatcher, method: DescMethod) {
  switch (method.methodKind) {
    case "unary":
      return (request: Message, context: HandlerContext) =>
        answer(context, (call) => dispatcher.unary(method, request, call));
    case "client_streaming":
      return (requests: AsyncIterable<Message>, context: HandlerContext) =>
        answer(context, (call) => dispatcher.clientStream(method, requests, call));
    default:
      throw new TypeError(`${method.name}: streams of answers are not in the contract`);
  }
}

async function answer(context: HandlerContext, dispatch: (call: Call) => Promise<Message>): Promise<Message> {
  const requestId = requestIdOf(context.requestHeader.get("x-request-id"));
  context.responseHeader.set("x-request-id", requestId);
  try {
    return await dispatch({
      protocol: context.protocolName as Protocol,
      authorization: context.requestHeader.get("authorization"),
      address: context.values.get(address),
      requestId,
      signal: context.signal,
    });
  } catch (error) {
    throw connectErrorOf(asStatusError(error));
  }
}

/** The canonical code, with the contract's status in the details. */
export function connectErrorOf(error: StatusError): ConnectError {
  return new ConnectError(
    error.message,
    transportCodes(error.code).grpc as Code,
    { "x-request-id": error.status.requestId, ...headersOf(error) },
    [{ desc: StatusSchema, value: error.status }],
    error,
  );
}
