/** A typed client of a box, for Node and browsers, with the contract's operations by name. */
import type { NamesOf } from "../contract/options-fault.js";
import { defaultConfigurationSetId } from "../voiceprint/configuration-set.js";
import { Voiceprints } from "../voiceprints.js";
import { boxLiveAccess } from "./box-live.js";
import { type ConnectOptions, checkConnectOptions, connectOptionNames, openConnection } from "./connect.js";
import type { WebSocketClass } from "./live.js";

export type * from "../contract/index.js";
export { StatusCode, StatusError } from "../contract/index.js";
export {
  type Clock,
  createTokenCache,
  grpcMetadataGenerator,
  type TokenCache,
  type TokenCacheOptions,
  TokenRequestError,
} from "../token/cache.js";
export type * from "../voiceprints.js";
export { type ConnectOptions, type Credentials, connect } from "./connect.js";
export { LiveCall, type LiveCallOptions, type LiveSocket, type WebSocketClass } from "./live.js";

/** A box, and the scope and configuration set to use there. */
export interface ConnectVoiceprintsOptions extends ConnectOptions {
  /** `default` by default. */
  readonly scope?: string;
  /** `ivr-text-dependent` by default. */
  readonly configset?: string;
  /** Needed for `listen` and `listenToEnroll` if the runtime has no WebSocket, such as Node 20: use that of the package `ws`. */
  readonly WebSocket?: WebSocketClass;
}

const optionNames: NamesOf<ConnectVoiceprintsOptions> = {
  ...connectOptionNames,
  scope: true,
  configset: true,
  WebSocket: true,
};

/** The easy door on a box: voices by name, with one call each. `listen` and `listenToEnroll` use WebSocket. */
export function connectVoiceprints(options: ConnectVoiceprintsOptions): Voiceprints {
  checkConnectOptions(options, optionNames);
  const { scope = "default", configset = defaultConfigurationSetId, WebSocket, ...connection } = options;
  const { operations, token } = openConnection(connection);
  return new Voiceprints(operations, { scope, configset }, boxLiveAccess(connection.url, token, WebSocket));
}
