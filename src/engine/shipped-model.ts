/**
 * The model that ships, by its file in `models/`. Programs, build, benchmarks and tests take the name from here. Inside the package it
 * is always `vivavoce.vvm`, beside the browser bundle, so that no address changes with the model.
 */
export const shippedModel = "vivavoce-1.vvm";

/** The larger and more accurate one, for boxes: no package carries it, `model` names its path or URL. */
export const accurateModel = "vivavoce-2-accurate.vvm";
