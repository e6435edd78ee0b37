// Frame agreement of the built kernels with Silero on what measure.py wrote: node measure.mjs FOLDER [vivavoce.wasm]
import { readFileSync } from "node:fs";

const [folder, wasm = new URL("../../dist/engine/vivavoce.wasm", import.meta.url)] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(wasm), {});
const k = instance.exports;
k.seal();

function marksOf(x) {
  k.streamStart(16000, 0, 0);
  const marks = [];
  const note = () => {
    const bytes = new Uint8Array(k.memory.buffer, k.marksPtr(), k.marksCapacity());
    while (marks.length < k.streamDecidedFrames()) marks.push(bytes[marks.length % bytes.length]);
  };
  for (let from = 0; from < x.length; from += 16000) {
    const chunk = x.subarray(from, from + 16000);
    new Float32Array(k.memory.buffer, k.inputPtr(), chunk.length).set(chunk);
    for (let at = 0; at < chunk.length; ) {
      at += k.streamPush(at, chunk.length - at);
      k.streamTake();
      note();
    }
  }
  k.streamFinish();
  note();
  return marks;
}

const groups = new Map();
for (const { name, group, labels } of JSON.parse(readFileSync(`${folder}/index.json`, "utf8"))) {
  const bytes = readFileSync(`${folder}/${name}.f32`);
  const marks = marksOf(new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4));
  const silero = labels ? readFileSync(`${folder}/${name}.u8`) : marks;
  const row = groups.get(group) ?? { frames: 0, same: 0, ours: 0, theirs: 0, missed: 0 };
  marks.forEach((on, f) => {
    row.frames++;
    row.same += on === silero[f] ? 1 : 0;
    row.ours += on;
    row.theirs += silero[f];
    row.missed += silero[f] && !on ? 1 : 0;
  });
  groups.set(group, row);
}
console.table(
  Object.fromEntries(
    [...groups].map(([group, r]) => [
      group,
      {
        "agreement %": +((100 * r.same) / r.frames).toFixed(2),
        "speech %": +((100 * r.ours) / r.frames).toFixed(2),
        "Silero's %": +((100 * r.theirs) / r.frames).toFixed(2),
        "missed %": +((100 * r.missed) / Math.max(1, r.theirs)).toFixed(2),
      },
    ]),
  ),
);
