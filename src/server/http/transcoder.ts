import { create, type JsonObject, type JsonValue, type Message } from "@bufbuild/protobuf";
import { v7 as uuidv7 } from "uuid";
import { StatusCode, type StatusError, StatusSchema } from "../../contract/index.js";
import { transportCodes } from "../../contract/status-codes.js";
import { asStatusError, type Call, type Dispatcher } from "../dispatch.js";
import { METHODS } from "../operations.js";
import { badRequest, headersOf, invalidField, Refusal, tooLarge } from "../refusal.js";
import { type BindingMatch, bindingMatcher, httpBindings } from "./bindings.js";
import { messageFromJson, messageToJson, placeText, textAt } from "./message-json.js";

export interface TranscoderLimits {
  readonly messageBytes: number;
  readonly mediaBytes: number;
}

/** A caller's own id for a request is kept where it is one a log can carry. */
const REQUEST_ID = /^[\w.:-]{1,64}$/;

export function requestIdOf(given: string | null | undefined): string {
  return given && REQUEST_ID.test(given) ? given : uuidv7();
}

/** What the connection knows of a caller. */
export interface Caller extends Pick<Call, "address" | "signal"> {
  /** The body's bytes straight from the connection, where there is one: a web stream around them costs more than the call. */
  readonly body?: () => AsyncIterable<Uint8Array>;
}

/** The contract's HTTP bindings: `null` when the path is none of them. */
export function createTranscoder(dispatcher: Dispatcher, limits: TranscoderLimits) {
  const match = bindingMatcher(httpBindings(METHODS));

  return async (request: Request, { address, signal, body }: Caller): Promise<Response | null> => {
    const url = new URL(request.url);
    const found = match(request.method, url.pathname);
    if (found === null) return null;
    const requestId = requestIdOf(request.headers.get("x-request-id"));
    if (found === "malformed") return errorResponse(badRequest("the path is not properly percent-encoded"), requestId);
    if ("otherVerbs" in found) {
      const allow = found.otherVerbs.join(", ");
      const message = `this path knows no ${request.method}, only ${allow}`;
      return errorResponse(new Refusal(StatusCode.NOT_FOUND, message, { headers: { allow } }), requestId);
    }
    const call: Call = {
      protocol: "http",
      authorization: request.headers.get("authorization"),
      address,
      requestId,
      signal,
    };
    const { method } = found.binding;
    try {
      const response =
        method.methodKind === "client_streaming"
          ? await dispatcher.clientStream(method, mediaMessages(found, url, request, body, limits), call)
          : await dispatcher.unary(method, () => unaryMessage(found, url, request, body, limits), call);
      return jsonResponse(messageToJson(method.output, response), 200, requestId);
    } catch (error) {
      return errorResponse(asStatusError(error), requestId);
    }
  };
}

export function jsonResponse(
  json: JsonValue,
  status: number,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(JSON.stringify(json), {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", "x-request-id": requestId, ...headers },
  });
}

/** An operation's response with nothing but `status`. */
export function errorResponse(error: StatusError, requestId: string): Response {
  error.status.requestId = requestId;
  const json = { status: messageToJson(StatusSchema, error.status) };
  return jsonResponse(json, transportCodes(error.code).http, requestId, headersOf(error));
}

async function unaryMessage(
  found: BindingMatch,
  url: URL,
  request: Request,
  body: Caller["body"],
  limits: TranscoderLimits,
): Promise<Message> {
  const { binding } = found;
  const schema = binding.method.input;
  let json: JsonObject = {};
  if (binding.body === "*") {
    json = await jsonBody(request, body, limits.messageBytes);
    for (const name of url.searchParams.keys()) {
      throw invalidField(name, "unknown", `${name}: this operation reads its fields from the body, not from the query`);
    }
  } else {
    bindQuery(json, found, url, []);
  }
  bindPath(json, found);
  return messageFromJson(schema, json);
}

/** First the fields of the query, then the body's bytes as they come. */
async function* mediaMessages(
  found: BindingMatch,
  url: URL,
  request: Request,
  body: Caller["body"],
  limits: TranscoderLimits,
): AsyncGenerator<Message> {
  const { binding } = found;
  const { input } = binding.method;
  if (binding.body === null || binding.body === "*")
    throw new TypeError(`${binding.method.name}: a stream needs a body of bytes`);
  const { field } = binding.body;
  refuseEncodedBody(request);
  if (/^(application\/json|multipart\/)/i.test(request.headers.get("content-type") ?? "")) {
    throw badRequest("the body must be the recording's bytes themselves, as audio/wav or application/octet-stream");
  }
  if (Number(request.headers.get("content-length") ?? 0) > limits.mediaBytes)
    throw tooLarge("the recording", limits.mediaBytes);
  const json: JsonObject = {};
  bindQuery(json, found, url, [field.name, field.jsonName]);
  bindPath(json, found);
  yield messageFromJson(input, json);
  for await (const chunk of bodyOf(request, body)) yield create(input, { [field.localName]: chunk });
}

function bodyOf(request: Request, body: Caller["body"]): AsyncIterable<Uint8Array> | Uint8Array[] {
  return body ? unbroken(body()) : request.body ? bytesOf(request.body) : [];
}

async function* unbroken(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw brokenOff(error);
  }
}

async function* bytesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => Promise.reject(brokenOff(error)));
      if (done) {
        ended = true;
        return;
      }
      yield value;
    }
  } finally {
    if (!ended) reader.cancel().catch(() => {});
  }
}

function bindQuery(
  json: JsonObject,
  { binding, variables }: BindingMatch,
  url: URL,
  reserved: readonly string[],
): void {
  for (const name of new Set(url.searchParams.keys())) {
    if (variables.has(name)) throw invalidField(name, "malformed", `${name} stands in the path`);
    if (reserved.includes(name)) throw invalidField(name, "malformed", `${name} stands in the body`);
    placeText(json, binding.method.input, name, url.searchParams.getAll(name));
  }
}

function bindPath(json: JsonObject, { binding, variables }: BindingMatch): void {
  for (const [name, text] of variables) {
    const inBody = textAt(json, binding.method.input, name);
    if (inBody !== undefined && inBody !== text) {
      throw invalidField(name, "contradicts", `${name} is one thing in the path and another in the body`);
    }
    placeText(json, binding.method.input, name, [text]);
  }
}

async function jsonBody(request: Request, body: Caller["body"], limit: number): Promise<JsonObject> {
  refuseEncodedBody(request);
  const type = request.headers.get("content-type");
  if (type !== null && !/^application\/(?:[\w.+-]+\+)?json\s*(;|$)/i.test(type)) {
    throw badRequest(`application/json expected, not ${type.slice(0, 80)}`);
  }
  const bytes = await bodyBytes(request, body, limit);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badRequest("the body is not UTF-8");
  }
  if (text.trim() === "") return {};
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw badRequest(`the body is not JSON: ${error instanceof Error ? error.message : ""}`);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw badRequest("a JSON object expected");
  return json;
}

async function bodyBytes(request: Request, body: Caller["body"], limit: number): Promise<Uint8Array> {
  if (Number(request.headers.get("content-length") ?? 0) > limit) throw tooLarge("the body", limit);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of bodyOf(request, body)) {
    bytes += chunk.length;
    if (bytes > limit) throw tooLarge("the body", limit);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

const brokenOff = (cause: unknown) => new Refusal(StatusCode.CANCELLED, "the body broke off", { cause });

/** A few bytes may unpack to gigabytes: nothing is unpacked. */
function refuseEncodedBody(request: Request): void {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity")
    throw badRequest(`the body must not be encoded (${encoding.slice(0, 40)})`);
}
