/** The contract's messages, enumerations and services, by their documented names. Generated from `proto/`. */

/** `vendor.biosec.v1.audio`: exported separately, because it has a different `DecisionReason`. */
export * as audio from "./gen/vendor/biosec/v1/audio/attacks_pb.js";
export * from "./gen/vendor/biosec/v1/common_pb.js";
export * from "./gen/vendor/biosec/v1/engagements_pb.js";
export * from "./gen/vendor/biosec/v1/groups_pb.js";
export * from "./gen/vendor/biosec/v1/live_pb.js";
export * from "./gen/vendor/biosec/v1/media_pb.js";
export * from "./gen/vendor/biosec/v1/profiles_pb.js";
export * from "./gen/vendor/biosec/v1/sessions_pb.js";
export * from "./gen/vendor/biosec/v1/voiceprints_pb.js";
export * from "./gen/vendor/rpc/status_pb.js";
export type { OperationOptions, Operations, Progress } from "./operations.js";
export { StatusError, statusError } from "./status-error.js";
