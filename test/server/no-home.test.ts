/** A user id that the system does not know, and no HOME, as in a hardened container. */
import { expect, test, vi } from "vitest";
import { cachePath } from "../../src/cli/evaluate.js";
import { loadConfig } from "../../src/server/config.js";

vi.mock("node:os", async (original) => ({
  ...(await original<object>()),
  homedir: () => {
    throw new Error("uv_os_homedir returned ENOENT (no such file or directory)");
  },
}));

test("a box needs no home", () => {
  vi.stubEnv("XDG_DATA_HOME", "");
  expect(loadConfig({ env: { VIVAVOCE_STORE: "/data/store" } }).store).toBe("/data/store");
  expect(loadConfig({ env: {} }).store).toBe("/.local/share/vivavoce/store");
  vi.unstubAllEnvs();
});

test("an evaluation needs no home", () => {
  vi.stubEnv("XDG_CACHE_HOME", "");
  expect(cachePath(true, "revision")).toMatch(/^\/\.cache\/vivavoce\/evaluate\/revision-.*\.jsonl$/);
  vi.unstubAllEnvs();
});
