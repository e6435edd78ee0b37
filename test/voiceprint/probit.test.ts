import { expect, test } from "vitest";
import { probit } from "../../src/voiceprint/probit.js";

/** From Python: statistics.NormalDist().inv_cdf (Wichura, AS 241). */
const quantiles: [probability: number, deviate: number][] = [
  [1e-10, -6.361340902404056],
  [1e-5, -4.2648907939228256],
  [0.001, -3.090232306167813],
  [0.01, -2.3263478740408408],
  [0.02425, -1.9729610513118845],
  [0.025, -1.9599639845400538],
  [0.1, -1.2815515655446008],
  [0.25, -0.6744897501960817],
  [0.4, -0.2533471031357998],
  [0.5, 0],
];

test("normal deviates have a relative error of at most 1.2e-9, in the middle and in both tails", () => {
  for (const [probability, deviate] of quantiles) {
    expect(Math.abs(probit(probability) - deviate)).toBeLessThanOrEqual(1.2e-9 * Math.abs(deviate));
    // 1 - 1e-10 is a double with a relative error of its own.
    if (probability > 1e-6)
      expect(Math.abs(probit(1 - probability) + deviate)).toBeLessThanOrEqual(1.3e-9 * Math.abs(deviate));
  }
});
