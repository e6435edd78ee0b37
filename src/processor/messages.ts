/** Converts stored records to messages of the contract. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AudioDetailsSchema,
  type CalibrationModelDetailsSchema,
  type ConsentSchema,
  ConsentState,
  OwnerType,
  type RiskEngineResultSchema,
  type UniqueIdSchema,
  type VoiceprintDetailsSchema,
} from "../contract/index.js";
import type { ModelInfo } from "../engine/port.js";
import {
  type Id,
  type OwnerKind,
  type Print,
  type ProcessedAudio,
  type Profile,
  printOf,
  type RecordedConsent,
} from "../store/port.js";
import { type Risk, riskFigures } from "../voiceprint/risk.js";

export const uniqueId = (value: Id): MessageInitShape<typeof UniqueIdSchema> => ({ value });

export const idIfAny = (value: Id | null): MessageInitShape<typeof UniqueIdSchema> | undefined =>
  value === null ? undefined : { value };

/** Leaves a wrapper field absent if there is no value. */
export const ifKnown = <T>(value: T | null | undefined): T | undefined => value ?? undefined;

export const duration = (seconds: number): Duration => durationFromMs(Math.round(seconds * 1000));

/** Reported for audio whose voices were separated. */
export interface SeparatedAudio {
  /** Net speech that is not the caller's. */
  readonly otherSeconds: number;
  readonly isAgentRecognized: boolean;
}

/** Absent if no consent was recorded. */
export function consentMessage(
  consent: RecordedConsent | undefined,
): MessageInitShape<typeof ConsentSchema> | undefined {
  if (!consent) return undefined;
  const state = consent.state === "given" ? ConsentState.GIVEN : ConsentState.WITHDRAWN;
  return { state, time: timestampFromMs(consent.at), reference: consent.reference };
}

export interface DescribedAudio
  extends Pick<ProcessedAudio, "channel" | "mediaChannels" | "mediaRateHz" | "measures" | "speakers"> {
  readonly mediaSegmentId: Id | null;
  readonly processedAudioId: Id | null;
  /** Set if voices were separated; the net speech is then the caller's. */
  readonly separated?: SeparatedAudio | null;
}

export const describedAudio = (processed: ProcessedAudio): DescribedAudio => ({
  ...processed,
  processedAudioId: processed.id,
});

/** All audio is resampled to this rate of the front end. */
const processedRateHz = 16_000;

export function audioDetails(audio: DescribedAudio): MessageInitShape<typeof AudioDetailsSchema> {
  const { measures } = audio;
  return {
    gkMediaSegmentId: idIfAny(audio.mediaSegmentId),
    gkProcessedAudioId: idIfAny(audio.processedAudioId),
    grossAudio: duration(measures.grossSeconds),
    netAudio: duration(measures.netSpeechSeconds),
    snrDb: ifKnown(measures.snrDb),
    speechLevel: ifKnown(measures.speechLevelDb),
    saturationLevel: measures.saturatedPerMinute,
    mediaNumberOfChannels: audio.mediaChannels,
    mediaSamplingRateHz: audio.mediaRateHz,
    selectedChannel: audio.channel === null ? undefined : { channel: audio.channel },
    processedAudioSamplingRateHz: processedRateHz,
    numberOfDetectedSpeakers: audio.speakers,
    separatedAudio: audio.separated
      ? {
          otherNetAudio: duration(audio.separated.otherSeconds),
          isAgentRecognized: audio.separated.isAgentRecognized,
        }
      : undefined,
  };
}

export const ownerType = (kind: OwnerKind): OwnerType => (kind === "person" ? OwnerType.PERSON : OwnerType.FRAUDSTER);

export const profileDetails = (profile: Profile) => printDetails(printOf(profile, null));

/** Also of a profile that has no print yet. */
export const printDetails = (print: Omit<Print, "template">): MessageInitShape<typeof VoiceprintDetailsSchema> => ({
  gkVoiceprintProfileId: uniqueId(print.profileId),
  gkOwnerId: uniqueId(print.ownerId),
  ownerType: ownerType(print.kind),
  profileTag: print.tag,
  printVersion: print.printVersion === 0 ? undefined : print.printVersion,
});

export const calibrationModel = (model: ModelInfo): MessageInitShape<typeof CalibrationModelDetailsSchema> => ({
  gkCalibrationModelRevisionId: uniqueId(model.revision),
  calibrationModelId: model.calibrationModelId,
});

export const riskResult = (risk: Risk | null): MessageInitShape<typeof RiskEngineResultSchema> | undefined =>
  risk === null ? undefined : riskFigures(risk);
