import { exp1, exp4 } from "../math/exponential";

/** out[i] = eˣ⁽ⁱ⁾ / Σ eˣ over f32[n]. The largest is taken off first, so that nothing overflows; out may be x. */
export function softmax(out: usize, x: usize, n: i32): void {
  const bytes = <usize>n << 2;
  let top = -f32.MAX_VALUE;
  for (let i: usize = 0; i < bytes; i += 4) top = max(top, load<f32>(x + i));
  let total: f32 = 0;
  for (let i: usize = 0; i < bytes; i += 4) {
    const e = exp1(load<f32>(x + i) - top);
    total += e;
    store<f32>(out + i, e);
  }
  for (let i: usize = 0; i < bytes; i += 4) store<f32>(out + i, load<f32>(out + i) / total);
}

/** x[t] = eˣ⁽ᵗ⁾ / Σ eˣ over time, four channels at once; xStep is the bytes from frame to frame. */
export function softmaxFrames(x: usize, xStep: usize, frames: i32): void {
  let top = v128.load(x);
  for (let t = 1, p = x + xStep; t < frames; t++, p += xStep) top = f32x4.pmax(top, v128.load(p));
  let total = f32x4.splat(0);
  for (let t = 0, p = x; t < frames; t++, p += xStep) {
    const e = exp4(f32x4.sub(v128.load(p), top));
    total = f32x4.add(total, e);
    v128.store(p, e);
  }
  for (let t = 0, p = x; t < frames; t++, p += xStep) v128.store(p, f32x4.div(v128.load(p), total));
}
