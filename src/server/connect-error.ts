import { type Code, ConnectError } from "@connectrpc/connect";
import { type StatusError, StatusSchema } from "../contract/index.js";
import { transportCodes } from "../contract/status-codes.js";
import { headersOf } from "./refusal.js";

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
