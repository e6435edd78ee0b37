import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  AudioValidity,
  EnrollReason,
  EnrollStatus,
  TrainReason,
  VoiceprintProfileStatus,
} from "../../src/contract/index.js";
import { builtInConfigurationSets } from "../../src/voiceprint/configuration-set.js";
import { type AudioModel, enrollReason, enrollStatus } from "../../src/voiceprint/enrollment.js";
import { audioValidity } from "../../src/voiceprint/quality-gate.js";
import { inTrainingOrder, trainedStatus, trainReason } from "../../src/voiceprint/template.js";

const set = builtInConfigurationSets["ivr-text-dependent"]!;
const seconds = fc.double({ min: 0, max: 60, noNaN: true });
const audio = fc.record({
  netSpeechSeconds: seconds,
  speechLevelDb: fc.option(fc.double({ min: -90, max: 0, noNaN: true })),
  snrDb: fc.option(fc.double({ min: -20, max: 60, noNaN: true })),
  saturationRatio: fc.double({ min: 0, max: 1, noNaN: true }),
  speakers: fc.integer({ min: 0, max: 2 }),
});

const model = (id: string, netSpeechSeconds: number, revision = "r"): AudioModel => ({
  id,
  recordingId: `m${id}`,
  channel: null,
  printType: "text-dependent",
  revision,
  validity: AudioValidity.AUDIO_OK,
  audio: { netSpeechSeconds, speechLevelDb: -26, snrDb: 30, saturationRatio: 0, speakers: 1 },
  embedding: Float32Array.of(Number(id), 1),
});

describe("the quality gate", () => {
  test("audio that is good enough to enroll is good enough to verify", () => {
    fc.assert(
      fc.property(audio, (given) => {
        if (audioValidity(given, "enroll", set) === AudioValidity.AUDIO_OK)
          expect(audioValidity(given, "verify", set)).toBe(AudioValidity.AUDIO_OK);
      }),
    );
  });

  test("no speech at all is too short, not too soft", () => {
    const silence = { netSpeechSeconds: 0, speechLevelDb: null, snrDb: null, saturationRatio: 0, speakers: 0 };
    expect(audioValidity(silence, "verify", set)).toBe(AudioValidity.AUDIO_TOO_SHORT);
  });

  test("measures that are NaN never pass", () => {
    const odd = { netSpeechSeconds: Number.NaN, speechLevelDb: -26, snrDb: 30, saturationRatio: 0, speakers: 1 };
    expect(audioValidity(odd, "verify", set)).toBe(AudioValidity.AUDIO_TOO_SHORT);
  });
});

describe("the enrollment status", () => {
  test("suggests training from exactly the optimal amount of speech", () => {
    const third = set.optimalNetAudioForTrain / 3;
    const segments = (last: number) => [third, third, last].map((seconds, i) => model(String(i), seconds));
    expect(enrollStatus(segments(third), "r", set)).toBe(EnrollStatus.TRAIN_SUGGESTED);
    expect(enrollStatus(segments(third - 0.01), "r", set)).toBe(EnrollStatus.TRAIN_POSSIBLE);
  });

  test("never falls back as segments are added, and is FULL exactly at the maximum", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: 1, max: 10, noNaN: true }), { maxLength: 55 }), (lengths) => {
        let last = 0;
        for (let n = 0; n <= lengths.length; n++) {
          const status = enrollStatus(
            lengths.slice(0, n).map((length, i) => model(String(i), length)),
            "r",
            set,
          );
          expect(status).toBeGreaterThanOrEqual(last);
          expect(status === EnrollStatus.FULL).toBe(n >= set.maxEnrollmentSegments);
          last = status;
        }
      }),
      { numRuns: 25 },
    );
  });

  test("the order of segments does not matter", () => {
    fc.assert(
      fc.property(fc.array(seconds, { maxLength: 12 }), (lengths) => {
        const segments = lengths.map((length, i) => model(String(i), Math.round(length)));
        expect(enrollStatus([...segments].reverse(), "r", set)).toBe(enrollStatus(segments, "r", set));
      }),
    );
  });

  test("speech of exactly the minimum is enough in every order, and for training as for the status", () => {
    // Frames of 10 ms; three segments with 3 s in total.
    const frames = fc.integer({ min: 90, max: 110 });
    fc.assert(
      fc.property(frames, frames, (one, other) => {
        const lengths = [one / 100, other / 100, (300 - one - other) / 100];
        for (const order of [lengths, [...lengths].reverse(), [lengths[1]!, lengths[0]!, lengths[2]!]]) {
          const segments = order.map((length, i) => model(String(i), length));
          expect(enrollStatus(segments, "r", set)).toBe(EnrollStatus.TRAIN_POSSIBLE);
          const consistent = order.map((netSpeechSeconds) => ({ netSpeechSeconds, consistent: true }));
          expect(trainReason(consistent, set)).toBe(TrainReason.TRAIN_OK);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("segments of another model do not count, do not fill the print, and do not block the same audio", () => {
    const old = Array.from({ length: 50 }, (_, i) => model(String(i), 5, "old"));
    expect(enrollStatus(old, "r", set)).toBe(EnrollStatus.TRAIN_NOT_POSSIBLE);
    expect(enrollReason({ ...model("1", 5), id: "new" }, old, "text-dependent", "r", set)).toBe(EnrollReason.ENROLL_OK);
  });
});

describe("whether an audio model can be added", () => {
  const good = model("1", 5);
  const reason = (candidate: AudioModel, segments: AudioModel[] = [], printType: string | null = "text-dependent") =>
    enrollReason(candidate, segments, printType, "r", set);

  test.each<[string, Partial<AudioModel>, EnrollReason]>([
    ["good speech", {}, EnrollReason.ENROLL_OK],
    ["speech that is too short", { audio: { ...good.audio, netSpeechSeconds: 0.5 } }, EnrollReason.TOO_SHORT],
    // The limits of this set count, not those under which the audio was processed.
    [
      "speech that was too short under another set",
      { validity: AudioValidity.AUDIO_TOO_SHORT },
      EnrollReason.ENROLL_OK,
    ],
    ["speech that is too noisy", { audio: { ...good.audio, snrDb: 0 } }, EnrollReason.MISSING_MODEL],
    ["audio that could not be read", { validity: AudioValidity.INVALID_AUDIO }, EnrollReason.MISSING_MODEL],
    ["audio that failed in the engine", { validity: AudioValidity.INTERNAL_ERROR }, EnrollReason.INTERNAL_ERROR],
    ["a model of another revision", { revision: "old" }, EnrollReason.MISSING_MODEL],
    ["another kind of print", { printType: "text-independent" }, EnrollReason.WRONG_PRINT_TYPE],
    ["good speech without an embedding", { embedding: null }, EnrollReason.INTERNAL_ERROR],
  ])("%s", (_, changes, expected) => {
    expect(reason({ ...good, ...changes })).toBe(expected);
  });

  test("the first one decides the kind of print", () => {
    expect(reason({ ...good, printType: "text-independent" }, [], null)).toBe(EnrollReason.ENROLL_OK);
  });

  test("the same audio is added once: the same model, recording and channel, or embedding", () => {
    const other = { ...good, id: "2", recordingId: "m2", embedding: Float32Array.of(2, 1) };
    expect(reason(other, [good])).toBe(EnrollReason.ENROLL_OK);
    expect(reason({ ...other, id: good.id }, [good])).toBe(EnrollReason.ALREADY_ADDED);
    expect(reason({ ...other, recordingId: good.recordingId }, [good])).toBe(EnrollReason.ALREADY_ADDED);
    expect(reason({ ...other, recordingId: good.recordingId, channel: 1 }, [good])).toBe(EnrollReason.ENROLL_OK);
    expect(reason({ ...other, embedding: good.embedding }, [good])).toBe(EnrollReason.ALREADY_ADDED);
    expect(reason({ ...other, embedding: Float32Array.of(1) }, [good])).toBe(EnrollReason.ENROLL_OK);
  });

  test("a full print takes no more", () => {
    const full = Array.from({ length: set.maxEnrollmentSegments }, (_, i) => model(String(i + 2), 5));
    expect(reason(good, full)).toBe(EnrollReason.UNSPECIFIED);
    expect(reason(good, full.slice(1))).toBe(EnrollReason.ENROLL_OK);
  });
});

describe("training", () => {
  test("uses one fixed order of segments, whatever order they were enrolled in", () => {
    const ids = fc.uniqueArray(fc.uuid(), { maxLength: 20 });
    fc.assert(
      fc.property(ids, fc.integer(), (given, seed) => {
        const shuffled = [...given].sort((a, b) => (a + seed < b + seed ? 1 : -1));
        const order = (list: string[]) => inTrainingOrder(list.map((id) => ({ id }))).map(({ id }) => id);
        expect(order(shuffled)).toEqual(order(given));
      }),
    );
  });

  test("exactly the optimal amount of speech gives the best status; a little less does not", () => {
    const optimum = set.optimalNetAudioForTrain;
    expect(trainedStatus(optimum, set)).toBe(VoiceprintProfileStatus.OPTIMAL_TRAINED);
    expect(trainedStatus(optimum - 0.001, set)).toBe(VoiceprintProfileStatus.BASIC_TRAINED);
  });

  test("a print that is ready only with inconsistent segments is INCONSISTENCY", () => {
    const segment = (consistent: boolean) => ({ netSpeechSeconds: 2, consistent });
    expect(trainReason([segment(true), segment(true)], set)).toBe(TrainReason.NOT_READY_TO_TRAIN);
    expect(trainReason([segment(true), segment(true), segment(false)], set)).toBe(TrainReason.INCONSISTENCY);
    expect(trainReason([segment(true), segment(true), segment(true), segment(false)], set)).toBe(TrainReason.TRAIN_OK);
  });
});
