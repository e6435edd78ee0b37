/** Decides whether a recording is fit for its purpose. */
import { AudioValidity, Decision, DecisionReason } from "../contract/index.js";
import type { ConfigurationSet } from "./configuration-set.js";

export interface MeasuredAudio {
  readonly netSpeechSeconds: number;
  readonly speechLevelDb: number | null;
  readonly snrDb: number | null;
  readonly saturationRatio: number;
  readonly speakers: number;
}

export type Purpose = "enroll" | "verify";

/**
 * The first limit that the audio fails. Level is checked before length, because the speech detector misses speech that is
 * too soft or clipped: "too short" would then be the wrong advice to the caller.
 */
export function audioValidity(audio: MeasuredAudio, purpose: Purpose, set: ConfigurationSet): AudioValidity {
  const minNetAudio = purpose === "enroll" ? set.minNetAudioForEnroll : set.minNetAudioForVerify;
  if (audio.saturationRatio > set.maxSaturationRatio) return AudioValidity.AUDIO_TOO_LOUD;
  if (audio.speechLevelDb !== null && audio.speechLevelDb < set.minSpeechLevelDb) return AudioValidity.AUDIO_TOO_SOFT;
  if (!(audio.netSpeechSeconds >= minNetAudio)) return AudioValidity.AUDIO_TOO_SHORT;
  if (audio.snrDb !== null && audio.snrDb < set.minSnrDb[purpose]) return AudioValidity.AUDIO_TOO_NOISY;
  if (audio.speakers > 1) return AudioValidity.MULTIPLE_SPEAKERS_DETECTED;
  return AudioValidity.AUDIO_OK;
}

const reasons: Readonly<Record<AudioValidity, DecisionReason>> = {
  [AudioValidity.UNSPECIFIED]: DecisionReason.UNSPECIFIED,
  [AudioValidity.AUDIO_OK]: DecisionReason.AUDIO_OK,
  [AudioValidity.NOT_ENOUGH_SEGMENTS]: DecisionReason.NOT_ENOUGH_SEGMENTS,
  [AudioValidity.INVALID_AUDIO]: DecisionReason.INVALID_AUDIO,
  [AudioValidity.AUDIO_TOO_SHORT]: DecisionReason.AUDIO_TOO_SHORT,
  [AudioValidity.AUDIO_TOO_SOFT]: DecisionReason.AUDIO_TOO_SOFT,
  [AudioValidity.AUDIO_TOO_LOUD]: DecisionReason.AUDIO_TOO_LOUD,
  [AudioValidity.AUDIO_TOO_NOISY]: DecisionReason.AUDIO_TOO_NOISY,
  [AudioValidity.MULTIPLE_SPEAKERS_DETECTED]: DecisionReason.LOW_RELIABILITY,
  [AudioValidity.INTERNAL_ERROR]: DecisionReason.INTERNAL_ERROR,
};

/** Why a check of audio with this validity has no decision. */
const reasonForValidity = (validity: AudioValidity): DecisionReason => reasons[validity] ?? DecisionReason.UNSPECIFIED;

/** The outcome of a check whose audio was unfit: it failed, or it may succeed with better audio. */
export const outcomeForValidity = (validity: AudioValidity): { decision: Decision; reason: DecisionReason } => ({
  decision: isUnreadable(validity) ? Decision.FAILED : Decision.UNCERTAIN,
  reason: reasonForValidity(validity),
});

export const isUnreadable = (validity: AudioValidity): boolean =>
  validity === AudioValidity.INVALID_AUDIO || validity === AudioValidity.INTERNAL_ERROR;
