/** Where a voice stands on the learned axis, as a percentile over the training speakers. */
import { reserve } from "../memory";
import { cosine } from "./cosine";
import { dimensions, mean } from "./workspace";

const percentiles: i32 = 101;

let axis: usize = 0;
/** The axis value of each percentile, ascending. */
let quantiles: usize = 0;

export function reserveVoiceClass(d: i32): void {
  axis = reserve(<usize>d << 2);
  quantiles = reserve(<usize>percentiles << 2);
}
export function voiceClassAxis(): usize {
  return axis;
}
export function voiceClassQuantiles(): usize {
  return quantiles;
}

/** 0..100 of the embedding in `mean`. */
export function voiceClass(): f32 {
  const value = cosine(axis, mean, dimensions);
  for (let i = 1; i < percentiles; i++) {
    const high = load<f32>(quantiles + (<usize>i << 2));
    if (value >= high) continue;
    const low = load<f32>(quantiles + (<usize>(i - 1) << 2));
    if (value <= low) return <f32>(i - 1);
    return <f32>(i - 1) + (value - low) / (high - low);
  }
  return 100;
}
