// node beside.mjs MODEL.vvm CALLERS OUT: see beside.py.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openEngine, readRecording } from "../../dist/index.js";

const [model, callers, out] = process.argv.slice(2);
const recordings = readdirSync(callers, { recursive: true })
  .filter((name) => name.endsWith(".wav"))
  .sort()
  .map((name) => {
    const [source, speaker, session] = name.split("/");
    return { file: join(callers, name), person: `${source}/${speaker}`, session, kind: "genuine", source };
  });
const engine = await openEngine({ model });
const scored = [];
for (const row of [...JSON.parse(readFileSync(join(out, "list.json"), "utf8")), ...recordings]) {
  const recording = readRecording(readFileSync(row.file));
  const samples = Float32Array.from([...recording.read(0)].flatMap((part) => [...part]));
  const score = await engine.attack("synthetic", samples.slice(), recording.rateHz);
  const { measures, embedding } = await engine.analyze(samples, recording.rateHz);
  const seconds = measures.netSpeechSeconds;
  scored.push({ ...row, score: score.strongest && score.llr, seconds, embedding: embedding && [...embedding] });
}
writeFileSync(join(out, "scores.json"), JSON.stringify(scored));
await engine.close();
