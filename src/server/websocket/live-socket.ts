/**
 * Listen over WebSocket, at /v1/live: text frames are `ListenRequest`s and `ListenResponse`s as JSON, binary frames are
 * audio. The token is in the header or, from a browser, in a second subprotocol `bearer.TOKEN`.
 */
import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type ListenRequest,
  ListenRequestSchema,
  ListenResponseSchema,
  StatusCode,
  StatusError,
} from "../../contract/index.js";
import { asStatusError, callerGone } from "../call-errors.js";
import type { Dispatcher } from "../dispatch.js";
import type { Caller, Guard } from "../guard.js";
import { isObject, messageFromJson } from "../http/message-json.js";
import { LiveMessages } from "../live-messages.js";
import { boundJson } from "../message-values.js";
import { badRequest } from "../refusal.js";
import type { OpenSocket } from "./open-socket.js";
import type { SocketRoute } from "./sockets.js";

export const LIVE_PATH = "/v1/live";
export const LIVE_PROTOCOL = "vivavoce.live.v1";
const BEARER = "bearer.";
const WAITING_MESSAGES = 64;

export function liveSocketRoute(dispatcher: Dispatcher, guard: Guard): SocketRoute {
  return {
    protocol: (offered) => (offered.has(LIVE_PROTOCOL) ? LIVE_PROTOCOL : false),
    async open({ request, address, requestId }) {
      const offered = request.headers["sec-websocket-protocol"];
      let caller: Caller;
      try {
        caller = await guard.admit(request.headers.authorization ?? bearerOf(offered) ?? null, address);
      } catch (error) {
        const refused = dispatcher.refused({ protocol: "websocket", address, requestId }, error);
        // A page cannot see why a handshake failed, so a peer that speaks our protocol is told in it.
        const isOurs = offered?.split(/ *, */).includes(LIVE_PROTOCOL);
        if (!isOurs || !(error instanceof StatusError)) throw error;
        return { refused, protocol: LIVE_PROTOCOL, text: textOf(refused), code: closeCode(refused) };
      }
      return (socket) => {
        const ended = new AbortController();
        const call = { protocol: "websocket", authorization: null, caller, address, requestId, ended } as const;
        void converse(socket, (messages) => dispatcher.live(messages, call), ended);
      };
    },
  };
}

function bearerOf(offered: string | undefined): string | undefined {
  const token = offered?.split(",").find((name) => name.trim().startsWith(BEARER));
  return token && `Bearer ${token.trim().slice(BEARER.length)}`;
}

async function converse(
  socket: OpenSocket,
  listen: (messages: AsyncIterable<ListenRequest>) => ReturnType<Dispatcher["live"]>,
  ended: AbortController,
): Promise<void> {
  const messages = new LiveMessages(WAITING_MESSAGES, socket);
  socket.on("message", (data, isBinary) => {
    try {
      if (isBinary) messages.audio(data);
      else messages.push(jsonMessage(data));
    } catch (error) {
      messages.fail(error);
    }
  });
  socket.on("close", () => ended.abort(callerGone(new Error("the connection closed"))));
  try {
    for await (const response of listen(messages)) socket.send(JSON.stringify(toJson(ListenResponseSchema, response)));
    socket.close(1000);
  } catch (error) {
    const refused = asStatusError(error);
    if (socket.readyState === socket.OPEN) socket.send(textOf(refused));
    socket.close(closeCode(refused));
  }
}

const textOf = ({ status }: StatusError): string =>
  JSON.stringify(toJson(ListenResponseSchema, create(ListenResponseSchema, { status })));

function jsonMessage(data: Buffer): ListenRequest {
  boundJson(data);
  let json: JsonValue | undefined;
  try {
    json = JSON.parse(data.toString("utf8"));
  } catch {
    // Refused like JSON of another kind.
  }
  if (!isObject(json)) throw badRequest("a text frame must be a ListenRequest as JSON");
  return messageFromJson(ListenRequestSchema, json) as ListenRequest;
}

/** RFC 6455 §7.4.1 and the registry: policy, try again later, internal error. */
function closeCode({ code }: StatusError): number {
  if (code === StatusCode.BUSY || code === StatusCode.RATE_EXCEEDED) return 1013;
  return code === StatusCode.INTERNAL_ERROR ? 1011 : 1008;
}
