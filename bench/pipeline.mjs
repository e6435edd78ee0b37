// The whole pipeline from the bytes of a WAV file to an embedding: decode, resample, measure, embed, on one thread.
import { readRecording } from "../dist/audio/index.js";
import { pcm16Wav } from "../dist/audio/wav-writer.js";
import { openEngine } from "../dist/engine/index.js";
import { accurateModelBytes, modelBytes, speech } from "./material.mjs";
import { atMost, cpuMs, median } from "./measure.mjs";

const seconds = 30;

async function analyzed(engine, bytes) {
  const recording = readRecording(bytes);
  const stream = await engine.stream(recording.rateHz);
  for (const chunk of recording.read(0)) await stream.push(chunk);
  return stream.analysis();
}

async function rowsOf(model, rates, what, target) {
  const engine = await openEngine({ workers: 0, model });
  const rows = [];
  for (const rateHz of rates) {
    const bytes = pcm16Wav(speech(seconds, rateHz), rateHz);
    const { measures } = await analyzed(engine, bytes);
    const factors = [];
    for (let i = 0; i < 5; i++) {
      const before = cpuMs();
      await analyzed(engine, bytes);
      factors.push((cpuMs() - before) / 1000 / seconds);
    }
    const detail = `${((100 * measures.netSpeechSeconds) / seconds).toFixed(0)} % of it speech; best ${Math.min(...factors).toFixed(4)}`;
    rows.push(atMost(`WAV to ${what}, ${rateHz / 1000} kHz`, "real-time factor", median(factors), target, detail));
  }
  await engine.close();
  return rows;
}

export default async function pipeline() {
  return [
    ...(await rowsOf(modelBytes(), [16_000, 8_000, 48_000], "embedding", 0.02)),
    ...(await rowsOf(accurateModelBytes(), [16_000, 8_000], "embedding by ResNet34", 0.06)),
  ];
}
