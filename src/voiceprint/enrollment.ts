/** The enrollment state of a print: computed from its segments, never stored. */
import { AudioValidity, EnrollReason, EnrollStatus } from "../contract/index.js";
import type { ConfigurationSet } from "./configuration-set.js";
import { audioValidity, isUnreadable, type MeasuredAudio } from "./quality-gate.js";
import { totalNet } from "./template.js";

/** The fields of an audio model that enrollment needs. */
export interface AudioModel {
  readonly id: string;
  /** The whole recording, and its channel, even if only a part of it was processed. */
  readonly recordingId: string;
  readonly channel: number | null;
  readonly printType: string;
  readonly revision: string;
  readonly validity: AudioValidity;
  readonly audio: MeasuredAudio;
  readonly embedding: Float32Array | null;
}

/** Segments of another model revision stay stored, but the current model cannot use them. */
export const usableSegments = <T extends Pick<AudioModel, "revision" | "embedding">>(
  segments: readonly T[],
  revision: string,
): T[] => segments.filter((segment) => segment.revision === revision && segment.embedding !== null);

export function enrollStatus(
  segments: readonly Pick<AudioModel, "revision" | "embedding" | "audio">[],
  revision: string,
  set: ConfigurationSet,
): EnrollStatus {
  const usable = usableSegments(segments, revision);
  const net = totalNet(usable.map(({ audio }) => audio));
  if (usable.length >= set.maxEnrollmentSegments) return EnrollStatus.FULL;
  if (usable.length < set.minSegmentsForTrain || net < set.minNetAudioForTrain) return EnrollStatus.TRAIN_NOT_POSSIBLE;
  return net < set.optimalNetAudioForTrain ? EnrollStatus.TRAIN_POSSIBLE : EnrollStatus.TRAIN_SUGGESTED;
}

/** ENROLL_OK if this audio model can be added to the print, else the reason; UNSPECIFIED means the print is full. */
export function enrollReason(
  candidate: AudioModel,
  segments: readonly AudioModel[],
  printType: string | null,
  revision: string,
  set: ConfigurationSet,
): EnrollReason {
  if (enrollStatus(segments, revision, set) === EnrollStatus.FULL) return EnrollReason.UNSPECIFIED;
  if (usableSegments(segments, revision).some((segment) => sameAudio(segment, candidate)))
    return EnrollReason.ALREADY_ADDED;
  if (printType !== null && candidate.printType !== printType) return EnrollReason.WRONG_PRINT_TYPE;
  const validity = isUnreadable(candidate.validity)
    ? candidate.validity
    : audioValidity(candidate.audio, "enroll", set);
  if (validity === AudioValidity.AUDIO_TOO_SHORT) return EnrollReason.TOO_SHORT;
  if (validity === AudioValidity.INTERNAL_ERROR) return EnrollReason.INTERNAL_ERROR;
  if (validity !== AudioValidity.AUDIO_OK || candidate.revision !== revision) return EnrollReason.MISSING_MODEL;
  // The speech was good but gave no embedding, so the failure is ours and not the caller's.
  return candidate.embedding === null ? EnrollReason.INTERNAL_ERROR : EnrollReason.ENROLL_OK;
}

/**
 * Every audio model of a recording starts at its beginning, so two of them share speech. The engine is bit-exact: equal embeddings mean the same
 * recording, even when it was uploaded twice.
 */
function sameAudio(one: AudioModel, other: AudioModel): boolean {
  if (one.id === other.id) return true;
  if (one.recordingId === other.recordingId && one.channel === other.channel) return true;
  const [a, b] = [one.embedding, other.embedding];
  return a !== null && b !== null && a.length === b.length && a.every((value, i) => value === b[i]);
}
