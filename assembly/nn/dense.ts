/** Dense layers of float activations with integer weights: there are few rows, so high precision costs little. */

/** A dense layer: i16 weights [outputs][inputs], f32 gain and bias [outputs]. inputs % 8 == 0. */
@unmanaged
export class Dense {
  inputs: i32;
  outputs: i32;
  weights: usize;
  gain: usize;
  bias: usize;
}

/** out[o] = (Σ w[o][i] · x[i]) · gain[o] + bias[o]; summed in eight lanes, then lane by lane. */
export function dense(out: usize, x: usize, layer: Dense): void {
  let w = layer.weights;
  const end = x + (<usize>layer.inputs << 2);
  for (let o: usize = 0, last = <usize>layer.outputs << 2; o < last; o += 4) {
    let s0 = f32x4.splat(0), s1 = f32x4.splat(0);
    for (let p = x; p < end; p += 32, w += 16) {
      s0 = f32x4.add(s0, f32x4.mul(v128.load(p), f32x4.convert_i32x4_s(v128.load16x4_s(w))));
      s1 = f32x4.add(s1, f32x4.mul(v128.load(p, 16), f32x4.convert_i32x4_s(v128.load16x4_s(w, 8))));
    }
    store<f32>(out + o, sum(f32x4.add(s0, s1)) * load<f32>(layer.gain + o) + load<f32>(layer.bias + o));
  }
}

/** x[i] = max(0, x[i]). n % 4 == 0. */
export function rectify(x: usize, n: i32): void {
  for (let end = x + (<usize>n << 2); x < end; x += 16) v128.store(x, f32x4.pmax(f32x4.splat(0), v128.load(x)));
}

/** Scales x to unit length; a vector shorter than 1e-12 becomes zeros. n % 4 == 0. */
export function normalize(x: usize, n: i32): void {
  let s = f32x4.splat(0);
  const end = x + (<usize>n << 2);
  for (let p = x; p < end; p += 16) s = f32x4.add(s, f32x4.mul(v128.load(p), v128.load(p)));
  const length = sqrt<f32>(sum(s));
  const scale = f32x4.splat(length < 1e-12 ? 0 : 1 / length);
  for (let p = x; p < end; p += 16) v128.store(p, f32x4.mul(v128.load(p), scale));
}

// @ts-ignore: decorator
@inline
export function sum(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}
