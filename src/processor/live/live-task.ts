/** A check or an enrollment on the audio of one party of a call. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListenResponseSchema, ListenResultSchema } from "../../contract/index.js";
import type { Measures } from "../../engine/port.js";
import type { LeftOut } from "../galleries.js";

export type LiveEvent = NonNullable<MessageInitShape<typeof ListenResponseSchema>["event"]>;
/** What a live check or enrollment ends with. */
export type LiveResult = NonNullable<MessageInitShape<typeof ListenResultSchema>["result"]>;
/** What a live enrollment ends with. */
export type LiveEnrollmentResult = Extract<LiveResult, { readonly case: "enroll" }>;

/** A live check or enrollment in progress. */
export interface LiveTask<Result = LiveResult> {
  /** Mono samples in -1..1; ownership of the array passes to the task. Resolves to the result once no more audio is needed. */
  push(samples: Float32Array): Promise<Result | null>;
  /** The result for all audio so far. */
  finish(): Promise<Result>;
  /** Ends without a result; does nothing if there is one already. */
  close(): Promise<void>;
  measures(): Promise<Measures>;
  /** No result is possible within the next `calmSeconds` of audio. */
  readonly calmSeconds: number;
  /** The best score of the last checkpoint. */
  readonly score: number | null;
  /** Prints that are not compared. */
  readonly leftOut?: readonly LeftOut[];
}

/** Reports events of a task before its result. */
export type ReportEvent = (event: LiveEvent) => void;
