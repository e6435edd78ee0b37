import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import type {
  AddMediaSegmentResponse,
  ContextSchema,
  EngagementsProcessor,
  GroupsProcessor,
  ProfilesProcessor,
  SessionsProcessor,
  VoiceprintsProcessor,
} from "../contract/index.js";

/** How headerless bytes are to be read; absent for a WAV file. */
export interface MediaFormat {
  readonly encoding: "pcm16" | "alaw" | "mulaw";
  readonly rate: number;
  readonly channels: number;
}

/** Every operation of the contract; a business outcome is a value, everything else a `StatusError`. */
export interface VoiceprintOperations
  extends Client<typeof VoiceprintsProcessor>,
    Client<typeof EngagementsProcessor>,
    Client<typeof SessionsProcessor>,
    Client<typeof ProfilesProcessor>,
    Client<typeof GroupsProcessor> {
  /** A recording, whole: a WAV file, or headerless bytes with their format. */
  addMediaSegment(
    context: MessageInitShape<typeof ContextSchema>,
    bytes: Uint8Array,
    format?: MediaFormat,
    options?: Pick<CallOptions, "signal">,
  ): Promise<AddMediaSegmentResponse>;
}
