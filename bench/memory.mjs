// Memory for ten minutes of audio, streamed: WebAssembly memory, and the rest of the process.
import { openEngine } from "../dist/engine/index.js";
import { modelBytes, speech } from "./material.mjs";
import { atMost } from "./measure.mjs";

export default async function memory() {
  const engine = await openEngine({ workers: 0, model: modelBytes() });
  const minute = speech(60);
  const stream = await engine.stream(16_000);
  let highest = 0;
  for (let i = 0; i < 10; i++) {
    for (let at = 0; at < minute.length; at += 16_000) await stream.push(minute.slice(at, at + 16_000));
    highest = Math.max(highest, await engine.memoryBytes());
  }
  const { measures, windows } = await stream.analysis();
  highest = Math.max(highest, await engine.memoryBytes());
  await engine.close();
  const kept = windows.length * 1024;
  const detail = `${measures.netSpeechSeconds.toFixed(0)} s of speech; ${windows.length} embeddings kept besides, ${(kept / 1e3).toFixed(0)} kB`;
  return [atMost("10 minutes streamed", "WASM memory, highest", highest / 1e6, 36, detail, " MB")];
}
