// How fast WASM reads memory here: eight parallel streams, as in a gallery search (a single one takes half as long again), with one
// accumulator each, compiled in the process that measures.
import { compiled } from "./compiled.mjs";

const runs = [0, 1, 2, 3, 4, 5, 6, 7];
const all = (line) => runs.map(line).join(" ");
const source = `
export function prepare(bytes: i32): void {
  const missing = ((bytes + 0xffff) >> 16) + 1 - memory.size();
  if (missing > 0) memory.grow(missing);
  memory.fill(65536, 1, bytes);
}
export function readAll(bytes: i32): i32 {
  const run = <usize>bytes / 8;
  let p0: usize = 65536;
  ${all((i) => (i ? `let p${i} = p${i - 1} + run;` : ""))}
  ${all((i) => `let a${i} = i32x4.splat(0);`)}
  for (const end = p0 + run; p0 < end; ) {
    ${all((i) => `a${i} = i32x4.add(i32x4.add(a${i}, v128.load(p${i})), v128.load(p${i}, 16));`)}
    ${all((i) => `p${i} += 32;`)}
  }
  ${all((i) => (i ? `a0 = i32x4.add(a0, a${i});` : ""))}
  return i32x4.extract_lane(a0, 0) + i32x4.extract_lane(a0, 1) + i32x4.extract_lane(a0, 2) + i32x4.extract_lane(a0, 3);
}`;

export const readSpeedModule = () => compiled(source);
