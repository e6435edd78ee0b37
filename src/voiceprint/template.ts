/** Decides when segments become a template. The kernels find the consistent segments and average them. */
import { ConsistencyDecision, TrainReason, VoiceprintProfileStatus } from "../contract/index.js";
import type { ConfigurationSet } from "./configuration-set.js";

export interface TrainingSegment {
  readonly netSpeechSeconds: number;
  readonly consistent: boolean;
}

/**
 * Sorts segments, so that the template does not depend, not even in its last bit, on the order in which they were
 * enrolled.
 */
export const inTrainingOrder = <T extends { readonly id: string }>(segments: readonly T[]): T[] =>
  [...segments].sort((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));

export const enoughForTraining = (
  segments: readonly Pick<TrainingSegment, "netSpeechSeconds">[],
  set: ConfigurationSet,
): boolean => segments.length >= set.minSegmentsForTrain && totalNet(segments) >= set.minNetAudioForTrain;

/** TRAIN_OK if the consistent segments are enough; INCONSISTENCY if they are enough only together with inconsistent ones. */
export function trainReason(segments: readonly TrainingSegment[], set: ConfigurationSet): TrainReason {
  if (!enoughForTraining(segments, set)) return TrainReason.NOT_READY_TO_TRAIN;
  const consistent = segments.filter((segment) => segment.consistent);
  return enoughForTraining(consistent, set) ? TrainReason.TRAIN_OK : TrainReason.INCONSISTENCY;
}

export const trainedStatus = (netSpeechSeconds: number, set: ConfigurationSet): VoiceprintProfileStatus =>
  netSpeechSeconds >= set.optimalNetAudioForTrain
    ? VoiceprintProfileStatus.OPTIMAL_TRAINED
    : VoiceprintProfileStatus.BASIC_TRAINED;

export const consistencyDecision = (consistent: boolean): ConsistencyDecision =>
  consistent ? ConsistencyDecision.CONSISTENT : ConsistencyDecision.INCONSISTENT;

/**
 * Adds whole milliseconds, as durations are reported, so that rounding errors that depend on the order of the segments
 * cannot change a decision.
 */
export const totalNet = (segments: readonly Pick<TrainingSegment, "netSpeechSeconds">[]): number =>
  Math.round(1000 * segments.reduce((sum, segment) => sum + segment.netSpeechSeconds, 0)) / 1000;
