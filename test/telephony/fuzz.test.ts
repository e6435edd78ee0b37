import { expect, it } from "vitest";
import { DialectError } from "../../src/telephony/port.js";
import { dialects, fuzz } from "./fuzz.js";

/** `VIVAVOCE_FUZZ_FRAMES=100000 npx vitest run test/telephony/fuzz.test.ts` for the long form. */
const frames = Number(process.env.VIVAVOCE_FUZZ_FRAMES ?? 5000);

it.each(Object.keys(dialects))("%s", { timeout: 600_000 }, (name) => {
  const report = fuzz(name, frames, 17, (error) => error instanceof DialectError);
  // Both valid and invalid frames occurred; otherwise nothing was tested.
  expect(report.refused).toBeGreaterThan(frames / 1000);
  expect(report.calls).toBeLessThan(frames);
});
