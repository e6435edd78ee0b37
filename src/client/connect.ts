import { type DescMethod, fromJson, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { callLimit, LONGEST_TIMEOUT_MS } from "../contract/call-limit.js";
import { connectionFault } from "../contract/connection-fault.js";
import {
  type AddMediaSegmentRequestSchema,
  AddMediaSegmentResponseSchema,
  StatusCode,
  StatusError,
  StatusSchema,
  statusError,
} from "../contract/index.js";
import { orAborted } from "../contract/on-abort.js";
import { assertOperationOptions } from "../contract/operation-options.js";
import { type OperationOptions, type Operations, SERVICES } from "../contract/operations.js";
import { type NamesOf, optionsFault } from "../contract/options-fault.js";
import { createTokenCache, TokenRequestError } from "../token/cache.js";
import { addressOf } from "./address.js";
import { endedCall } from "./ended-call.js";
import { retrying } from "./retry.js";

/** Client credentials of an application, as a box prints them at its first start. */
export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
  /** `<url>/oauth2/token` when absent. */
  readonly tokenUrl?: string;
}

/** The address of a box, and how to authenticate. */
export interface ConnectOptions {
  /** Address of the box: `https://voice.example.com:8080`. In a page it may be relative to the page. */
  readonly url: string | URL;
  /** A token, or a function that gets one; leave it out if the box requires none. */
  readonly token?: string | (() => Promise<string>);
  /** Instead of a token: the client gets tokens from the box, and renews them. Not for pages, because everybody could read the secret there. */
  readonly credentials?: Credentials;
  /** By default the `fetch` of the runtime. */
  readonly fetch?: typeof globalThis.fetch;
  /** How often to retry after BUSY or RATE_EXCEEDED, each time after the delay that the box asks for; 5 by default. */
  readonly retries?: number;
  /** Time limit of each operation, with its retries; no limit by default. A call can have its own. */
  readonly timeoutMs?: number;
}

export const connectOptionNames: NamesOf<ConnectOptions> = {
  url: true,
  token: true,
  credentials: true,
  fetch: true,
  retries: true,
  timeoutMs: true,
};

const credentialNames: NamesOf<Credentials> = { clientId: true, clientSecret: true, tokenUrl: true };

/** The operations of a box, with the same interface as a processor in this process. */
export function connect(options: ConnectOptions): Operations {
  checkConnectOptions(options, connectOptionNames);
  return openConnection(options).operations;
}

/** The operations, and a function that gets a token for each live call: another one than `refused`, or `null` if the box requires none. */
export function openConnection(options: ConnectOptions) {
  const url = addressOf(options.url);
  const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  const tokens = tokenSource(options, url, fetch);
  const again = retrying(options.retries ?? 5);
  /** After BUSY, waits as long as the box asked; after a rejected token, gets a new token, once. All of it has one time limit. */
  const limited = async <T>(
    callOptions: OperationOptions,
    call: (signal: AbortSignal, timeoutMs: number | undefined) => Promise<T>,
    prepare: (signal: AbortSignal) => Promise<void> = async () => {},
  ): Promise<T> => {
    assertOperationOptions(callOptions);
    const { signal: given, timeoutMs = options.timeoutMs } = callOptions;
    const { signal, end } = callLimit({ signal: given, timeoutMs });
    if (signal.aborted) {
      end();
      throw endedCall(signal.reason);
    }
    const attempt = () =>
      call(signal, timeoutMs).catch((error: unknown) => Promise.reject(statusErrorOf(error, url, signal)));
    const withAnotherToken = () =>
      attempt().catch((error: unknown) => {
        if (!tokens.another(error)) throw error;
        return attempt();
      });
    // Also ends with its signal if nothing else does: an endpoint, or the caller's own function, may never give a token.
    const answer = prepare(signal).then(() => again(withAnotherToken, signal));
    return orAborted(answer, signal)
      .catch((error: unknown) => Promise.reject(signal.aborted ? endedCall(signal.reason) : error))
      .finally(end);
  };

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
  });

  /** Not every `fetch` can stream a request, so the recording is sent in one piece over the contract's HTTP binding. */
  const addMediaSegment: Operations["addMediaSegment"] = async (request, callOptions = {}) => {
    let recording: Recording;
    const send = async (signal: AbortSignal) => {
      const { query, bytes } = recording;
      const token = await tokens.next();
      const response = await fetch(`${url}/v1/audios?${query}`, {
        method: "POST",
        body: bytes as BodyInit,
        headers: {
          "content-type": query.has("encoding") ? "application/octet-stream" : "audio/wav",
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...requestIdHeader(callOptions),
        },
        signal,
      });
      return mediaAnswer(response);
    };
    return limited(callOptions, send, async (signal) => {
      recording = await wholeRecording(request, signal);
    });
  };

  /** The framework wraps every error thrown inside it, so unwrapping and retries are done around it. */
  const call = (method: DescMethod, send: UnaryCall) => {
    const operation = (request: object, callOptions: OperationOptions = {}) =>
      limited(callOptions, (signal, timeoutMs) => {
        // The signal keeps the limit here; the box is told too.
        const told = timeoutMs === undefined ? {} : { timeoutMs: Math.min(timeoutMs, LONGEST_TIMEOUT_MS) };
        return send(request, { headers: requestIdHeader(callOptions), signal, ...told });
      });
    return [method.localName, operation] as const;
  };
  const unary = SERVICES.flatMap((service) => {
    const client = createClient(service, transport) as Record<string, UnaryCall>;
    return service.methods
      .filter(({ methodKind }) => methodKind === "unary")
      .map((method) => call(method, client[method.localName]!));
  });
  // The descriptors' unary methods are the whole interface, except for the upload.
  const operations: Operations = {
    ...(Object.fromEntries(unary) as Omit<Operations, "addMediaSegment">),
    addMediaSegment,
  };
  const token = (refused?: string) => {
    if (refused !== undefined) tokens.discard(refused);
    return tokens.next();
  };
  return { operations, token };
}

/** For callers without a type checker: these would be noticed at the first call, or not at all. */
export function checkConnectOptions(options: ConnectOptions, known: object): void {
  const fault =
    optionsFault(options, known) ??
    (options.credentials && optionsFault(options.credentials, credentialNames, "credentials")) ??
    numberFault("retries", options.retries) ??
    numberFault("timeoutMs", options.timeoutMs);
  if (fault) throw new TypeError(fault);
}

const numberFault = (name: string, value: number | undefined): string | null =>
  value === undefined || value >= 0 ? null : `${name} must be a number of at least 0, got ${value}`;

const requestIdHeader = ({ requestId }: OperationOptions): Record<string, string> =>
  requestId === undefined ? {} : { "x-request-id": requestId };

interface TokenSource {
  /** `null` means that calls are made without a token. */
  next(): Promise<string | null>;
  /** Whether a new token may help after this error; if so, `next` returns a new one. */
  another(refusal: unknown): boolean;
  /** `next` returns another one. */
  discard(token: string): void;
}

function tokenSource({ token, credentials }: ConnectOptions, url: string, fetch: typeof globalThis.fetch): TokenSource {
  if (token !== undefined && credentials) throw new TypeError("pass either token or credentials, not both");
  if (!credentials)
    return {
      next: async () => (typeof token === "function" ? token() : (token ?? null)),
      another: () => false,
      discard: () => {},
    };
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
        const { retryAfterSeconds } = error;
        const retryAfter = retryAfterSeconds === null ? {} : { retryAfter: { seconds: BigInt(retryAfterSeconds) } };
        throw new StatusError(
          {
            statusCode: statusOfToken(error),
            message: `cannot get a token from ${tokenUrl}: ${error.message}`,
            ...retryAfter,
          },
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
    discard: (token) => cache.discard(token),
  };
}

/** As for other calls, a retry is for a server that asks for it, not for one that gives no answer. */
function statusOfToken({ status }: TokenRequestError): StatusCode {
  if (status === 0) return StatusCode.INTERNAL_ERROR;
  if (status === 429) return StatusCode.RATE_EXCEEDED;
  return status >= 400 && status < 500 ? StatusCode.NOT_AUTHORIZED : StatusCode.BUSY;
}

type UnaryCall = (request: object, options?: CallOptions) => Promise<unknown>;

async function mediaAnswer(response: Response) {
  const text = await response.text();
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch {
    throw statusError(StatusCode.INTERNAL_ERROR, `the box answered HTTP ${response.status} without a gRPC status`);
  }
  const answer = fromJson(AddMediaSegmentResponseSchema, json, { ignoreUnknownFields: true });
  if (!response.ok) {
    const statusCode = answer.status?.statusCode ?? StatusCode.INTERNAL_ERROR;
    throw new StatusError({ ...answer.status, $typeName: StatusSchema.typeName, statusCode } as never);
  }
  return answer;
}

type MediaRequest = MessageInitShape<typeof AddMediaSegmentRequestSchema>;

interface Recording {
  readonly query: URLSearchParams;
  readonly bytes: Uint8Array;
}

/** One request, or a stream of them: the first carries all fields, the others only more bytes. */
async function wholeRecording(
  request: MediaRequest | AsyncIterable<MediaRequest>,
  signal: AbortSignal,
): Promise<Recording> {
  if (!(Symbol.asyncIterator in request))
    return { query: mediaQuery(request), bytes: request.chunk ?? new Uint8Array() };
  let first: MediaRequest | null = null;
  const chunks: Uint8Array[] = [];
  for await (const part of request) {
    signal.throwIfAborted();
    first ??= part;
    chunks.push(part.chunk ?? new Uint8Array());
  }
  if (first === null) throw statusError(StatusCode.BAD_REQUEST, "the stream ended before a message with the context");
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

const STATUS_CODES: Partial<Record<Code, StatusCode>> = {
  [Code.Canceled]: StatusCode.CANCELLED,
  [Code.DeadlineExceeded]: StatusCode.DEADLINE_EXCEEDED,
  [Code.InvalidArgument]: StatusCode.BAD_REQUEST,
  [Code.Unauthenticated]: StatusCode.NOT_AUTHORIZED,
  [Code.PermissionDenied]: StatusCode.PERMISSION_DENIED,
  [Code.NotFound]: StatusCode.NOT_FOUND,
  [Code.Unimplemented]: StatusCode.NOT_IMPLEMENTED,
  [Code.ResourceExhausted]: StatusCode.TOO_LARGE,
};

/** The status that the box sent, or one that says that it could not be reached. */
function statusErrorOf(error: unknown, url: string, signal: AbortSignal): StatusError {
  if (error instanceof StatusError) return error;
  if (signal.aborted) return endedCall(signal.reason);
  if (error instanceof ConnectError) {
    if (error.cause instanceof StatusError) return error.cause;
    const [status] = error.findDetails(StatusSchema);
    if (status) return new StatusError(status, { cause: error });
  }
  const fault = connectionFault(error);
  if (fault !== null) return statusError(StatusCode.INTERNAL_ERROR, `cannot connect to ${url}: ${fault}`, error);
  const code = error instanceof ConnectError ? STATUS_CODES[error.code] : undefined;
  return statusError(code ?? StatusCode.INTERNAL_ERROR, messageOf(error), error);
}

/** With the messages of its causes, which say more. */
function messageOf(error: unknown): string {
  const parts: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) {
    const message = at instanceof ConnectError ? at.rawMessage : at.message;
    if (message && !parts.includes(message)) parts.push(message);
  }
  return parts.join(": ") || String(error);
}
