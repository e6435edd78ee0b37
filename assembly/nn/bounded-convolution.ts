/**
 * Convolutions whose outputs are clamped to a range per channel. A ReLU is a lower bound of 0. A batch norm after a ReLU,
 * y = g · max(0, z) + b, is z scaled by g and shifted by b, clamped above b (below b if g is negative): it costs nothing.
 */
import { Convolution, TILES, multiply, nearest, packedBytes } from "./convolution";

/** A convolution of stride 1 and the bounds of its outputs, f32[outputs] within ±32767. The convolution's own low and high are ignored. */
@unmanaged
export class Bounded {
  convolution: Convolution;
  low: usize;
  high: usize;
}

/** `convolve` with bounds, and with `bias`: the convolution's own, or another. */
export function convolveBounded(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, layer: Bounded, bias: usize): void {
  for (let o = 0; o < layer.convolution.outputs; o += 8) panel(out + (<usize>o << 1), outStep, x, xStep, frames, layer, bias, o);
}

/** Eight outputs from output `o` on. */
function panel(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, bounded: Bounded, bias: usize, o: i32): void {
  const layer = bounded.convolution;
  const tapStep = xStep * layer.dilation;
  const bytes = <usize>layer.run << 1;
  const weights = layer.weights + packedBytes(o, layer.taps, layer.run);
  const at = <usize>o << 2;
  const g0 = v128.load(layer.gain + at);
  const g1 = v128.load(layer.gain + at, 16);
  const b0 = v128.load(bias + at);
  const b1 = v128.load(bias + at, 16);
  const low0 = v128.load(bounded.low + at);
  const low1 = v128.load(bounded.low + at, 16);
  const high0 = v128.load(bounded.high + at);
  const high1 = v128.load(bounded.high + at, 16);
  for (; frames > 0; frames -= 4, x += xStep << 2) {
    multiply(TILES, x, xStep, frames, tapStep, layer.taps, bytes, weights);
    for (let sums = TILES, end = TILES + <usize>min(frames, 4) * 32; sums < end; sums += 32, out += outStep) {
      const y0 = f32x4.add(f32x4.mul(f32x4.convert_i32x4_s(v128.load(sums)), g0), b0);
      const y1 = f32x4.add(f32x4.mul(f32x4.convert_i32x4_s(v128.load(sums, 16)), g1), b1);
      v128.store(out, i16x8.narrow_i32x4_s(nearest(y0, low0, high0), nearest(y1, low1, high1)));
    }
  }
}
