import { ownModel } from "../engine/platform.js";
import { accurateModel, shippedModel } from "../engine/shipped-model.js";

/** Where the models with a name are. */
const named: Readonly<Record<string, () => string | URL>> = {
  [shippedModel.replace(".vvm", "")]: ownModel,
  [accurateModel.replace(".vvm", "")]: () => new URL(`../../models/${accurateModel}`, import.meta.url),
};

export const modelNames = Object.keys(named);

/** Options of openEngine for the setting `model`: the name of a shipped model, or a model file. */
export function modelLocation(model: string | undefined): { model?: string | URL } {
  if (model === undefined) return {};
  return { model: Object.hasOwn(named, model) ? named[model]!() : model };
}
