/**
 * The model that ships, by its file in `models/`. Programs, build, benchmarks and tests take the name from here. Inside the package it
 * is always `vivavoce.vvm`, beside the browser bundle, so that no address changes with the model.
 */
export const shippedModel = "vivavoce-2.vvm";

/** The larger and more accurate one: the box's package carries it, browsers and the library's do not. */
export const accurateModel = "vivavoce-2-accurate.vvm";
