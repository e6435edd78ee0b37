/** The HTTP and gRPC codes of each status. */
import { StatusCode } from "./gen/vendor/rpc/status_pb.js";

interface TransportCodes {
  readonly http: number;
  /** Canonical gRPC code. */
  readonly grpc: number;
}

const codes: Readonly<Record<StatusCode, TransportCodes>> = {
  [StatusCode.UNSPECIFIED]: { http: 500, grpc: 2 },
  [StatusCode.OK]: { http: 200, grpc: 0 },
  [StatusCode.BAD_REQUEST]: { http: 400, grpc: 3 },
  [StatusCode.INVALID_REQUEST]: { http: 400, grpc: 3 },
  [StatusCode.CANCELLED]: { http: 499, grpc: 1 },
  [StatusCode.DEADLINE_EXCEEDED]: { http: 504, grpc: 4 },
  [StatusCode.NOT_AUTHORIZED]: { http: 401, grpc: 16 },
  [StatusCode.PERMISSION_DENIED]: { http: 403, grpc: 7 },
  [StatusCode.NOT_FOUND]: { http: 404, grpc: 5 },
  [StatusCode.ALREADY_EXISTS]: { http: 409, grpc: 6 },
  [StatusCode.NOT_IMPLEMENTED]: { http: 501, grpc: 12 },
  [StatusCode.TOO_LARGE]: { http: 413, grpc: 8 },
  [StatusCode.BUSY]: { http: 503, grpc: 14 },
  [StatusCode.OBSOLETE]: { http: 410, grpc: 9 },
  [StatusCode.RATE_EXCEEDED]: { http: 429, grpc: 8 },
  [StatusCode.QUOTA_EXCEEDED]: { http: 429, grpc: 8 },
  [StatusCode.INTERNAL_ERROR]: { http: 500, grpc: 13 },
};

export const transportCodes = (status: StatusCode): TransportCodes => codes[status] ?? codes[StatusCode.UNSPECIFIED];
