/** Options of a processor, and that what was opened for it is closed again if it cannot be created. */
import { beforeEach, expect, test, vi } from "vitest";
import { createVoiceprintsProcessor, openVoiceprints } from "../../src/index.js";
import { fixtureEngine } from "./fixture-engine.js";

const open = vi.hoisted(() => ({ engines: 0 }));

vi.mock("../../src/engine/index.js", () => ({
  async openEngine() {
    open.engines++;
    return {
      ...fixtureEngine(),
      async close() {
        open.engines--;
      },
    };
  },
}));

beforeEach(() => {
  open.engines = 0;
});

const unfit = [
  { configurationSets: { mine: { minNetAudioForVerfy: 2 } as never } },
  { retention: { audioSeconds: Number.NaN } },
];

test.each(unfit)("leaves no engine open after %j", async (options) => {
  await expect(createVoiceprintsProcessor(options)).rejects.toThrow(/minNetAudioForVerfy|audioSeconds/);
  await expect(openVoiceprints(options)).rejects.toThrow(/minNetAudioForVerfy|audioSeconds/);
  expect(open.engines).toBe(0);
});

test.each([
  [null, "options must be an object, got null"],
  ["mine.vvm", "options must be an object, got string"],
  [{ stor: {} }, "unknown option stor (did you mean store?)"],
  [{ model: "mine.vvm" }, "unknown option model (did you mean engineOptions.model?)"],
  [{ engineOptions: { modle: "mine.vvm" } }, "unknown option engineOptions.modle (did you mean model?)"],
  [{ engineOptions: null }, "engineOptions must be an object, got null"],
  [{ engine: Promise.resolve() }, "engine must be an opened engine: await openEngine(), got a promise"],
  [{ store: Promise.resolve() }, "store must be an opened store: await openIndexedDbStore(), got a promise"],
  [{ store: {} }, "store must be an opened store: await openIndexedDbStore(), got object"],
  [{ scope: 5 }, "scope must be a non-empty string, got number"],
  [{ scope: null }, "scope must be a non-empty string, got null"],
  [{ scope: "" }, "scope must be a non-empty string, got an empty one"],
  [{ retention: 5 }, "retention must be an object, got number"],
  [{ retention: { audioSecond: 60 } }, "unknown option retention.audioSecond (did you mean audioSeconds?)"],
  [{ limits: { mediaByte: 60 } }, "unknown option limits.mediaByte (did you mean mediaBytes?)"],
])("a caller without a type checker is told what is wrong with %j", async (options, message) => {
  await expect(openVoiceprints(options as never)).rejects.toThrow(message);
  expect(open.engines).toBe(0);
});

test("createVoiceprintsProcessor names an unknown option too", async () => {
  const options = { configurationSet: {} } as never;
  await expect(createVoiceprintsProcessor(options)).rejects.toThrow(
    "unknown option configurationSet (did you mean configurationSets?)",
  );
});

test("a working processor stays open until it is closed", async () => {
  const [processor, voice] = [await createVoiceprintsProcessor(), await openVoiceprints()];
  expect(open.engines).toBe(2);
  await processor.close();
  await voice.close();
  expect(open.engines).toBe(0);
});

test("closing twice closes once", async () => {
  const onClose = vi.fn(async () => {});
  const processor = await createVoiceprintsProcessor({ onClose });
  await Promise.all([processor.close(), processor.close()]);
  await processor.close();
  expect(onClose).toHaveBeenCalledOnce();
  expect(open.engines).toBe(0);
});
