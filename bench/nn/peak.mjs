// Peak rate of multiply-accumulates in WASM here with `i32x4.dot_i16x8_s`: twelve accumulators, no memory access, compiled in the
// process that measures. Each sum depends on the previous one, so that nothing can be hoisted.
import { compiled } from "../compiled.mjs";

const lanes = Array.from({ length: 12 }, (_, i) => `a${i}`);
const step = lanes.map((a) => `${a} = i32x4.add(${a}, i32x4.dot_i16x8_s(${a}, x));`).join(" ");
const source = `
memory.data(1024);
export function dots(n: i32): i32 {
  const x = v128.load(512);
  let ${lanes.map((a, i) => `${a} = i16x8.splat(${i + 1})`).join(", ")};
  for (let i = 0; i < n; i += 2) { ${step} ${step} }
  ${lanes
    .slice(1)
    .map((a) => `a0 = i32x4.add(a0, ${a});`)
    .join(" ")}
  return i32x4.extract_lane(a0, 0);
}`;

/** { run, macs }: one call of run does `macs` multiply-accumulates. */
export async function peak(calls = 60_000) {
  const { dots } = new WebAssembly.Instance(new WebAssembly.Module(await compiled(source)), {}).exports;
  return { run: () => dots(calls), macs: calls * lanes.length * 8 };
}
