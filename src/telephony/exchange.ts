/** What a call needs from the box. The box treats the line like any other caller. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateVoiceprintProfileRequestSchema,
  CreateVoiceprintProfileResponse,
  GetGkVoiceprintProfileIdRequestSchema,
  GetGkVoiceprintProfileIdResponse,
  ListenRequest,
  ListenResponse,
  StartEngagementRequestSchema,
  StartEngagementResponse,
  StartSessionRequestSchema,
  StartSessionResponse,
  StopEngagementRequestSchema,
  StopEngagementResponse,
} from "../contract/index.js";

export interface Exchange {
  startEngagement(request: MessageInitShape<typeof StartEngagementRequestSchema>): Promise<StartEngagementResponse>;
  startSession(request: MessageInitShape<typeof StartSessionRequestSchema>): Promise<StartSessionResponse>;
  stopEngagement(request: MessageInitShape<typeof StopEngagementRequestSchema>): Promise<StopEngagementResponse>;
  getGkVoiceprintProfileId(
    request: MessageInitShape<typeof GetGkVoiceprintProfileIdRequestSchema>,
  ): Promise<GetGkVoiceprintProfileIdResponse>;
  createVoiceprintProfile(
    request: MessageInitShape<typeof CreateVoiceprintProfileRequestSchema>,
  ): Promise<CreateVoiceprintProfileResponse>;
  /** Aborting `ended` ends the call. */
  listen(requests: AsyncIterable<ListenRequest>, ended: AbortController): AsyncIterable<ListenResponse>;
}

export interface TelephonyLog {
  info(message: string, fields?: { readonly reason?: string; readonly line?: string }): void;
  warn(message: string, fields?: { readonly reason?: string; readonly line?: string }): void;
}
