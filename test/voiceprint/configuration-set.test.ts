import { describe, expect, test } from "vitest";
import {
  builtInConfigurationSets,
  ConfigurationError,
  configurationSet,
  configurationSets,
} from "../../src/voiceprint/configuration-set.js";

describe("the two built-in sets", () => {
  test("ivr-text-dependent", () => {
    expect(builtInConfigurationSets["ivr-text-dependent"]).toMatchObject({
      printType: "text-dependent",
      minNetAudioForEnroll: 1,
      maxNetAudioForEnroll: 10,
      minSegmentsForTrain: 3,
      maxEnrollmentSegments: 50,
      minNetAudioForTrain: 3,
      optimalNetAudioForTrain: 8,
      minNetAudioForVerify: 1,
      minSnrDb: { enroll: 8, verify: 3 },
      maxSaturationRatio: 0.01,
      minSpeechLevelDb: -45,
      checkpointsForAuthentication: [2, 5],
      checkpointsForFraudDetection: [5, 10],
      targetFalseAcceptRate: { authentication: 0.01, fraud: 0.01 },
      maxIncompatiblePrintsListed: 100,
    });
  });

  test("text-independent", () => {
    expect(builtInConfigurationSets["text-independent"]).toMatchObject({
      printType: "text-independent",
      minNetAudioForEnroll: 4,
      maxNetAudioForEnroll: 120,
      minSegmentsForTrain: 1,
      maxEnrollmentSegments: 50,
      minNetAudioForTrain: 15,
      optimalNetAudioForTrain: 30,
      minNetAudioForVerify: 3,
      minSnrDb: { enroll: 8, verify: 3 },
      checkpointsForAuthentication: [5, 10],
      checkpointsForFraudDetection: [10, 30],
      targetFalseAcceptRate: { authentication: 0.01, fraud: 0.01 },
      maxIncompatiblePrintsListed: 100,
    });
  });

  test("obey the rules for user-defined sets, and can be overridden under their own names", () => {
    for (const [id, set] of Object.entries(builtInConfigurationSets)) expect(configurationSet(id, set)).toEqual(set);
    const sets = configurationSets({ "text-independent": { minNetAudioForVerify: 2 } });
    expect(sets.get("text-independent")).toMatchObject({ printType: "text-independent", minNetAudioForVerify: 2 });
  });
});

test("a user-defined set changes only the values it names", () => {
  const set = configurationSet("bank", {
    basedOn: "text-independent",
    targetFalseAcceptRate: { fraud: 0.001 },
    minSnrDb: { verify: 6 },
  });
  expect(set).toEqual({
    ...builtInConfigurationSets["text-independent"],
    targetFalseAcceptRate: { authentication: 0.01, fraud: 0.001 },
    minSnrDb: { enroll: 8, verify: 6 },
  });
});

test("a set may have any name", () => {
  for (const id of ["constructor", "toString"]) expect(configurationSet(id, {})).toEqual(configurationSet("mine", {}));
});

test.each([
  ["an unknown key", { minNetAudioForVerfy: 2 }, /^configuration set "mine": unknown name: minNetAudioForVerfy$/],
  ["an unknown nested key", { minSnrDb: { enrol: 2 } }, /minSnrDb.*enrol/],
  ["a wrong type", { minNetAudioForVerify: "2" }, /minNetAudioForVerify: must be a number, got a string$/],
  ["not a number", { minNetAudioForVerify: Number.NaN }, /minNetAudioForVerify/],
  ["a negative time", { minNetAudioForEnroll: -1 }, /minNetAudioForEnroll/],
  ["a rate of 0", { targetFalseAcceptRate: { authentication: 0 } }, /targetFalseAcceptRate\.authentication/],
  ["a rate of 1", { targetFalseAcceptRate: { fraud: 1 } }, /targetFalseAcceptRate\.fraud: must be below 1, got 1$/],
  ["half a segment", { minSegmentsForTrain: 1.5 }, /minSegmentsForTrain/],
  [
    "a minimum above its maximum",
    { minNetAudioForEnroll: 11 },
    /minNetAudioForEnroll: must not be above maxNetAudioForEnroll/,
  ],
  ["more segments needed than fit", { minSegmentsForTrain: 51 }, /minSegmentsForTrain: must not be above/],
  ["more segments than can be trained from", { maxEnrollmentSegments: 257 }, /maxEnrollmentSegments/],
  ["training above optimal", { minNetAudioForTrain: 9 }, /minNetAudioForTrain: must not be above/],
  [
    "more speech than a full profile can contain",
    { minNetAudioForTrain: 2000, optimalNetAudioForTrain: 3000 },
    /must not be above maxNetAudioForEnroll × maxEnrollmentSegments/,
  ],
  [
    "checkpoints that do not ascend",
    { checkpointsForAuthentication: [5, 2] },
    /checkpointsForAuthentication: must be in ascending order/,
  ],
  ["an unknown print type", { printType: "sung" }, /printType/],
  ["an unknown base", { basedOn: "toString" }, /basedOn: there is no built-in set "toString"/],
  ["several at once", { printType: "sung", minSegmentsForTrain: 0 }, /printType.*; minSegmentsForTrain/],
])("rejects %s, and says why", (_, overrides, reason) => {
  const parse = () => configurationSet("mine", overrides as never);
  expect(parse).toThrow(ConfigurationError);
  expect(parse).toThrow(reason);
  expect(parse).toThrow(/^configuration set "mine"/);
});

test.each([null, 7, "x"])("rejects %j as a set", (overrides) => {
  expect(() => configurationSet("mine", overrides as never)).toThrow(ConfigurationError);
});
