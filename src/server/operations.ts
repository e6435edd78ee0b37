import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import {
  EngagementsProcessor,
  GroupsProcessor,
  LiveProcessor,
  MediaProcessor,
  ProfilesProcessor,
  SessionsProcessor,
  VoiceprintsProcessor,
} from "../contract/index.js";

/** Every service of the contract that a box offers. */
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

export interface OperationOptions {
  readonly signal: AbortSignal;
  readonly requestId: string;
}

/**
 * What carries the operations out, by the name of the contract in lower camel case: `verify`, `startSession`, …
 * A streaming operation takes the messages as they come; `listen` also answers with several, as they happen.
 */
export type Operations = Readonly<Record<string, (request: never, options: OperationOptions) => Promise<Message>>>;

/** Operations that decode and analyze a recording: they go through the queue. */
export const AUDIO_OPERATIONS: ReadonlySet<string> = new Set([
  "ProcessAudio",
  "Verify",
  "Identify",
  "DetectKnownFraudsters",
  "AnalyzeAudio",
]);

/** Names of operations that are missing; a box that lacks one must not start. */
export function missingOperations(operations: Operations): string[] {
  return METHODS.filter((method) => typeof operations[method.localName] !== "function").map((method) => method.name);
}
