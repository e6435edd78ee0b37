import { StatusCode } from "./gen/vendor/rpc/status_pb.js";
import { StatusError } from "./status-error.js";

/** A refused request: `field` says where, `violation` is a word that a program can compare. */
export const refusal = (statusCode: StatusCode, field: string, violation: string, message: string): StatusError =>
  new StatusError({ statusCode, message, fieldViolations: [{ field, violation, message }] });

export const invalid = (field: string, violation: string, message: string): StatusError =>
  refusal(StatusCode.INVALID_REQUEST, field, violation, message);
