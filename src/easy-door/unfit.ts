import { StatusCode, StatusError } from "../contract/index.js";
import { fieldViolation } from "../contract/mandatory.js";

/** Refuses a value that a caller gave. */
export const unfit = (field: string, violation: string, message: string): StatusError =>
  new StatusError({
    statusCode: StatusCode.INVALID_REQUEST,
    message,
    fieldViolations: [fieldViolation(field, violation, message)],
  });
