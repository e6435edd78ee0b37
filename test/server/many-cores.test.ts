/** A machine with more cores than the engine takes workers. */
import { expect, test, vi } from "vitest";
import { workersOf } from "../../src/cli/shared-options.js";
import { mostWorkers } from "../../src/engine/threads.js";
import { loadConfig } from "../../src/server/config.js";

vi.mock("node:os", async (original) => ({ ...(await original<object>()), availableParallelism: () => 768 }));

test("the box and the command line start as many workers as the engine takes", () => {
  expect(loadConfig({ env: {} }).limits.concurrentAudio).toBe(mostWorkers);
  expect(workersOf({})).toBe(mostWorkers);
  expect(workersOf({ workers: 3 })).toBe(3);
});
