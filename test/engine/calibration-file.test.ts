import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openEngine } from "../../dist/engine/index.js";
import { readModelFile } from "../../src/engine/model-file.js";
import { plainCalibration, randomModel } from "./random-model.js";

const model = randomModel();
const bytesOf = (file: unknown) => new TextEncoder().encode(JSON.stringify(file));
const calibration = {
  ...plainCalibration,
  terms: [
    ["one", "one", -1],
    ["cosine", "one", 11],
  ],
};

test("an operator's own calibration changes ratios and its revision, and keeps templates valid", async () => {
  const plain = await openEngine({ workers: 0, model, calibration: null });
  const { revision, calibrationModelId, calibrationRevision } = plain.model;
  const file = bytesOf({ format: "vivavoce-calibration", version: 1, modelRevision: revision, calibration });
  const own = await openEngine({ workers: 0, model, calibration: file });
  expect(own.model.revision).toBe(revision);
  expect(own.model.calibrationRevision).toMatch(/^[0-9a-f]{64}$/);
  expect(own.model.calibrationRevision).not.toBe(calibrationRevision);
  expect(own.model.calibrationModelId).toBe(`${calibrationModelId}+${own.model.calibrationRevision.slice(0, 8)}`);
  const embedding = Float32Array.from({ length: plain.model.dimensions }, (_, i) => (i === 3 ? 1 : 0));
  const voice = { embedding, netSpeechSeconds: 4, snrDb: 20, bandwidthHz: 7000 };
  const { template } = await plain.train([voice]);
  const [score] = await own.score([template!], voice);
  expect(score!.llr).toBeCloseTo(10, 12 /* rounding */);
  await Promise.all([plain.close(), own.close()]);
});

test.each([
  ["no JSON", new TextEncoder().encode("{"), /not JSON/],
  ["another file", bytesOf({ name: "x" }), /vivavoce calibrate/],
  ["a later version", bytesOf({ format: "vivavoce-calibration", version: 2 }), /version 2/],
  [
    "another model's",
    bytesOf({ format: "vivavoce-calibration", version: 1, modelRevision: "0".repeat(64), calibration }),
    /another model/,
  ],
])("%s is refused with a reason", async (_, file, reason) => {
  const opened = openEngine({ workers: 0, model, calibration: file });
  await expect(opened).rejects.toThrow(reason);
  await expect(opened).rejects.toMatchObject({ code: "BAD_CALIBRATION" });
});

test("a damaged calibration is refused with the name of its file, also that of VIVAVOCE_CALIBRATION", async () => {
  const folder = await mkdtemp(join(tmpdir(), "vivavoce-calibration-"));
  const path = join(folder, "own.json");
  const { revision: modelRevision } = await readModelFile(model);
  const whole = { format: "vivavoce-calibration", version: 1, modelRevision, calibration };
  const refused = async (file: object, reason: RegExp) => {
    await writeFile(path, JSON.stringify(file));
    vi.stubEnv("VIVAVOCE_CALIBRATION", path);
    for (const options of [{ calibration: path }, {}]) {
      const error = await openEngine({ workers: 0, model, ...options }).catch((reason: unknown) => reason as Error);
      expect(error).toMatchObject({ code: "BAD_CALIBRATION", message: expect.stringMatching(reason) });
      expect((error as Error).message.startsWith(`${path}: the calibration `)).toBe(true);
    }
  };
  try {
    await refused({ ...whole, calibration: { ...calibration, terms: [["zap", "one", 1]] } }, /unknown feature: "zap"/);
    // Neither String nor Number can convert it.
    const odd = { toString: 1, valueOf: 1 };
    await refused(
      { ...whole, calibration: { ...calibration, consistency: odd } },
      /must be a number, got \{"toString"/,
    );
    await refused({ ...whole, calibration: { ...calibration, impostors: null } }, /impostors\.center must be a list/);
    await refused({ ...whole, calibration: [] }, /terms must be a list/);
    await refused({ ...whole, attacks: null }, /attack thresholds are malformed/);
    await refused({ ...whole, attacks: "none" }, /attack thresholds are malformed/);
    await expect(openEngine({ workers: 0, model, calibration: folder })).rejects.toMatchObject({
      code: "EISDIR",
      path: folder,
    });
  } finally {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  }
});

test("a model without a calibration is refused, and opens with a file", async () => {
  const bare = randomModel({ calibration: null });
  await expect(openEngine({ workers: 0, model: bare, calibration: null })).rejects.toThrow(
    "the model has no calibration",
  );
  const { revision } = await readModelFile(bare);
  const file = bytesOf({ format: "vivavoce-calibration", version: 1, modelRevision: revision, calibration });
  await (await openEngine({ workers: 0, model: bare, calibration: file })).close();
});

test("attack thresholds fitted to an operator's own calls replace the model's, for the network they were fitted to", async () => {
  const both = randomModel({ attacks: ["synthetic", "playback"] });
  const plain = await openEngine({ workers: 0, model: both, calibration: null });
  const silence = new Float32Array(16_000);
  const { revision } = await plain.attack("synthetic", silence, 16_000);
  const opened = (fit: unknown) =>
    openEngine({
      workers: 0,
      model: both,
      calibration: bytesOf({
        format: "vivavoce-calibration",
        version: 1,
        modelRevision: plain.model.revision,
        calibration,
        attacks: { synthetic: fit },
      }),
    });
  const own = await opened({ revision, location: 1, scale: 0.5 });
  expect(own.attackThreshold("synthetic", 0.01)).toBeCloseTo(1 + 0.5 * Math.log(100), 12 /* rounding */);
  expect(own.attackThreshold("playback", 0.01)).toBe(plain.attackThreshold("playback", 0.01));
  for (const rate of [0, 1, Number.NaN])
    expect(() => own.attackThreshold("synthetic", rate)).toThrow(`above 0 and below 1, got ${rate}`);
  await Promise.all([plain.close(), own.close()]);
  await expect(opened({ revision: "0".repeat(64), location: 1, scale: 0.5 })).rejects.toThrow(/another network/);
  for (const wrong of [{ revision, location: 1, scale: 0 }, { revision, scale: 1 }, { location: 1, scale: 1 }, null, 7])
    await expect(opened(wrong)).rejects.toMatchObject({ code: "BAD_CALIBRATION" });
  // Nothing would ever be an attack.
  for (const [location, scale] of [
    [1e9, 1],
    [9, 0.1],
    [-1e6, 3e5],
  ])
    await expect(opened({ revision, location, scale })).rejects.toThrow(/synthetic speech are too high for any attack/);
});
