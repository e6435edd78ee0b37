import { type DescMessage, fromBinary, fromJson, ScalarType, toBinary, toJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import * as contract from "../../src/contract/index.js";
import { AnalyzeAudioResponseSchema, TrainResponseSchema } from "../../src/contract/index.js";
import { take } from "./fixture-engine.js";
import { list, openWorld } from "./world.js";

test("responses in process, as JSON and over gRPC have the same numbers", async () => {
  const world = await openWorld();
  const profile = await world.trained(7);
  world.engine.behavior.score = (raw) => ({ raw, llr: 12, reliability: 1 });
  const analyzed = await world.processor.analyzeAudio({
    context: world.context,
    audio: await world.heard(take(7, 4)),
    gkVoiceprintProfileIds: list(profile, await world.trained(9, "fraudster")),
  });
  const trained = await world.processor.train({ context: world.context, gkVoiceprintProfileId: profile });
  expect(fromBinary(AnalyzeAudioResponseSchema, toBinary(AnalyzeAudioResponseSchema, analyzed))).toEqual(analyzed);
  expect(fromJson(AnalyzeAudioResponseSchema, toJson(AnalyzeAudioResponseSchema, analyzed))).toEqual(analyzed);
  expect(fromBinary(TrainResponseSchema, toBinary(TrainResponseSchema, trained))).toEqual(trained);
  // The score must not be exact in 32 bits, or the test would prove nothing.
  const score = analyzed.result!.authenticationResult!.authenticationScore!.biometricScore!;
  expect(Math.fround(score)).toBe(score);
  expect(analyzed.result!.voiceprintResults.map(({ score }) => score.value!.biometricScore)).toContain(score);
  const [segment] = trained.result!.enrollmentSegmentsDetails;
  expect(Math.fround(segment!.consistencyScore!)).toBe(segment!.consistencyScore);
});

test("every float of the contract may be absent: no field is a plain float", () => {
  const schemas = Object.values(contract).filter(
    (one): one is typeof one & DescMessage => typeof one === "object" && "kind" in one && one.kind === "message",
  );
  expect(schemas.length).toBeGreaterThan(50);
  const plain = schemas.flatMap(({ typeName, fields }) =>
    fields.filter(({ scalar }) => scalar === ScalarType.FLOAT).map(({ name }) => `${typeName}.${name}`),
  );
  expect(plain).toEqual([]);
});
