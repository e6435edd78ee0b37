/** The front end of a speaker network, as its model file describes it. The kernels compute one filter bank with either of two windows. */
import { ModelFileError } from "./model-file-error.js";
import type { FrameRows } from "./stream-kernel.js";

export interface FrontEnd {
  /** The features in its windows. */
  readonly rows: FrameRows;
  /** Added to every mel power, as a share of the window's mean power. */
  readonly floor: number;
}

/** assembly/dsp/log-mel.ts */
const fixed: Readonly<Record<string, number>> = {
  rateHz: 16000,
  frameSamples: 400,
  shiftSamples: 160,
  bins: 80,
  lowHz: 20,
  highHz: 8000,
  preemphasis: 0.97,
  fftPoints: 512,
  floor: 2 ** -23,
};

const rowsOfWindow: Readonly<Record<string, FrameRows>> = { povey: "mel", hamming: "hamming" };
const usualFloor = 1e-6;

/** Refuses a front end that this engine does not compute. Missing fields have the values of the first model. */
export function frontEndOf(described: Readonly<Record<string, unknown>>): FrontEnd {
  for (const [name, value] of Object.entries(fixed)) {
    if (described[name] === undefined || described[name] === value) continue;
    throw refused(`${name} must be ${value}, got ${String(described[name])}`);
  }
  const { window = "povey", relativeFloor = usualFloor } = described;
  const rows = Object.hasOwn(rowsOfWindow, String(window)) ? rowsOfWindow[String(window)] : undefined;
  if (!rows) throw refused(`window must be povey or hamming, got ${String(window)}`);
  if (typeof relativeFloor !== "number" || !(relativeFloor >= 0 && relativeFloor < 1))
    throw refused(`relativeFloor must be at least 0 and below 1, got ${String(relativeFloor)}`);
  return { rows, floor: relativeFloor };
}

function refused(detail: string): ModelFileError {
  return new ModelFileError("OTHER_ARCHITECTURE", `this engine cannot compute the model's front end: ${detail}`);
}
