/** What a call needs from the box. The box treats the line like any other caller. */
import type { ListenRequest, ListenResponse } from "../contract/index.js";
import type { Operations } from "../contract/operations.js";

export interface Exchange
  extends Pick<
    Operations,
    | "startEngagement"
    | "startSession"
    | "stopEngagement"
    | "getGkVoiceprintProfileId"
    | "createVoiceprintProfile"
    | "listVoiceprintProfiles"
  > {
  /** Aborting `ended` ends the call. */
  listen(requests: AsyncIterable<ListenRequest>, ended: AbortController): AsyncIterable<ListenResponse>;
}

export interface TelephonyLog {
  info(message: string, fields?: { readonly reason?: string; readonly line?: string }): void;
  warn(message: string, fields?: { readonly reason?: string; readonly line?: string }): void;
  error(message: string, fields?: { readonly stack?: string; readonly line?: string }): void;
}
