import { modelLocation } from "../server/model-location.js";

/** Options of openEngine for `--model`, or for VIVAVOCE_MODEL without it: the name of a shipped model, or a model file. */
export const modelOption = (model: string | undefined): { model?: string | URL } =>
  modelLocation(model ?? (process.env.VIVAVOCE_MODEL || undefined));
