import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEngine } from "../../dist/engine/index.js";
import { startBox } from "../../dist/server/start.js";
import { loadConfig } from "../../src/server/config.js";
import { jsonLog } from "../../src/server/log.js";
import { plainCalibration, randomModel } from "../engine/random-model.js";

const folder = mkdtempSync(join(tmpdir(), "vivavoce-page-calibration-"));
const page = join(folder, "page");
const model = join(folder, "model.vvm");
const calibration = join(folder, "calibration.json");

beforeAll(async () => {
  writeFileSync(model, randomModel());
  const engine = await openEngine({ workers: 0, model, calibration: null });
  const { revision: modelRevision } = engine.model;
  writeFileSync(
    calibration,
    JSON.stringify({ format: "vivavoce-calibration", version: 1, modelRevision, calibration: plainCalibration }),
  );
  await engine.close();
  mkdirSync(page);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function started(modelOfPage: Uint8Array) {
  writeFileSync(join(page, "own.vvm"), modelOfPage);
  writeFileSync(
    join(page, "index.html"),
    '<html><head><meta name="vivavoce-model" content="own.vvm" data-bytes="1" /></head></html>',
  );
  const logged: string[] = [];
  const box = await startBox(
    loadConfig({
      env: { VIVAVOCE_CALIBRATION: calibration },
      flags: { store: "memory", port: 0, page, model, "limits.concurrentAudio": 1 },
    }),
    { log: jsonLog("info", (line) => logged.push(line)) },
  );
  const html = await (await fetch(box.url)).text();
  const metrics = await (await fetch(`${box.url}/metrics`)).text();
  await box.stop();
  const inline = /<meta name="vivavoce-calibration" content="data:application\/json;base64,([^"]+)" \/>/.exec(
    html,
  )?.[1];
  return { inline, metrics, logged };
}

test("the metrics and the page of a box use its own calibration", async () => {
  const { inline, metrics, logged } = await started(randomModel());
  expect(Buffer.from(inline!, "base64")).toEqual(readFileSync(calibration));
  const engine = await openEngine({ workers: 0, model, calibration });
  const { revision, calibrationRevision } = engine.model;
  await engine.close();
  expect(metrics).toContain(`vivavoce_model{revision="${revision}",calibration="${calibrationRevision}"} 1`);
  expect(logged.join()).toContain(calibrationRevision);
});

test("a page with another model keeps the calibration of that model, and the log says so", async () => {
  const { inline, logged } = await started(randomModel({ seed: 2 }));
  expect(inline).toBeUndefined();
  expect(logged.join()).toContain("the page uses its model's own calibration");
});

test("the error for a missing calibration file names the file", async () => {
  const config = loadConfig({ env: {}, flags: { store: "memory", port: 0, model, calibration: "/nowhere.json" } });
  await expect(startBox(config)).rejects.toThrow("calibration: /nowhere.json: no such file");
});
