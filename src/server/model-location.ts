import { accurateModel, shippedModel } from "../engine/shipped-model.js";

/** The models that can be named, by their files; the library's own is found by the engine. */
const named: Readonly<Record<string, URL | undefined>> = {
  [shippedModel.replace(".vvm", "")]: undefined,
  [accurateModel.replace(".vvm", "")]: new URL(`../../models/${accurateModel}`, import.meta.url),
};

/** Options of openEngine for the setting `model`: the name of a shipped model, or a model file. */
export function modelLocation(model: string | undefined): { model?: string | URL } {
  const location = model !== undefined && Object.hasOwn(named, model) ? named[model] : model;
  return location === undefined ? {} : { model: location };
}
