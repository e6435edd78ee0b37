/** A typed client of a box, for Node and browsers: the operations of the contract, by their names. */

export { StatusCode, StatusError } from "../contract/index.js";
export { createTokenCache, grpcMetadataGenerator, type TokenCache, type TokenCacheOptions } from "../token/cache.js";
export { type ConnectOptions, type Credentials, connect } from "./connect.js";
export type { MediaFormat, VoiceprintOperations } from "./operations.js";
