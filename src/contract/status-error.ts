import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { type Status, StatusCode, StatusSchema } from "./gen/vendor/rpc/status_pb.js";

/** An operation failed; `status` says why, as the contract defines it. Transports translate it. */
export class StatusError extends Error {
  readonly status: Status;

  constructor(init: MessageInitShape<typeof StatusSchema> & { statusCode: StatusCode }, options?: ErrorOptions) {
    const status = create(StatusSchema, init);
    super(status.message || StatusCode[status.statusCode], options);
    this.name = "StatusError";
    this.status = status;
  }

  get code(): StatusCode {
    return this.status.statusCode;
  }

  /** For logs: `JSON.stringify` alone fails on the time of a `retryAfter`. */
  toJSON(): object {
    return { name: this.name, message: this.message, status: toJson(StatusSchema, this.status) };
  }
}

/** With a code and a message only. */
export const statusError = (statusCode: StatusCode, message: string, cause?: unknown): StatusError =>
  new StatusError({ statusCode, message }, cause === undefined ? undefined : { cause });
