/** What a call needs from the box. The box treats the line like any other caller. */
import type { ListenRequest, ListenResponse, StatusCode } from "../contract/index.js";
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
  /** Aborting `ended` ends the call. `onIdle` is called when nothing has arrived for too long. */
  listen(
    requests: AsyncIterable<ListenRequest>,
    ended: AbortController,
    onIdle: () => void,
  ): AsyncIterable<ListenResponse>;
  /** Whether a profile has a print of the model that new prints of its scope use. */
  isOfScopesModel(scopeId: string, profileId: string): Promise<boolean>;
  /** Counts a call that is refused before `listen`, which counts all others. */
  refused(code: StatusCode): void;
}

export interface TelephonyLog {
  info(message: string, fields?: { readonly reason?: string; readonly line?: string }): void;
  warn(message: string, fields?: { readonly reason?: string; readonly line?: string; readonly session?: string }): void;
  error(message: string, fields?: { readonly stack?: string; readonly line?: string }): void;
}
