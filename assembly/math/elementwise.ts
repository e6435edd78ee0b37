/**
 * The elementary functions over arrays of floats: out[i] = f(x[i]), n of any size, out may be x.
 * Tables created while loading use AssemblyScript's own `Math` (a port of musl in f64, under 1 unit in the last place):
 * it is compiled in, so results do not depend on the host.
 */
import { exp4, sigmoid4, tanh4 } from "./exponential";
import { log4 } from "./logarithm";

export function log(out: usize, x: usize, n: i32): void {
  let i = 0;
  for (; i + 4 <= n; i += 4) v128.store(out + (<usize>i << 2), log4(v128.load(x + (<usize>i << 2))));
  for (; i < n; i++) v128.store_lane<f32>(out + (<usize>i << 2), log4(v128.load32_splat(x + (<usize>i << 2))), 0);
}

export function exp(out: usize, x: usize, n: i32): void {
  let i = 0;
  for (; i + 4 <= n; i += 4) v128.store(out + (<usize>i << 2), exp4(v128.load(x + (<usize>i << 2))));
  for (; i < n; i++) v128.store_lane<f32>(out + (<usize>i << 2), exp4(v128.load32_splat(x + (<usize>i << 2))), 0);
}

export function sigmoid(out: usize, x: usize, n: i32): void {
  let i = 0;
  for (; i + 4 <= n; i += 4) v128.store(out + (<usize>i << 2), sigmoid4(v128.load(x + (<usize>i << 2))));
  for (; i < n; i++) v128.store_lane<f32>(out + (<usize>i << 2), sigmoid4(v128.load32_splat(x + (<usize>i << 2))), 0);
}

export function tanh(out: usize, x: usize, n: i32): void {
  let i = 0;
  for (; i + 4 <= n; i += 4) v128.store(out + (<usize>i << 2), tanh4(v128.load(x + (<usize>i << 2))));
  for (; i < n; i++) v128.store_lane<f32>(out + (<usize>i << 2), tanh4(v128.load32_splat(x + (<usize>i << 2))), 0);
}
