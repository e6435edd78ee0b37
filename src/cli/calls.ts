import { readFile } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AudioError } from "../audio/index.js";
import type { MediaFormat, VoiceprintOperations } from "../client/operations.js";
import {
  type AudioProcessingResult,
  AudioValidity,
  type ContextSchema,
  OwnerType as Owner,
  type OwnerType,
  SessionType,
  StatusError,
} from "../contract/index.js";
import { fileFault } from "../server/file-fault.js";
import { CommandError } from "./command-error.js";

export type Context = MessageInitShape<typeof ContextSchema>;

export interface Place {
  readonly scope: string;
  readonly configset: string;
}

/** A session around some work, stopped whatever happens in it. */
export async function inSession<T>(
  operations: VoiceprintOperations,
  { scope, configset }: Place,
  work: (context: Context) => Promise<T>,
): Promise<T> {
  const scopeOnly: Context = { gkScopeId: { value: scope } };
  const { gkEngagementId } = await operations.startEngagement({ context: scopeOnly });
  const engaged: Context = { ...scopeOnly, gkEngagementId: gkEngagementId! };
  try {
    const { gkSessionId } = await operations.startSession({ context: engaged, sessionType: SessionType.OTHER });
    const context: Context = { ...engaged, gkSessionId: gkSessionId!, configsetId: configset };
    try {
      return await work(context);
    } finally {
      await operations.stopSession({ context });
    }
  } finally {
    await operations.stopEngagement({ context: engaged });
  }
}

export interface OwnerName {
  readonly type: OwnerType;
  readonly id: string;
  readonly tag: string;
}

export const person = (id: string, tag = ""): OwnerName => ({ type: Owner.PERSON, id, tag });
export const fraudster = (id: string, tag = ""): OwnerName => ({ type: Owner.FRAUDSTER, id, tag });

const ownerField = ({ type, id }: OwnerName) =>
  type === Owner.FRAUDSTER ? ({ case: "fraudsterId", value: id } as const) : ({ case: "personId", value: id } as const);

export async function findProfile(
  operations: VoiceprintOperations,
  context: Context,
  owner: OwnerName,
): Promise<string | null> {
  const { gkVoiceprintProfileId } = await operations.getGkVoiceprintProfileId({
    context,
    owner: ownerField(owner),
    profileTag: owner.tag,
  });
  return gkVoiceprintProfileId?.value || null;
}

/** The profile of somebody who must have one. */
export async function profileOf(operations: VoiceprintOperations, context: Context, owner: OwnerName): Promise<string> {
  const id = await findProfile(operations, context, owner);
  if (id === null) {
    const isFraudster = owner.type === Owner.FRAUDSTER;
    const kind = isFraudster ? "fraudster" : "person";
    throw new CommandError(
      `no ${kind} "${owner.id}"${owner.tag ? ` with tag "${owner.tag}"` : ""} is known here`,
      `enroll first: vivavoce enroll ${isFraudster ? "--fraudster " : ""}${owner.id} a.wav b.wav c.wav`,
    );
  }
  return id;
}

export async function ensureProfile(
  operations: VoiceprintOperations,
  context: Context,
  owner: OwnerName,
): Promise<string> {
  const existing = await findProfile(operations, context, owner);
  if (existing !== null) return existing;
  const created = await operations.createVoiceprintProfile({
    context,
    owner: ownerField(owner),
    profileTag: owner.tag,
  });
  return created.gkVoiceprintProfileId!.value;
}

/** The fields of a request that carry a recording: what is wrong with them is wrong with the file. */
const AUDIO_FIELDS = new Set(["chunk", "encoding", "rate", "channels"]);

/** The error with the name of the file, where it is the file that is at fault. */
export function faultOf(path: string, error: unknown): unknown {
  const fault = fileFault(error);
  if (fault) return new CommandError(`${path}: ${fault}`);
  if (error instanceof AudioError) return new AudioError(error.code, `${path}: ${error.message}`);
  if (error instanceof StatusError) {
    const { fieldViolations } = error.status;
    if (fieldViolations.length > 0 && fieldViolations.every(({ field }) => AUDIO_FIELDS.has(field)))
      return new StatusError({ ...error.status, message: `${path}: ${error.message}`, fieldViolations: [] });
  }
  return error;
}

export async function upload(
  operations: VoiceprintOperations,
  context: Context,
  path: string,
  format?: MediaFormat,
): Promise<string> {
  try {
    const { gkMediaSegmentId } = await operations.addMediaSegment(context, await readFile(path), format);
    return gkMediaSegmentId!.value;
  } catch (error) {
    throw faultOf(path, error);
  }
}

export const channelSelector = (channel: number | undefined) =>
  channel === undefined ? {} : { channelSelector: { channel } };

export async function processForEnrollment(
  operations: VoiceprintOperations,
  context: Context,
  media: string,
  /** 0 mixes all channels, 1 is the first. */
  channel: number | undefined,
): Promise<AudioProcessingResult> {
  const { result } = await operations.processAudio({
    context,
    input: { case: "gkMediaSegmentId", value: { value: media } },
    isForEnrollment: true,
    ...channelSelector(channel),
  });
  return result!;
}

/** What a person can do about audio that was not good enough. */
export function remedy(validity: AudioValidity): string | null {
  switch (validity) {
    case AudioValidity.AUDIO_TOO_SHORT:
      return "speak longer";
    case AudioValidity.AUDIO_TOO_SOFT:
      return "speak up, or move closer to the microphone";
    case AudioValidity.AUDIO_TOO_LOUD:
      return "lower the recording level: the audio is clipped";
    case AudioValidity.AUDIO_TOO_NOISY:
      return "find a quieter place";
    case AudioValidity.MULTIPLE_SPEAKERS_DETECTED:
      return "one person at a time";
    case AudioValidity.INVALID_AUDIO:
      return "record as WAV";
    default:
      return null;
  }
}
