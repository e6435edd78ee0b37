import { create, type DescField, type JsonObject, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { v7 as uuidv7 } from "uuid";
import { StatusCode, type StatusError, StatusSchema } from "../../contract/index.js";
import { METHODS } from "../../contract/operations.js";
import { invalid } from "../../contract/refusal.js";
import { transportCodes } from "../../contract/status-codes.js";
import { asStatusError, logInternal } from "../call-errors.js";
import type { Call, Dispatcher } from "../dispatch.js";
import type { Log } from "../log.js";
import { boundJson } from "../message-values.js";
import { badRequest, headersOf, Refusal, tooLarge, wrongVerb } from "../refusal.js";
import { type BindingMatch, bindingMatcher, httpBindings, type MatchResult } from "./bindings.js";
import { isObject, messageFromJson, placeText, textAt } from "./message-json.js";

export interface TranscoderLimits {
  readonly messageBytes: number;
  readonly mediaBytes: number;
}

/** A request as the bindings read it, independent of the transport. */
export interface HttpRequest {
  readonly verb: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly address: string;
  /** Called once for each request that is answered. */
  ended(): Call["ended"];
  /** Header names in lower case. */
  header(name: string): string | undefined;
  /** The body as a stream. */
  chunks(): AsyncIterable<Uint8Array>;
  /** The whole body; refused if it is longer than `limit`. */
  bytes(limit: number): Promise<Uint8Array>;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The contract's HTTP bindings; `null` at once for any other path. */
export type Transcoder = (request: HttpRequest) => Promise<HttpAnswer> | null;

/** A request id sent by the caller is kept if it is safe to log. */
const REQUEST_ID = /^[\w.:-]{1,64}$/;

export function requestIdOf(given: string | null | undefined): string {
  return given && REQUEST_ID.test(given) ? given : uuidv7();
}

export function createTranscoder(dispatcher: Dispatcher, limits: TranscoderLimits): Transcoder {
  const match = bindingMatcher(httpBindings(METHODS));

  return (request) => {
    const { target } = request;
    const queryAt = target.indexOf("?");
    const found = match(request.verb, queryAt < 0 ? target : target.slice(0, queryAt));
    if (found === null) return null;
    return answer(request, found, queryAt < 0 ? "" : target.slice(queryAt + 1));
  };

  async function answer(request: HttpRequest, found: Exclude<MatchResult, null>, query: string): Promise<HttpAnswer> {
    const requestId = requestIdOf(request.header("x-request-id"));
    if (found === "malformed") return errorAnswer(badRequest("the path is not properly percent-encoded"), requestId);
    if ("otherVerbs" in found) return errorAnswer(wrongVerb(request.verb, found.otherVerbs), requestId);
    const call: Call = {
      protocol: "http",
      authorization: request.header("authorization") ?? null,
      address: request.address,
      requestId,
      ended: request.ended(),
    };
    const { method } = found.binding;
    try {
      const response =
        method.methodKind === "client_streaming"
          ? await dispatcher.clientStream(method, mediaMessages(found, query, request, limits), call)
          : await dispatcher.unary(method, () => unaryMessage(found, query, request, limits), call);
      return jsonAnswer(toJson(method.output, response), 200, requestId);
    } catch (error) {
      return errorAnswer(asStatusError(error), requestId);
    }
  }
}

function jsonAnswer(
  json: JsonValue,
  status: number,
  requestId: string,
  headers: Readonly<Record<string, string>> = {},
): HttpAnswer {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", "x-request-id": requestId, ...headers },
    body: JSON.stringify(json),
  };
}

/** A message about a value may repeat the value, which can be of any length. */
const LONGEST_MESSAGE = 1_000;

/** A response of the operation with only `status` set. */
function errorAnswer(error: StatusError, requestId: string): HttpAnswer {
  error.status.requestId = requestId;
  if (error.status.message.length > LONGEST_MESSAGE)
    error.status.message = `${error.status.message.slice(0, LONGEST_MESSAGE)}…`;
  const json = { status: toJson(StatusSchema, error.status) };
  const status = (error instanceof Refusal && error.httpStatus) || transportCodes(error.code).http;
  return jsonAnswer(json, status, requestId, headersOf(error));
}

/** The answer to an error outside of the operations, which are logged by the dispatcher. */
export function failureAnswer(log: Log, error: unknown, requestId: string): HttpAnswer {
  logInternal(log, error, requestId);
  return errorAnswer(asStatusError(error), requestId);
}

export const brokenOff = (cause?: unknown) =>
  new Refusal(StatusCode.CANCELLED, "the request body is incomplete", { cause });

async function unaryMessage(
  found: BindingMatch,
  query: string,
  request: HttpRequest,
  limits: TranscoderLimits,
): Promise<Message> {
  const { binding } = found;
  let json: JsonObject = {};
  if (binding.body === "*") {
    json = await jsonBody(request, limits.messageBytes);
    // Many clients and proxies send no body with DELETE.
    if (binding.verb === "DELETE" && Object.keys(json).length === 0) bindQuery(json, found, query, []);
    else
      for (const name of new URLSearchParams(query).keys())
        throw invalid(name, "unknown", `${name}: this operation reads its fields from the body, not the query`);
  } else {
    bindQuery(json, found, query, []);
  }
  return messageFromJson(binding.method.input, json, (given) => bindPath(given, found));
}

/** First the fields of the query, then the bytes of the body as they come. */
async function* mediaMessages(
  found: BindingMatch,
  query: string,
  request: HttpRequest,
  limits: TranscoderLimits,
): AsyncGenerator<Message> {
  const { binding } = found;
  const { input } = binding.method;
  // The contract's only stream names its field of bytes.
  const { field } = binding.body as { readonly field: DescField };
  refuseEncodedBody(request);
  if (/^(application\/json|multipart\/)/i.test(request.header("content-type") ?? ""))
    throw badRequest("the body must be the bytes of the recording, sent as audio/wav or application/octet-stream");
  if (Number(request.header("content-length") ?? 0) > limits.mediaBytes)
    throw tooLarge("the recording", limits.mediaBytes);
  const json: JsonObject = {};
  bindQuery(json, found, query, [field.name, field.jsonName]);
  bindPath(json, found);
  yield messageFromJson(input, json);
  try {
    for await (const chunk of request.chunks()) yield create(input, { [field.localName]: chunk });
  } catch (error) {
    throw brokenOff(error);
  }
}

function bindQuery(
  json: JsonObject,
  { binding, variables }: BindingMatch,
  query: string,
  reserved: readonly string[],
): void {
  const given = new URLSearchParams(query);
  for (const name of new Set(given.keys())) {
    if (variables.has(name)) throw invalid(name, "malformed", `${name} is in the path; leave it out of the query`);
    if (reserved.includes(name)) throw invalid(name, "malformed", `${name} is in the body; leave it out of the query`);
    if (textAt(json, binding.method.input, name) !== undefined)
      throw invalid(name, "malformed", `${name} is given twice, in two spellings`);
    placeText(json, binding.method.input, name, given.getAll(name));
  }
}

function bindPath(json: JsonObject, { binding, variables }: BindingMatch): void {
  for (const [name, text] of variables) {
    const inBody = textAt(json, binding.method.input, name);
    if (inBody !== undefined && inBody !== null && inBody !== text)
      throw invalid(name, "contradicts", `${name} differs between path and body`);
    placeText(json, binding.method.input, name, [text]);
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

async function jsonBody(request: HttpRequest, limit: number): Promise<JsonObject> {
  refuseEncodedBody(request);
  const type = request.header("content-type");
  if (type !== undefined && !/^application\/(?:[\w.+-]+\+)?json\s*(;|$)/i.test(type))
    throw badRequest(`the content type must be application/json, got ${type.slice(0, 80)}`);
  if (Number(request.header("content-length") ?? 0) > limit) throw tooLarge("the body", limit);
  const bytes = await request.bytes(limit);
  boundJson(bytes);
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    throw badRequest("the body is not UTF-8");
  }
  if (text.trim() === "") return {};
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw badRequest(`the body is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(json)) throw badRequest("expected a JSON object");
  return json;
}

/** A few bytes may decompress to gigabytes, so nothing is decompressed. */
function refuseEncodedBody(request: HttpRequest): void {
  const encoding = request.header("content-encoding");
  if (encoding !== undefined && encoding !== "identity")
    throw badRequest(`the body must be sent without content encoding, got ${encoding.slice(0, 40)}`);
}
