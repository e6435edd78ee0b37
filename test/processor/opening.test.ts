/** If a processor cannot be created, what was opened for it is closed again. */
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

test("a working processor stays open until it is closed", async () => {
  const [processor, voice] = [await createVoiceprintsProcessor(), await openVoiceprints()];
  expect(open.engines).toBe(2);
  await processor.close();
  await voice.close();
  expect(open.engines).toBe(0);
});
