/** What is done with the audio of one party of a call, whatever it is. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListenResponseSchema, ListenResultSchema } from "../../contract/gen/vendor/biosec/v1/live_pb.js";
import type { Measures } from "../../engine/port.js";

export type LiveEvent = NonNullable<MessageInitShape<typeof ListenResponseSchema>["event"]>;
export type LiveResult = NonNullable<MessageInitShape<typeof ListenResultSchema>["result"]>;

export interface LiveTask {
  /** Mono samples in -1..1; the array is handed over. Resolves to the result once there is one: no more audio is needed. */
  push(samples: Float32Array): Promise<LiveResult | null>;
  /** The result on all that was heard. */
  finish(): Promise<LiveResult>;
  /** Ends without a result; after one it does nothing. */
  close(): Promise<void>;
  measures(): Promise<Measures>;
  /** Nothing can come of the next so many seconds of audio. */
  readonly calmSeconds: number;
  /** The best score of the last checkpoint. */
  readonly score: number | null;
}

/** Where a task reports events between its beginning and its result. */
export type TellEvent = (event: LiveEvent) => void;
