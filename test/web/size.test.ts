/** What a visitor downloads. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

const built = fileURLToPath(new URL("../../dist/page", import.meta.url));

test("the page is small, and most of it is the model", () => {
  const files = readdirSync(built, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const sizes = files.map(({ parentPath, name }) => ({
    name,
    bytes: gzipSync(readFileSync(join(parentPath, name))).length,
  }));
  const total = (of: typeof sizes) => of.reduce((sum, { bytes }) => sum + bytes, 0);
  const models = sizes.filter(({ name }) => name.endsWith(".vvm"));
  expect(models).toHaveLength(1);
  expect(total(sizes)).toBeLessThanOrEqual(8_000_000);
  // Everything needed to show the page and record, without the model.
  expect(total(sizes) - total(models)).toBeLessThanOrEqual(500_000);
});
