/**
 * File name in `models/` of the model that ships. Programs, build, benchmarks and tests take it from here. Inside the package the file
 * is always `vivavoce.vvm`, beside the browser bundle, so that its address does not change with the model.
 */
export const shippedModel = "vivavoce-2.vvm";

/** The larger, more accurate model: part of the box's package, but not of the library's or the browser's. */
export const accurateModel = "vivavoce-2-accurate.vvm";
