import { type DescMethod, fromJson, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import {
  type AddMediaSegmentRequestSchema,
  AddMediaSegmentResponseSchema,
  StatusCode,
  StatusError,
  StatusSchema,
} from "../contract/index.js";
import { type OperationOptions, type Operations, SERVICES } from "../contract/operations.js";
import { createTokenCache, TokenRequestError } from "../token/cache.js";
import { retrying } from "./retry.js";

/** Client credentials of an application, as a box prints them at its first start. */
export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
  /** `<url>/oauth2/token` when absent. */
  readonly tokenUrl?: string;
}

/** A box, and how a client shows who it is. */
export interface ConnectOptions {
  /** Address of the box: `https://voice.example.com:8080`. */
  readonly url: string;
  /** A token, or what gets one; absent where the box asks for none. */
  readonly token?: string | (() => Promise<string>);
  readonly credentials?: Credentials;
  readonly fetch?: typeof globalThis.fetch;
  /** How often to retry after BUSY or RATE_EXCEEDED, each time after the delay that the box names. */
  readonly retries?: number;
  /** A call ends after this long. */
  readonly timeoutMs?: number;
}

/** The operations of a box: the same interface that a processor has in process. */
export function connect(options: ConnectOptions): Operations {
  const url = options.url.replace(/\/+$/, "");
  const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  const tokens = tokenSource(options, url, fetch);
  const again = retrying(options.retries ?? 5);
  /** After BUSY, waits as the box asked; after a rejected token, gets a new token, once. */
  const retry = <T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> =>
    again(
      () =>
        call().catch((error: unknown) => {
          if (!tokens.another(error)) throw error;
          return call();
        }),
      signal,
    );

  const authorize: Interceptor = (next) => async (request) => {
    const token = await tokens.next();
    if (token !== null) request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: url,
    fetch,
    useBinaryFormat: true,
    interceptors: [authorize],
    ...(options.timeoutMs === undefined ? {} : { defaultTimeoutMs: options.timeoutMs }),
  });

  /** Fetch cannot stream a request everywhere; the recording goes whole, over the contract's HTTP binding. */
  const addMediaSegment: Operations["addMediaSegment"] = async (request, callOptions = {}) => {
    const { query, bytes } = await wholeRecording(request);
    const limits = [callOptions.signal, timeLimit(callOptions.timeoutMs ?? options.timeoutMs)].filter(
      (signal) => !!signal,
    );
    const signal = limits.length > 1 ? AbortSignal.any(limits) : limits[0];
    return retry(async () => {
      const token = await tokens.next();
      const response = await fetch(`${url}/v1/audios?${query}`, {
        method: "POST",
        body: bytes as BodyInit,
        headers: {
          "content-type": query.has("encoding") ? "application/octet-stream" : "audio/wav",
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...requestIdHeader(callOptions),
        },
        ...(signal ? { signal } : {}),
      }).catch((error: unknown) => Promise.reject(statusErrorOf(error)));
      return mediaAnswer(response);
    }, signal);
  };

  /** The framework wraps whatever is thrown inside it, so statuses are unwrapped and calls made again around it. */
  const call = (method: DescMethod, send: UnaryCall) => {
    const operation = (request: object, callOptions: OperationOptions = {}) =>
      retry(
        () =>
          send(request, {
            headers: requestIdHeader(callOptions),
            ...(callOptions.signal && { signal: callOptions.signal }),
            ...(callOptions.timeoutMs !== undefined && { timeoutMs: callOptions.timeoutMs }),
          }).catch((error: unknown) => Promise.reject(statusErrorOf(error))),
        callOptions.signal,
      );
    return [method.localName, operation] as const;
  };
  const unary = SERVICES.flatMap((service) => {
    const client = createClient(service, transport) as Record<string, UnaryCall>;
    return service.methods
      .filter(({ methodKind }) => methodKind === "unary")
      .map((method) => call(method, client[method.localName]!));
  });
  // Every unary method of the descriptors, which is all of the interface but the one upload.
  return { ...(Object.fromEntries(unary) as Omit<Operations, "addMediaSegment">), addMediaSegment };
}

const requestIdHeader = ({ requestId }: OperationOptions): Record<string, string> =>
  requestId === undefined ? {} : { "x-request-id": requestId };

/** A timer that is set for longer goes off at once. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

const timeLimit = (ms: number | undefined): AbortSignal | undefined =>
  ms === undefined ? undefined : AbortSignal.timeout(Math.min(ms, LONGEST_TIMEOUT_MS));

interface TokenSource {
  /** `null`: the box is asked without one. */
  next(): Promise<string | null>;
  /** Whether the next token may fare better with a box that answered so; it is another one then. */
  another(refusal: unknown): boolean;
}

/** What gets a token for one connection after the other; `null` where the box asks for none. */
export function tokensOf(options: ConnectOptions): () => Promise<string | null> {
  const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  return tokenSource(options, options.url.replace(/\/+$/, ""), fetch).next;
}

function tokenSource({ token, credentials }: ConnectOptions, url: string, fetch: typeof globalThis.fetch): TokenSource {
  if (token !== undefined && credentials) throw new TypeError("pass either token or credentials, not both");
  if (!credentials)
    return { next: async () => (typeof token === "function" ? token() : (token ?? null)), another: () => false };
  const { clientId, clientSecret, tokenUrl = `${url}/oauth2/token` } = credentials;
  const cache = createTokenCache({ tokenUrl, clientId, clientSecret, scope: "bio", fetch });
  let last = "";
  return {
    async next() {
      try {
        last = await cache.token();
        return last;
      } catch (error) {
        if (!(error instanceof TokenRequestError)) throw error;
        const statusCode = error.status >= 400 && error.status < 500 ? StatusCode.NOT_AUTHORIZED : StatusCode.BUSY;
        throw new StatusError(
          { statusCode, message: `cannot get a token from ${tokenUrl}: ${error.message}` },
          { cause: error },
        );
      }
    },
    another(refusal) {
      if (!(refusal instanceof StatusError) || refusal.code !== StatusCode.NOT_AUTHORIZED) return false;
      if (refusal.cause instanceof TokenRequestError) return false;
      cache.discard(last);
      return true;
    },
  };
}

type UnaryCall = (request: object, options?: CallOptions) => Promise<unknown>;

async function mediaAnswer(response: Response) {
  const text = await response.text();
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch {
    throw new StatusError({
      statusCode: StatusCode.INTERNAL_ERROR,
      message: `the server answered HTTP ${response.status} without a gRPC status`,
    });
  }
  const answer = fromJson(AddMediaSegmentResponseSchema, json, { ignoreUnknownFields: true });
  if (!response.ok) {
    const statusCode = answer.status?.statusCode ?? StatusCode.INTERNAL_ERROR;
    throw new StatusError({ ...answer.status, $typeName: StatusSchema.typeName, statusCode } as never);
  }
  return answer;
}

type MediaRequest = MessageInitShape<typeof AddMediaSegmentRequestSchema>;

/** One request, or a stream of them: the first carries everything but the bytes of the others. */
async function wholeRecording(request: MediaRequest | AsyncIterable<MediaRequest>) {
  if (!(Symbol.asyncIterator in request))
    return { query: mediaQuery(request), bytes: request.chunk ?? new Uint8Array() };
  let first: MediaRequest | null = null;
  const chunks: Uint8Array[] = [];
  for await (const part of request) {
    first ??= part;
    chunks.push(part.chunk ?? new Uint8Array());
  }
  if (first === null)
    throw new StatusError({ statusCode: StatusCode.BAD_REQUEST, message: "the stream ended before its context" });
  return { query: mediaQuery(first), bytes: new Uint8Array(await new Blob(chunks as BlobPart[]).arrayBuffer()) };
}

function mediaQuery({ context, encoding, rate, channels }: MediaRequest): URLSearchParams {
  const query = new URLSearchParams();
  const set = (name: string, value: string | number | undefined) => {
    if (value) query.set(name, String(value));
  };
  set("context.gk_engagement_id.value", context?.gkEngagementId?.value);
  set("context.gk_session_id.value", context?.gkSessionId?.value);
  set("context.gk_scope_id.value", context?.gkScopeId?.value);
  set("context.configset_id", context?.configsetId);
  set("encoding", encoding);
  set("rate", rate);
  set("channels", channels);
  return query;
}

/** The status that the box sent; where it could not be reached at all, one that says so. */
export function statusErrorOf(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  if (error instanceof ConnectError) {
    if (error.cause instanceof StatusError) return error.cause;
    const [status] = error.findDetails(StatusSchema);
    if (status) return new StatusError(status, { cause: error });
    const codes: Partial<Record<Code, StatusCode>> = {
      [Code.Canceled]: StatusCode.CANCELLED,
      [Code.DeadlineExceeded]: StatusCode.DEADLINE_EXCEEDED,
      [Code.InvalidArgument]: StatusCode.BAD_REQUEST,
      [Code.Unauthenticated]: StatusCode.NOT_AUTHORIZED,
      [Code.PermissionDenied]: StatusCode.PERMISSION_DENIED,
      [Code.NotFound]: StatusCode.NOT_FOUND,
      [Code.Unimplemented]: StatusCode.NOT_IMPLEMENTED,
      [Code.ResourceExhausted]: StatusCode.TOO_LARGE,
    };
    return new StatusError(
      { statusCode: codes[error.code] ?? StatusCode.INTERNAL_ERROR, message: messageOf(error) },
      { cause: error },
    );
  }
  if (error instanceof Error && error.name === "TimeoutError") {
    return new StatusError(
      { statusCode: StatusCode.DEADLINE_EXCEEDED, message: "the call took too long" },
      { cause: error },
    );
  }
  if (error instanceof Error && error.name === "AbortError") {
    return new StatusError({ statusCode: StatusCode.CANCELLED, message: "the call was cancelled" }, { cause: error });
  }
  return new StatusError({ statusCode: StatusCode.INTERNAL_ERROR, message: messageOf(error) }, { cause: error });
}

/** `fetch failed` says nothing; its cause does. */
function messageOf(error: unknown): string {
  const parts: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) {
    const message = at instanceof ConnectError ? at.rawMessage : at.message;
    if (message && !parts.includes(message)) parts.push(message);
  }
  return parts.join(": ") || String(error);
}
