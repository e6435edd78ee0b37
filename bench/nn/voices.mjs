// Synthetic voices for golden embeddings: a pulse train through four resonances that glide between vowels, with breath.
import { random } from "./random-model.mjs";

const RATE = 16000;
const VOWELS = [
  [730, 1090, 2440, 3400],
  [270, 2290, 3010, 3600],
  [300, 870, 2240, 3300],
  [530, 1840, 2480, 3500],
];

/** Samples in -1..1 at 16 kHz. The seed decides pitch, vocal tract length, vowels and breath. */
export function syntheticVoice(seed, seconds = 3) {
  const next = random(seed * 7919 + 1);
  for (let i = 0; i < 8; i++) next();
  const pitch = 90 + next() * 140;
  const tract = 0.88 + next() * 0.28;
  const breath = 0.01 + next() * 0.03;
  const samples = new Float32Array(seconds * RATE);
  const state = new Float64Array(8);
  let phase = 0;
  let [from, to] = [0, 1];
  for (let n = 0; n < samples.length; n++) {
    const at = (n % 3200) / 3200;
    if (n % 3200 === 0) [from, to] = [to, Math.floor(next() * VOWELS.length)];
    const hz = pitch * (1 + 0.12 * Math.sin((2 * Math.PI * n) / 9000) + 0.01 * (next() - 0.5));
    phase += hz / RATE;
    let x = breath * (next() - 0.5);
    if (phase >= 1) {
      phase -= 1;
      x += 1;
    }
    const loud = Math.min(1, 4 * Math.abs(Math.sin((Math.PI * n) / 12800)));
    for (let f = 0; f < 4; f++) {
      const centre = tract * (VOWELS[from][f] * (1 - at) + VOWELS[to][f] * at);
      const radius = Math.exp((-Math.PI * (60 + 40 * f)) / RATE);
      const y =
        x * (1 - radius) * 2 +
        2 * radius * Math.cos((2 * Math.PI * centre) / RATE) * state[2 * f] -
        radius * radius * state[2 * f + 1];
      state[2 * f + 1] = state[2 * f];
      state[2 * f] = y;
      x = y;
    }
    samples[n] = Math.tanh(x * loud * 4) * 0.5;
  }
  return samples;
}
