import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { secondsOf } from "../contract/duration.js";
import { StatusCode, StatusError } from "../contract/index.js";

/** A status of the contract with what HTTP adds to it, such as `WWW-Authenticate` with NOT_AUTHORIZED. */
export class Refusal extends StatusError {
  readonly headers: Readonly<Record<string, string>>;
  readonly httpStatus: number | undefined;

  constructor(
    statusCode: StatusCode,
    message: string,
    more: {
      readonly headers?: Readonly<Record<string, string>>;
      /** An HTTP status for which the contract has no equivalent. */
      readonly httpStatus?: number;
      readonly retryAfterSeconds?: number;
      readonly violation?: { readonly field: string; readonly violation: string };
      readonly cause?: unknown;
    } = {},
  ) {
    super(
      {
        statusCode,
        message,
        ...(more.retryAfterSeconds !== undefined && {
          retryAfter: durationFromMs(Math.ceil(more.retryAfterSeconds * 1000)),
        }),
        fieldViolations: more.violation ? [{ ...more.violation, message }] : [],
      },
      more.cause === undefined ? undefined : { cause: more.cause },
    );
    this.httpStatus = more.httpStatus;
    this.headers = more.headers ?? {};
  }
}

export const badRequest = (message: string, field?: string) =>
  new Refusal(StatusCode.BAD_REQUEST, message, field ? { violation: { field, violation: "malformed" } } : {});

export const tooLarge = (what: string, bytes: number) =>
  new Refusal(StatusCode.TOO_LARGE, `${what} is larger than the ${bytes} bytes allowed`);

export const busy = (message: string, retryAfterSeconds: number) =>
  new Refusal(StatusCode.BUSY, message, { retryAfterSeconds });

export const wrongVerb = (verb: string, allowed: readonly string[]) =>
  new Refusal(StatusCode.BAD_REQUEST, `${verb} is not allowed here; use ${allowed.join(" or ")}`, {
    httpStatus: 405,
    headers: { allow: allowed.join(", ") },
  });

/** HTTP/2 forbids the two headers (RFC 9113 §8.2.2). */
export const needsWebSocket = (path: string, httpVersion: number) =>
  new Refusal(StatusCode.BAD_REQUEST, `${path} is for WebSockets only; connect to it with a WebSocket over HTTP/1.1`, {
    httpStatus: 426,
    headers: httpVersion === 1 ? { upgrade: "websocket", connection: "upgrade" } : {},
  });

/** Response headers that go with an error. */
export function headersOf(error: StatusError): Readonly<Record<string, string>> {
  const { retryAfter } = error.status;
  return {
    ...(retryAfter && { "retry-after": String(Math.max(1, Math.ceil(secondsOf(retryAfter)))) }),
    ...(error instanceof Refusal ? error.headers : {}),
  };
}
