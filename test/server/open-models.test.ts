/** The models of a box: one for each scope that has its own, others when an older print needs them. */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openEngine } from "../../src/engine/index.js";
import { describedModel } from "../../src/engine/model-file.js";
import { OpenModels } from "../../src/server/open-models.js";
import { plainCalibration, randomModel } from "../engine/random-model.js";
import { fixtureEngine } from "../processor/fixture-engine.js";

/** The compiled kernels are in dist. */
vi.mock("../../src/engine/platform.js", async (original) => ({
  ...(await original<object>()),
  compileKernels: () => WebAssembly.compile(readFileSync(new URL("../../dist/engine/vivavoce.wasm", import.meta.url))),
}));

const folder = mkdtempSync(join(tmpdir(), "vivavoce-models-"));
const [model, other] = ["model.vvm", "other.vvm"].map((name) => join(folder, name)) as [string, string];
/** In this thread: workers need the compiled library. */
const options = { workers: 0 };
let revision: string;
let otherRevision: string;
beforeAll(() => {
  const files = [randomModel(), randomModel({ seed: 2 })] as const;
  writeFileSync(model, files[0]);
  writeFileSync(other, files[1]);
  [revision, otherRevision] = [describedModel(files[0]).revision, describedModel(files[1]).revision];
});
afterAll(() => rmSync(folder, { recursive: true }));

const settings = { model, scopeModels: {}, olderModels: [] };

test("a scope has its own model, all others that of the box", async () => {
  const models = await OpenModels.open({ ...settings, scopeModels: { bank: other } }, options);
  expect(models.engine.model.revision).toBe(revision);
  expect(models.of("bank").model.revision).toBe(otherRevision);
  expect(models.of("elsewhere")).toBe(models.engine);
  expect(await models.open(otherRevision)).toBe(models.of("bank"));
  await models.close();
});

test("if the model of a scope cannot be opened, none is", async () => {
  const opening = OpenModels.open({ ...settings, scopeModels: { bank: other } }, { workers: -1 }, fixtureEngine());
  await expect(opening).rejects.toThrow("workers must be a whole number");
});

test("a model that only older prints need is opened once, when the first is asked for", async () => {
  const models = await OpenModels.open({ ...settings, olderModels: [pathToFileURL(other).href] }, options);
  expect([models.has(revision), models.has(otherRevision), models.has("none")]).toEqual([true, true, false]);
  const opening = models.open(otherRevision);
  expect(models.open(otherRevision)).toBe(opening);
  expect((await opening).model.revision).toBe(otherRevision);
  expect(await models.open(revision)).toBe(models.engine);
  await expect(models.open("none")).rejects.toThrow("no loaded model has the revision none");
  await models.close();
});

test("the log says that the box's own calibration does not apply to prints of another model", async () => {
  const file = { format: "vivavoce-calibration", version: 1, modelRevision: revision, calibration: plainCalibration };
  const own = { ...options, calibration: new TextEncoder().encode(JSON.stringify(file)) };
  for (const [given, times] of [
    [own, 1],
    [options, 0],
  ] as const) {
    const warn = vi.fn();
    const models = await OpenModels.open({ ...settings, olderModels: [other] }, given, undefined, { warn });
    expect(warn).not.toHaveBeenCalled();
    const { calibrationRevision } = (await models.open(otherRevision)).model;
    await models.open(otherRevision);
    expect(warn).toHaveBeenCalledTimes(times);
    if (times > 0) expect(warn.mock.lastCall![1]).toEqual({ model: otherRevision, calibration: calibrationRevision });
    await models.close();
  }
});

test("a model that could not be opened is tried again", async () => {
  const models = await OpenModels.open({ ...settings, olderModels: [other] }, options);
  const elsewhere = join(folder, "elsewhere.vvm");
  renameSync(other, elsewhere);
  await expect(models.open(otherRevision)).rejects.toThrow();
  renameSync(elsewhere, other);
  expect((await models.open(otherRevision)).model.revision).toBe(otherRevision);
  await models.close();
});

test("what was opened is closed; an engine that was given is left open", async () => {
  const models = await OpenModels.open({ ...settings, scopeModels: { bank: other } }, options);
  const opened = [models.engine, models.of("bank")];
  await models.close();
  for (const engine of opened) await expect(engine.stream(8000)).rejects.toThrow();
  const given = await openEngine({ ...options, model });
  const own = await OpenModels.open(settings, options, given);
  expect(own.engine).toBe(given);
  await own.close();
  const stream = await given.stream(8000);
  await stream.close();
  await given.close();
});

test("a model of the settings that cannot be read is named", async () => {
  const missing = join(folder, "missing.vvm");
  for (const named of [{ scopeModels: { bank: missing } }, { olderModels: [missing] }])
    await expect(OpenModels.open({ ...settings, ...named }, options, fixtureEngine())).rejects.toThrow(
      `model ${missing}: no such file`,
    );
});

test("an older model that cannot be used is an error of the start", async () => {
  const damaged = join(folder, "damaged.vvm");
  const bytes = randomModel({ seed: 3 });
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(damaged, bytes);
  const opening = OpenModels.open({ ...settings, olderModels: [damaged] }, options, fixtureEngine());
  await expect(opening).rejects.toThrow(`model ${damaged}: `);
});

test("a fault of any open model is the fault of the box", async () => {
  const given = fixtureEngine();
  const models = await OpenModels.open({ ...settings, scopeModels: { bank: other } }, options, given);
  expect(models.fault).toBeNull();
  Object.defineProperty(models.of("bank"), "fault", { value: "no memory for its workers" });
  expect(models.fault).toBe("no memory for its workers");
  Object.defineProperty(given, "fault", { value: "no workers" });
  expect(models.fault).toBe("no workers");
  await models.close();
});
