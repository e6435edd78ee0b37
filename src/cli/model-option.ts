import { loadConfig } from "../server/config.js";
import { modelLocation, modelNames } from "../server/model-location.js";

/** Help of `--model`. */
export const MODEL = `${modelNames.join(", ")}, or a model file`;

/** Options of openEngine for `--model`, or for the setting `model` without it: the name of a shipped model, or a model file. */
export const modelOption = (model: string | undefined): { model?: string | URL } =>
  modelLocation(model ?? loadConfig().model);
