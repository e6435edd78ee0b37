// Prints hashes of what the engine makes of synthesized voices, and enrolls and verifies one: run it on two machines (or with a Node of
// another architecture) and compare the lines. Equal hashes mean equal bits. Needs a build (`npm run build`).
//   node scripts/same-bits.mjs
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const from = (path) => import(new URL(`../dist/${path}`, import.meta.url));
const [{ openEngine, openVoiceprints }, { utter }] = await Promise.all([from("index.js"), from("demo/voice.js")]);
const hash = (value) =>
  createHash("sha256")
    .update(JSON.stringify(value, (_, part) => (part instanceof Float32Array ? Array.from(part) : part)))
    .digest("hex")
    .slice(0, 32);
const say = (name, value) => console.log(`${name.padEnd(44)} ${value}`);
const spoken = (speaker, seconds, rateHz, seed = 1) => ({
  samples: utter({ speaker, seconds, rateHz, seed }).samples,
  rateHz,
});

console.error(`Node ${process.version}, ${process.platform} ${process.arch}, V8 ${process.versions.v8}`);
for (const [file, workers, rates] of [
  ["vivavoce-2.vvm", 0, [8000, 16_000, 44_100]],
  ["vivavoce-2.vvm", 1, [16_000]],
  ["vivavoce-2-accurate.vvm", 0, [16_000]],
]) {
  const model = readFileSync(new URL(`../models/${file}`, import.meta.url));
  const engine = await openEngine({ workers, model });
  for (const [i, rateHz] of rates.entries()) {
    const { samples } = spoken(1 + i, 5, rateHz);
    say(`samples at ${rateHz} Hz`, hash(samples));
    say(`${file}, ${workers} workers, ${rateHz} Hz`, hash(await engine.analyze(samples.slice(), rateHz)));
    for (const kind of engine.model.attacks) say(`  ${kind}`, hash(await engine.attack(kind, samples.slice(), rateHz)));
  }
  await engine.close();
}
const voices = await openVoiceprints({ engineOptions: { workers: 1 } });
await voices.enroll(
  "ada",
  [1, 2, 3].map((seed) => spoken(3, 4, 8000, seed)),
);
for (const speaker of [3, 34]) {
  const { decision, score, ratio, threshold } = await voices.verify("ada", spoken(speaker, 4, 8000, 4));
  say(`verify speaker ${speaker}: ${decision}`, hash([score, ratio, threshold]));
}
await voices.close();
