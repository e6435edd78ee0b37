import { expect, it } from "vitest";
import { DialectError } from "../../src/telephony/port.js";
import { dialects, fuzz } from "./fuzz.js";

/** `VIVAVOCE_FUZZ_FRAMES=100000 npx vitest run test/telephony/fuzz.test.ts` for the long form. */
const frames = Number(process.env.VIVAVOCE_FUZZ_FRAMES ?? 5000);

const isRefusal = (error: unknown) => error instanceof DialectError;

it.each(Object.keys(dialects))("%s", { timeout: 600_000 }, (name) => {
  const report = fuzz(name, frames, 17, isRefusal);
  // Both valid and invalid frames occurred; otherwise nothing was tested.
  expect(report.refused).toBeGreaterThan(frames / 1000);
  expect(report.calls).toBeLessThan(frames);
});

it.each(Object.keys(dialects))("%s: a call without damaged frames is not refused", (name) => {
  expect(fuzz(name, 1000, 17, isRefusal, 1)).toMatchObject({ refused: 0 });
});
