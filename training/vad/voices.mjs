// Synthesized voices for data.py, none of them a voice of the tests: node voices.mjs FOLDER (after npm run build)
import { mkdirSync, writeFileSync } from "node:fs";
import { utter } from "../../dist/demo/voice.js";

const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
for (let speaker = 1000; speaker < 1120; speaker++) {
  const { samples } = utter({ speaker, seconds: 6, seed: speaker, levelDb: -26, leadSeconds: 0.1 });
  writeFileSync(`${folder}/${speaker}.f32`, new Uint8Array(samples.buffer));
}
