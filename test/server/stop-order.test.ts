/** A job that is running when a box stops needs the engine until the store has let it finish. */
import { expect, test, vi } from "vitest";
import { configSchema } from "../../src/server/config.js";
import { jsonLog } from "../../src/server/log.js";
import { OpenModels } from "../../src/server/open-models.js";
import * as stores from "../../src/server/open-store.js";
import { startBox } from "../../src/server/start.js";
import { createMemoryStore } from "../../src/store/memory.js";
import { fixtureEngine } from "../processor/fixture-engine.js";

vi.mock("../../src/server/open-store.js", { spy: true });

test("the engine is closed after the store", async () => {
  const closed: string[] = [];
  const store = createMemoryStore();
  const close = async () => {
    closed.push("store");
    await store.close();
  };
  vi.mocked(stores.openConfiguredStore).mockResolvedValueOnce({ ...store, close });
  vi.spyOn(OpenModels.prototype, "close").mockImplementation(async () => {
    closed.push("engine");
  });
  const config = configSchema.parse({ port: 0, store: "memory" });
  const box = await startBox(config, { engine: fixtureEngine(), log: jsonLog("silent") });
  await box.stop();
  expect(closed).toEqual(["store", "engine"]);
});
