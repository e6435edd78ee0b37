import { readFile } from "node:fs/promises";
import { z } from "zod";
import { nullIfMissing } from "../store/null-if-missing.js";
import { detCurve } from "./det.js";
import type { Evaluation } from "./evaluate.js";

const share = z.number().min(0).max(1);
const estimate = z.strictObject({
  value: z.number(),
  interval: z.strictObject({ low: z.number(), high: z.number() }).nullable(),
});

/** Figures and curve of an evaluation: only rates and counts, no recordings or voices. */
const schema = z.strictObject({
  /** Milliseconds since 1970. */
  at: z.number().int().min(0),
  /** Name of the folder or list. */
  name: z.string().max(256),
  condition: z.string().max(256),
  modelRevision: z.string().max(128),
  recordings: z.number().int().min(0),
  speakers: z.number().int().min(0),
  sameTrials: z.number().int().min(0),
  differentTrials: z.number().int().min(0),
  unscoredTrials: z.number().int().min(0),
  equalErrorRate: estimate,
  cllr: estimate,
  operatingPoints: z.array(z.strictObject({ falseMatchRate: share, fnmr: estimate, resolved: z.boolean() })).max(10),
  curve: z.array(z.strictObject({ fmr: share, fnmr: share })).max(10_000),
});

export type LastEvaluation = z.infer<typeof schema>;

/** `null` if the trials gave no figures, or none that the view can show. */
export function lastEvaluation(name: string, evaluation: Evaluation, at: Date): LastEvaluation | null {
  if (!evaluation.summary) return null;
  const curve = detCurve(evaluation.trials);
  const figures = { ...evaluation, ...evaluation.summary, at: at.getTime(), name, curve };
  return schema.strip().safeParse(figures).data ?? null;
}

/** `null` if there is none yet; throws if the file is not a valid evaluation. */
export async function readLastEvaluation(file: string): Promise<LastEvaluation | null> {
  const text = await readFile(file, "utf8").catch(nullIfMissing);
  return text === null ? null : schema.parse(JSON.parse(text));
}
