/** When segments become a template. The kernels find the consistent ones and average them; here it is judged. */
import { TrainReason } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { ConsistencyDecision, VoiceprintProfileStatus } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import type { ConfigurationSet } from "./configuration-set.js";

export interface TrainingSegment {
  readonly netSpeechSeconds: number;
  readonly consistent: boolean;
}

/**
 * Segments in an order of their own, whatever order they were enrolled in: the template, down to its last bit, must not
 * depend on it.
 */
export const inTrainingOrder = <T extends { readonly id: string }>(segments: readonly T[]): T[] =>
  [...segments].sort((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));

export const enoughForTraining = (
  segments: readonly Pick<TrainingSegment, "netSpeechSeconds">[],
  set: ConfigurationSet,
): boolean => segments.length >= set.minSegmentsForTrain && totalNet(segments) >= set.minNetAudioForTrain;

/** TRAIN_OK when what agrees is enough; INCONSISTENCY when only what disagrees would make it so. */
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
 * In whole milliseconds, as durations are reported: what adding fractions loses, in one order of the segments and not in
 * another, must not decide.
 */
export const totalNet = (segments: readonly Pick<TrainingSegment, "netSpeechSeconds">[]): number =>
  Math.round(1000 * segments.reduce((sum, segment) => sum + segment.netSpeechSeconds, 0)) / 1000;
