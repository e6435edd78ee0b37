/** The exports of the package root, by their documented names. */
import { describe, expect, test } from "vitest";
import * as vivavoce from "../../dist/index.js";

test("the class VoiceprintsProcessor with the nine operations, and those that the workflows need", () => {
  // No method is called, so no engine is needed.
  const options = { engine: {}, store: vivavoce.createMemoryStore(), readRecording: vivavoce.readRecording };
  const operations = new vivavoce.VoiceprintsProcessor(options as never) as unknown as Record<string, unknown>;
  for (const name of [
    "processAudio",
    "enroll",
    "getEnrollStatus",
    "train",
    "checkWatchlistConsistency",
    "verify",
    "identify",
    "detectKnownFraudsters",
    "analyzeAudio",
    "startEngagement",
    "stopEngagement",
    "startSession",
    "stopSession",
    "getSessionDecision",
    "createVoiceprintProfile",
    "getGkVoiceprintProfileId",
    "deleteVoiceprintProfile",
    "addMediaSegment",
    "createGroup",
    "createWatchlist",
    "startVoiceprintProfilesStatusJob",
    "getVoiceprintProfilesStatusJob",
  ])
    expect(operations[name], name).toBeTypeOf("function");
});

describe("enumerations and result messages", () => {
  test.each([
    "ConsistencyDecision",
    "DecisionReason",
    "EnrollReason",
    "EnrollStatus",
    "VoiceprintProfileStatus",
    "VoiceprintProfilesStatusJobState",
    "Decision",
    "AudioValidity",
    "OwnerType",
    "TrainStatus",
    "TrainReason",
    "SessionType",
    "StatusCode",
  ])("%s", (name) => {
    expect((vivavoce as unknown as Record<string, Record<string, number>>)[name]!.UNSPECIFIED).toBe(0);
  });

  test.each([
    "VoiceprintDetails",
    "AuthenticationScore",
    "FraudDetectionScore",
    "VoiceprintResult",
    "CalibrationModelDetails",
    "IncompatiblePrintDetails",
    "AudioProcessingResult",
    "EnrollResult",
    "EnrollmentSegmentDetails",
    "TrainResult",
    "VerifyResult",
    "IdentifyResult",
    "DetectKnownFraudstersResult",
    "AnalyzeAudioResult",
    "AnalyzeAudioAuthenticationResult",
    "AnalyzeAudioFraudDetectionResult",
    "Context",
    "Status",
  ])("%s", (name) => {
    const schema = (vivavoce as unknown as Record<string, { name: string }>)[`${name}Schema`];
    expect(schema?.name).toBe(name);
  });

  test("those of the audio package are in their own namespace", () => {
    expect(vivavoce.audio.DecisionReason.PLAYBACK_INDICATION).toBe(9);
    expect(vivavoce.audio.SyntheticSpeechDetectionResultSchema.typeName).toBe(
      "vendor.biosec.v1.audio.SyntheticSpeechDetectionResult",
    );
  });
});

test("functions that open things", () => {
  const { openVoiceprints, createVoiceprintsProcessor, openEngine, createMemoryStore } = vivavoce;
  for (const open of [openVoiceprints, createVoiceprintsProcessor, openEngine, createMemoryStore])
    expect(open).toBeTypeOf("function");
});
