/** Advice for the person who is being recorded. */
import type { Measures } from "../engine/port.js";

export type Advice = "speak" | "keepTalking" | "almost" | "closer" | "away" | "quieter" | "waiting";

export interface Limits {
  readonly minSnrDb: number;
  readonly minSpeechLevelDb: number;
  readonly maxSaturationRatio: number;
  /** Net speech that fills the ring. */
  readonly targetSeconds: number;
}

/** The warning comes before the limit is reached, so that there is time to react. */
const snrMarginDb = 4;
const levelMarginDb = 5;
/** Measures of less speech than this vary too much. */
const steadySeconds = 0.6;

export function adviceFor(measures: Measures | null, limits: Limits): Advice {
  if (measures === null) return "waiting";
  const { netSpeechSeconds, saturationRatio, speechLevelDb, snrDb } = measures;
  if (saturationRatio > limits.maxSaturationRatio) return "away";
  if (netSpeechSeconds < 0.2) return "speak";
  if (netSpeechSeconds >= steadySeconds) {
    if (speechLevelDb !== null && speechLevelDb < limits.minSpeechLevelDb + levelMarginDb) return "closer";
    if (snrDb !== null && snrDb < limits.minSnrDb + snrMarginDb) return "quieter";
  }
  return netSpeechSeconds > 0.7 * limits.targetSeconds ? "almost" : "keepTalking";
}
