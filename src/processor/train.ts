import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConsistencyDecision, type EnrollmentSegmentDetailsSchema, TrainStatus } from "../contract/index.js";
import type { SegmentConsistency, Template } from "../engine/port.js";
import { untilUncontended } from "../store/contention.js";
import type { ProcessedAudio, Profile } from "../store/port.js";
import { consistencyDecision, totalNet, trainedStatus } from "../voiceprint/template.js";
import { openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { enrolledTemplate } from "./grow-print.js";
import { audioDetails, describedAudio, duration, ifKnown, profileDetails, uniqueId } from "./messages.js";
import { findProfileToChange, statusOf } from "./profiles.js";
import { trainTemplate } from "./training.js";

/** Creates a new template from the enrollment segments; the old one stays until the new one is written. */
export const train: Implementation<"train"> = async (deps, request, options) => {
  const { scopeId, set, engine } = await openContext(deps, request.context, options);
  return untilUncontended("the profile", async () => {
    options.signal?.throwIfAborted();
    const profile = await findProfileToChange(deps, scopeId, request.gkVoiceprintProfileId);
    const segments = (await deps.store.profiles.segments(scopeId, profile.id)).map(({ processed }) => processed);
    const { template, reason, consistency, valid } = await trainTemplate(engine, segments, set, options);
    const counted = segments.filter(({ id }) => valid.has(id));
    const net = totalNet(counted.map(({ measures }) => measures));
    const status = trainedStatus(net, set);
    const isKept = request.onlyIfChanged && template !== null && isSame(profile, template, status);
    const trained = template && { template, status, printVersion: profile.printVersion + (isKept ? 0 : 1) };
    if (trained && !isKept && !(await deps.store.profiles.train(scopeId, profile.id, profile.generation, trained)))
      return undefined;
    return {
      result: {
        trainStatus: trained ? TrainStatus.TRAINED : TrainStatus.FAILED,
        reason,
        status: trained?.status ?? statusOf(deps, profile),
        voiceprintDetails: profileDetails({ ...profile, printVersion: trained?.printVersion ?? profile.printVersion }),
        gkCalibrationModelRevisionId: uniqueId(engine.model.revision),
        totalSegments: segments.length,
        totalValidSegments: counted.length,
        minSegmentsRequired: set.minSegmentsForTrain,
        totalNetAudio: duration(net),
        minNetAudioRequired: duration(set.minNetAudioForTrain),
        enrollmentSegmentsDetails: segments.map((segment) =>
          segmentDetails(segment, consistency.get(segment.id), template !== null),
        ),
      },
    };
  });
};

/** Training the same segments again gives the same template; how it is stored may round it. */
const ROUNDING = 1e-6;

function isSame(profile: Profile, trained: Template, status: number): boolean {
  if (profile.status !== status || profile.template?.revision !== trained.revision) return false;
  const { embedding, netSpeechSeconds } = enrolledTemplate(profile.template);
  return (
    Math.abs(netSpeechSeconds - trained.netSpeechSeconds) < ROUNDING &&
    embedding.every((value, i) => Math.abs(value - trained.embedding[i]!) < ROUNDING)
  );
}

function segmentDetails(
  segment: ProcessedAudio,
  consistency: SegmentConsistency | undefined,
  trained: boolean,
): MessageInitShape<typeof EnrollmentSegmentDetailsSchema> {
  return {
    gkMediaSegmentId: uniqueId(segment.mediaSegmentId),
    gkProcessedAudioId: uniqueId(segment.id),
    consistencyDecision: consistency ? consistencyDecision(consistency.consistent) : ConsistencyDecision.UNSPECIFIED,
    consistencyScore: consistency?.score,
    usedForTrain: trained && consistency?.consistent === true,
    audioDetails: audioDetails(describedAudio(segment)),
    voiceClassScore: ifKnown(segment.voiceClass),
    gkCalibrationModelRevisionId: uniqueId(segment.revision),
  };
}
