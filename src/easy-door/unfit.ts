import { StatusCode } from "../contract/gen/vendor/rpc/status_pb.js";
import { fieldViolation } from "../contract/mandatory.js";
import { StatusError } from "../contract/status-error.js";

/** Refuses a value that a caller gave. */
export const unfit = (field: string, violation: string, message: string): StatusError =>
  new StatusError({
    statusCode: StatusCode.INVALID_REQUEST,
    message,
    fieldViolations: [fieldViolation(field, violation, message)],
  });
