/** The operations of the contract as one typed interface, derived from its descriptors. The processor and the client implement it. */
import type { DescMessage, DescMethod, DescService, Message, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { EngagementsProcessor } from "./gen/vendor/biosec/v1/engagements_pb.js";
import { GroupsProcessor } from "./gen/vendor/biosec/v1/groups_pb.js";
import { LiveProcessor } from "./gen/vendor/biosec/v1/live_pb.js";
import { MediaProcessor } from "./gen/vendor/biosec/v1/media_pb.js";
import { ProfilesProcessor } from "./gen/vendor/biosec/v1/profiles_pb.js";
import { SessionsProcessor } from "./gen/vendor/biosec/v1/sessions_pb.js";
import { VoiceprintsProcessor } from "./gen/vendor/biosec/v1/voiceprints_pb.js";

/** Options of one call. */
export interface OperationOptions {
  readonly signal?: AbortSignal;
  /** Returned in the status; generated if absent. */
  readonly requestId?: string;
  readonly timeoutMs?: number;
  /** Called only in process; a server does not report progress. What it throws ends the call, which rejects with it. */
  readonly onProgress?: (progress: Progress) => void;
}

/** How much of a recording has been processed. */
export interface Progress {
  readonly netSpeechSeconds: number;
  readonly grossSeconds: number;
  /** Length of the whole recording; `null` if unknown. */
  readonly totalSeconds: number | null;
}

interface MethodOf<Kind, I extends DescMessage> {
  readonly methodKind: Kind;
  readonly input: I;
}

/** A stream can also be sent as one request. */
export type OperationRequest<M> =
  M extends MethodOf<"unary", infer I>
    ? MessageInitShape<I>
    : M extends MethodOf<"client_streaming", infer I>
      ? MessageInitShape<I> | AsyncIterable<MessageInitShape<I>>
      : never;

/** Returns the response message with its `status`, or throws a `StatusError`. A business outcome is a response. */
export type Operation<M extends { readonly output: DescMessage }> = (
  request: OperationRequest<M>,
  options?: OperationOptions,
) => Promise<MessageShape<M["output"]>>;

/** Options of an operation on a connection. */
export interface LiveOptions extends OperationOptions {
  /** The results are given after this much audio in which no party speaks; without it, silence has no limit. */
  readonly silenceSeconds?: number;
}

/** Sends responses while requests are still arriving. */
type BidiOperation<M extends { readonly input: DescMessage; readonly output: DescMessage }> = (
  requests: AsyncIterable<MessageInitShape<M["input"]>>,
  options?: LiveOptions,
) => AsyncIterable<MessageShape<M["output"]>>;

/** The contract's methods with one answer to each request, by their names in lower camel case. */
export type Methods = typeof VoiceprintsProcessor.method &
  typeof EngagementsProcessor.method &
  typeof SessionsProcessor.method &
  typeof ProfilesProcessor.method &
  typeof MediaProcessor.method &
  typeof GroupsProcessor.method;

/** Every operation of the contract, by its name in lower camel case. */
export type Operations = { readonly [Name in keyof Methods]: Operation<Methods[Name]> };

/** Operations that need a connection in both directions. The processor has them, and every transport of a box except plain HTTP. */
export interface LiveOperations {
  readonly listen: BidiOperation<typeof LiveProcessor.method.listen>;
}

export const SERVICES: readonly DescService[] = [
  VoiceprintsProcessor,
  EngagementsProcessor,
  SessionsProcessor,
  ProfilesProcessor,
  MediaProcessor,
  GroupsProcessor,
  LiveProcessor,
];

export const METHODS: readonly DescMethod[] = SERVICES.flatMap((service) => service.methods);

/** The operation for a method that is known only at run time. */
export function operationOf(
  operations: Operations,
  { localName }: DescMethod,
): (request: unknown, options: OperationOptions) => Promise<Message> {
  return operations[localName as keyof Operations] as never;
}
