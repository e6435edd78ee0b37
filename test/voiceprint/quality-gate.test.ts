import { expect, test } from "vitest";
import { AudioValidity, Decision } from "../../src/contract/gen/vendor/biosec/v1/common_pb.js";
import { DecisionReason } from "../../src/contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { builtInConfigurationSets } from "../../src/voiceprint/configuration-set.js";
import { audioValidity, isUnreadable, outcomeForValidity } from "../../src/voiceprint/quality-gate.js";

const set = {
  ...builtInConfigurationSets["ivr-text-dependent"]!,
  minNetAudioForEnroll: 4,
  minNetAudioForVerify: 2,
  minSnrDb: { enroll: 9, verify: 3 },
  minSpeechLevelDb: -40,
  maxSaturationRatio: 0.01,
};
/** Exactly at every limit for enrollment, and therefore good enough. */
const edge = { netSpeechSeconds: 4, speechLevelDb: -40, snrDb: 9, saturationRatio: 0.01, speakers: 1 };
const enroll = (change: Partial<typeof edge>) => audioValidity({ ...edge, ...change }, "enroll", set);

test("audio at a limit passes, audio beyond it does not", () => {
  expect(enroll({})).toBe(AudioValidity.AUDIO_OK);
  expect(enroll({ netSpeechSeconds: 3.999 })).toBe(AudioValidity.AUDIO_TOO_SHORT);
  expect(enroll({ speechLevelDb: -40.01 })).toBe(AudioValidity.AUDIO_TOO_SOFT);
  expect(enroll({ snrDb: 8.99 })).toBe(AudioValidity.AUDIO_TOO_NOISY);
  expect(enroll({ saturationRatio: 0.0101 })).toBe(AudioValidity.AUDIO_TOO_LOUD);
  expect(enroll({ speakers: 2 })).toBe(AudioValidity.MULTIPLE_SPEAKERS_DETECTED);
  expect(enroll({ netSpeechSeconds: Number.NaN })).toBe(AudioValidity.AUDIO_TOO_SHORT);
});

test("checks have their own limits", () => {
  const verify = (change: Partial<typeof edge>) => audioValidity({ ...edge, ...change }, "verify", set);
  expect(verify({ netSpeechSeconds: 2, snrDb: 3 })).toBe(AudioValidity.AUDIO_OK);
  expect(verify({ netSpeechSeconds: 1.999 })).toBe(AudioValidity.AUDIO_TOO_SHORT);
  expect(verify({ snrDb: 2.99 })).toBe(AudioValidity.AUDIO_TOO_NOISY);
});

test("a measure that is unknown does not count against the audio", () => {
  expect(audioValidity({ ...edge, speechLevelDb: null, snrDb: null }, "enroll", set)).toBe(AudioValidity.AUDIO_OK);
});

test("level is judged before length, and length before noise", () => {
  expect(enroll({ saturationRatio: 1, netSpeechSeconds: 0 })).toBe(AudioValidity.AUDIO_TOO_LOUD);
  expect(enroll({ speechLevelDb: -60, netSpeechSeconds: 0 })).toBe(AudioValidity.AUDIO_TOO_SOFT);
  expect(enroll({ snrDb: 0, netSpeechSeconds: 0 })).toBe(AudioValidity.AUDIO_TOO_SHORT);
});

test("only unreadable audio fails a check; for other faults, better audio may give an answer", () => {
  const failing = [AudioValidity.INVALID_AUDIO, AudioValidity.INTERNAL_ERROR];
  const all = Object.values(AudioValidity).filter((value) => typeof value === "number");
  expect(all.filter(isUnreadable)).toEqual(failing);
  expect(outcomeForValidity(AudioValidity.INVALID_AUDIO)).toEqual({
    decision: Decision.FAILED,
    reason: DecisionReason.INVALID_AUDIO,
  });
  expect(outcomeForValidity(AudioValidity.AUDIO_TOO_NOISY)).toEqual({
    decision: Decision.UNCERTAIN,
    reason: DecisionReason.AUDIO_TOO_NOISY,
  });
});
