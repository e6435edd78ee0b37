// One voice against 100,000 and 1,000,000, top ten: compared with usearch's exact search, hnswlib's brute force, and the machine's read speed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { WasmGallery } from "../dist/engine/gallery.js";
import { absent, atLeast, atMost, compare, random } from "./measure.mjs";
import { readSpeedModule } from "./read-speed.mjs";

const require = createRequire(import.meta.url);
const dimensions = 256;
const prints = 100_000;
const k = 10;

function voices(count) {
  const next = random(5);
  const rows = new Float32Array(count * dimensions);
  for (let i = 0; i < count; i++) {
    const row = rows.subarray(i * dimensions, (i + 1) * dimensions);
    let square = 0;
    for (let j = 0; j < dimensions; j++) {
      row[j] = next() + next() + next() - 1.5;
      square += row[j] * row[j];
    }
    for (let j = 0; j < dimensions; j++) row[j] /= Math.sqrt(square);
  }
  return rows;
}

export default async function gallery() {
  const module = new WebAssembly.Module(readFileSync(new URL("../dist/engine/vivavoce.wasm", import.meta.url)));
  const rows = voices(prints);
  const probe = rows.slice(7 * dimensions, 8 * dimensions);
  const f32 = new WasmGallery(module, dimensions, "f32");
  const int8 = new WasmGallery(module, dimensions, "int8");
  for (let i = 0; i < prints; i++) {
    const row = rows.subarray(i * dimensions, (i + 1) * dimensions);
    f32.set(String(i), row);
    int8.set(String(i), row);
  }
  const cases = { f32: () => f32.top(probe, k), int8: () => int8.top(probe, k) };
  const missing = [];
  const best = f32.top(probe, k).map(({ id }) => Number(id));
  const agree = (name, ids) => {
    if (ids.map(Number).join() !== best.join()) throw new Error(`${name} finds others: ${ids} instead of ${best}`);
  };
  try {
    const { exactSearch, MetricKind } = require("usearch");
    agree("usearch", [...exactSearch(rows, probe, dimensions, k, MetricKind.IP, 1).keys]);
    cases.usearch = () => exactSearch(rows, probe, dimensions, k, MetricKind.IP, 1);
  } catch (error) {
    missing.push(absent("1 against 100,000, f32", "usearch exact", error));
  }
  try {
    const { BruteforceSearch } = require("hnswlib-node");
    const index = new BruteforceSearch("ip", dimensions);
    index.initIndex(prints);
    for (let i = 0; i < prints; i++) index.addPoint(Array.from(rows.subarray(i * dimensions, (i + 1) * dimensions)), i);
    const query = Array.from(probe);
    agree("hnswlib", index.searchKnn(query, k).neighbors);
    cases.hnswlib = () => index.searchKnn(query, k);
  } catch (error) {
    missing.push(absent("1 against 100,000, f32", "hnswlib brute force", error));
  }
  const reader = new WebAssembly.Instance(new WebAssembly.Module(await readSpeedModule())).exports;
  reader.prepare(prints * dimensions * 4);
  cases.read = () => reader.readAll(prints * dimensions * 4);

  const timed = await compare(cases, "f32", { rounds: 15 });
  const ms = (name) => `${timed[name].ms.toFixed(1)} ms`;
  const out = [
    ...(timed.usearch
      ? [
          atLeast(
            "1 against 100,000, f32, top 10",
            "usearch exact",
            timed.usearch.ratio,
            1,
            `${ms("f32")}, usearch ${ms("usearch")}`,
          ),
        ]
      : []),
    ...(timed.hnswlib
      ? [
          atLeast(
            "1 against 100,000, f32, top 10",
            "hnswlib brute force",
            timed.hnswlib.ratio,
            1,
            `${ms("f32")}, hnswlib ${ms("hnswlib")}`,
          ),
        ]
      : []),
    ...missing,
    atLeast(
      "1 against 100,000, f32, top 10",
      "share of WASM read speed",
      100 * timed.read.ratio,
      80,
      `${((prints * dimensions * 4) / 1e6 / timed.read.ms).toFixed(1)} GB/s read`,
      " %",
    ),
    atLeast("1 against 100,000, int8, top 10", "the same in f32", 1 / timed.int8.ratio, 3, ms("int8")),
    atMost(
      "1 against 100,000, int8, top 10",
      "30 ms",
      timed.int8.ms,
      30,
      `${(int8.memoryBytes / prints).toFixed(0)} bytes a print`,
      " ms",
    ),
  ];

  const million = new WasmGallery(module, dimensions, "int8");
  for (let i = 0; i < 1_000_000; i++)
    million.set(String(i), rows.subarray((i % prints) * dimensions, ((i % prints) + 1) * dimensions));
  const whole = await compare({ million: () => million.top(probe, k), int8: cases.int8 }, "int8", { rounds: 5 });
  out.push(
    atMost(
      "1 against 1,000,000, int8, top 10",
      "300 ms",
      whole.million.ms,
      300,
      `${(million.memoryBytes / 1e6).toFixed(0)} MB`,
      " ms",
    ),
  );
  return out;
}
