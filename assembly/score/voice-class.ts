/** Position of a voice on the learned axis, as a percentile of the training speakers. */
import { reserve } from "../memory";
import { cosine } from "./cosine";
import { dimensions, mean } from "./workspace";

let axis: usize = 0;
/** Quantiles of the training speakers along the axis, ascending, at equal shares. */
let quantiles: usize = 0;
let shares: i32 = 0;

/** n >= 2 quantiles. */
export function reserveVoiceClass(d: i32, n: i32): void {
  shares = n;
  axis = reserve(<usize>d << 2);
  quantiles = reserve(<usize>n << 2);
}
export function voiceClassAxis(): usize {
  return axis;
}
export function voiceClassQuantiles(): usize {
  return quantiles;
}

/** 0..100 for the embedding in `mean`. */
export function voiceClass(): f32 {
  const value = cosine(axis, mean, dimensions);
  for (let i = 1; i < shares; i++) {
    const high = load<f32>(quantiles + (<usize>i << 2));
    if (value >= high) continue;
    const low = load<f32>(quantiles + (<usize>(i - 1) << 2));
    const within: f32 = value <= low ? 0 : (value - low) / (high - low);
    return (100 * (<f32>(i - 1) + within)) / <f32>(shares - 1);
  }
  return 100;
}
