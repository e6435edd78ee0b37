/** The library inside a bundle for Node: its files are missing, and the error says what to do. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";

test.each([
  ["esm", "bundle.mjs"],
  ["cjs", "bundle.cjs"],
] as const)("bundled as %s, the kernels' error says to leave the package out", async (format, name) => {
  const folder = await mkdtemp(join(tmpdir(), "vivavoce-bundled-"));
  const outfile = join(folder, name);
  const entryPoints = [join(import.meta.dirname, "../../src/engine/platform.ts")];
  await build({ entryPoints, outfile, format, bundle: true, platform: "node", logLevel: "silent" });
  const { compileKernels } = await import(pathToFileURL(outfile).href);
  await expect(compileKernels()).rejects.toThrow("mark vivavoce as external (esbuild: --external:vivavoce)");
  await rm(folder, { recursive: true });
});
