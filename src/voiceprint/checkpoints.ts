/** Looks at audio before its end: at which checkpoints, how many, and which answer stops processing. */
import { Decision } from "../contract/index.js";

/**
 * The checkpoints that audio of this length can reach (net speech is never longer than the audio). They are known before
 * the first sample is read, so that the number of looks cannot depend on the audio.
 */
export const reachableCheckpoints = (checkpoints: readonly number[], grossSeconds: number): number[] =>
  checkpoints.filter((at) => at < grossSeconds);

/** Every checkpoint is a look, and so is the end. */
export const looksAt = (checkpoints: readonly number[]): number => checkpoints.length + 1;

/** Only a clear match ends processing early: more speech may still change any other answer. */
export const endsEarly = (decision: Decision): boolean =>
  decision === Decision.AUTHENTIC || decision === Decision.FRAUD;
