/** Dense and elementwise layers on f32. Steps between frames are bytes. */
import { sum } from "../dense";

/** out[o] = Σ w[o][i] · x[i] + bias[o]; inputs % 8 == 0. Summed in eight lanes, then lane by lane. */
export function dense(out: usize, x: usize, w: usize, bias: usize, inputs: i32, outputs: i32): void {
  const end = x + (<usize>inputs << 2);
  for (let o: usize = 0, last = <usize>outputs << 2; o < last; o += 4) {
    let s0 = f32x4.splat(0), s1 = f32x4.splat(0);
    for (let p = x; p < end; p += 32, w += 32) {
      s0 = f32x4.add(s0, f32x4.mul(v128.load(p), v128.load(w)));
      s1 = f32x4.add(s1, f32x4.mul(v128.load(p, 16), v128.load(w, 16)));
    }
    store<f32>(out + o, sum(f32x4.add(s0, s1)) + load<f32>(bias + o));
  }
}

/** out[t][c] = max(low, x[t][c] · gain[c] + bias[c]): a folded batch norm, and the rectifier where low is 0. channels % 4 == 0. */
export function preactivate(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, channels: i32, gain: usize, bias: usize, low: f32): void {
  const bytes = <usize>channels << 2;
  const floor = f32x4.splat(low);
  for (let t = 0; t < frames; t++, out += outStep, x += xStep) {
    for (let c: usize = 0; c < bytes; c += 16) {
      const y = f32x4.add(f32x4.mul(v128.load(x + c), v128.load(gain + c)), v128.load(bias + c));
      v128.store(out + c, f32x4.pmax(floor, y));
    }
  }
}

/** out[i] = max(low, a[i] + b[i]). n % 4 == 0; out may be a or b. */
export function addResidual(out: usize, a: usize, b: usize, n: i32, low: f32): void {
  for (let i: usize = 0, end = <usize>n << 2; i < end; i += 16) {
    v128.store(out + i, f32x4.pmax(f32x4.splat(low), f32x4.add(v128.load(a + i), v128.load(b + i))));
  }
}

/** out[t][c] = x[t][c] · mask[c]: the excitation of a squeeze-excitation. channels % 4 == 0. */
export function scaleChannels(out: usize, outStep: usize, x: usize, xStep: usize, frames: i32, channels: i32, mask: usize): void {
  const bytes = <usize>channels << 2;
  for (let t = 0; t < frames; t++, out += outStep, x += xStep) {
    for (let c: usize = 0; c < bytes; c += 16) v128.store(out + c, f32x4.mul(v128.load(x + c), v128.load(mask + c)));
  }
}
