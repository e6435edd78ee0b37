/** The operations of the contract as one typed interface, made from its descriptors. The processor and the client implement it. */
import type { DescMessage, DescMethod, DescService, Message, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { EngagementsProcessor } from "./gen/vendor/biosec/v1/engagements_pb.js";
import { GroupsProcessor } from "./gen/vendor/biosec/v1/groups_pb.js";
import { LiveProcessor } from "./gen/vendor/biosec/v1/live_pb.js";
import { MediaProcessor } from "./gen/vendor/biosec/v1/media_pb.js";
import { ProfilesProcessor } from "./gen/vendor/biosec/v1/profiles_pb.js";
import { SessionsProcessor } from "./gen/vendor/biosec/v1/sessions_pb.js";
import { VoiceprintsProcessor } from "./gen/vendor/biosec/v1/voiceprints_pb.js";

/** What comes with one call, beside its request. */
export interface OperationOptions {
  readonly signal?: AbortSignal;
  /** Repeated in the status; made up when absent. */
  readonly requestId?: string;
  readonly timeoutMs?: number;
  /** Called in process only: a server does not report progress. */
  readonly onProgress?: (progress: Progress) => void;
}

/** How far a recording has been heard. */
export interface Progress {
  readonly netSpeechSeconds: number;
  readonly grossSeconds: number;
  /** Of the whole recording; `null` when its end is not known. */
  readonly totalSeconds: number | null;
}

interface Unary<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly methodKind: "unary";
  readonly input: I;
  readonly output: O;
}

interface ClientStreaming<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  readonly methodKind: "client_streaming";
  readonly input: I;
  readonly output: O;
}

/** A stream can also be sent whole, as one request. */
export type OperationRequest<M> =
  M extends Unary<infer I>
    ? MessageInitShape<I>
    : M extends ClientStreaming<infer I>
      ? MessageInitShape<I> | AsyncIterable<MessageInitShape<I>>
      : never;

/** Answers the response message with its `status`, or throws a `StatusError`. A business outcome is an answer. */
export type Operation<M extends { readonly output: DescMessage }> = (
  request: OperationRequest<M>,
  options?: OperationOptions,
) => Promise<MessageShape<M["output"]>>;

/** Answers as it happens, while the requests still come. */
type BidiOperation<M extends { readonly input: DescMessage; readonly output: DescMessage }> = (
  requests: AsyncIterable<MessageInitShape<M["input"]>>,
  options?: OperationOptions,
) => AsyncIterable<MessageShape<M["output"]>>;

type OperationsOf<S extends { readonly method: Record<string, DescMethod> }> = {
  readonly [Name in keyof S["method"]]: Operation<S["method"][Name]>;
};

/** Every operation of the contract, by its name in lower camel case. */
export interface Operations
  extends OperationsOf<typeof VoiceprintsProcessor>,
    OperationsOf<typeof EngagementsProcessor>,
    OperationsOf<typeof SessionsProcessor>,
    OperationsOf<typeof ProfilesProcessor>,
    OperationsOf<typeof MediaProcessor>,
    OperationsOf<typeof GroupsProcessor> {}

/** What needs a connection in both directions: the processor and every transport of a box but plain HTTP have it. */
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

/** The operation of a method that is known only when the program runs. */
export function operationOf(
  operations: Operations,
  { localName }: DescMethod,
): (request: unknown, options: OperationOptions) => Promise<Message> {
  return operations[localName as keyof Operations] as never;
}
