// Unlinkability: can an attacker who broke the seals, but has no scope's secret, tell that records in two scopes are of the same voice?
//   node bench/unlinkability.mjs --corpora DIR --voices VOICES.jsonl [--seed N]
// Measured as D_sys (Gomez-Barrero et al., "General framework to evaluate unlinkability in biometric template protection systems", IEEE
// TIFS 2018): 0 when mated and non-mated pairs look alike, 1 when every pair is recognized. DEV voices as recorded; DIR and VOICES as in voices.mjs.
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openEngine } from "../dist/engine/index.js";
import { seededRandom } from "../dist/evaluate/bootstrap.js";
import { VoiceCache } from "../dist/evaluate/voice-cache.js";
import { decodeTemplate, encodeTemplate } from "../dist/store/encoding.js";
import { nodeAead } from "../dist/store/seal/aead-node.js";
import { turn, turnBack } from "../dist/store/seal/transform.js";
import { cosine } from "./cosine.mjs";
import { heardIn } from "./voice-cache.mjs";

const { values: options } = parseArgs({
  options: { corpora: { type: "string" }, voices: { type: "string" }, seed: { type: "string", default: "1" } },
});
if (!options.corpora || !options.voices) {
  console.error("--corpora DIR and --voices FILE are required");
  process.exit(2);
}
/** With this many, chance alone gives a D_sys of about 0.01. */
const PAIRS = 100_000;
const MOST_BINS = 100;

const engine = await openEngine({ workers: 0 });
const { revision } = engine.model;
await engine.close();
const heard = heardIn(await VoiceCache.open(options.voices), revision);

const people = [];
for (const set of readdirSync(options.corpora).sort()) {
  if (!existsSync(join(options.corpora, `${set}.trials.txt`))) continue;
  for (const speaker of readdirSync(join(options.corpora, set)).sort()) {
    const folder = join(options.corpora, set, speaker);
    const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".wav"));
    const voices = files.sort().flatMap((name) => heard(join(folder, name), "as recorded") ?? []);
    if (voices.length > 1) people.push(voices);
  }
}

const secrets = { one: randomBytes(32), other: randomBytes(32) };
const plainBytes = ({ embedding, netSpeechSeconds, snrDb, bandwidthHz }) =>
  encodeTemplate({ embedding, netSpeechSeconds, snrDb, bandwidthHz, revision });
/** The numbers under the seal, from a new sealing. */
const kept = async (voice, secret) => {
  const bytes = await turn(nodeAead, secret, plainBytes(voice));
  return new Float64Array(bytes.slice(-8 * voice.embedding.length).buffer);
};

let changed = 0;
let likeness = 0;
const everything = people.flat();
for (const voice of everything) {
  const bytes = await turn(nodeAead, secrets.one, plainBytes(voice));
  const back = decodeTemplate(await turnBack(nodeAead, secrets.one, bytes)).embedding;
  if (!Buffer.from(back.buffer).equals(Buffer.from(Float32Array.from(voice.embedding).buffer))) changed++;
  likeness += Math.abs(cosine(voice.embedding, await kept(voice, secrets.one)));
}

const random = seededRandom(Number(options.seed));
const pick = (list) => list[Math.floor(random() * list.length)];
const another = (list, not) => {
  for (;;) {
    const found = pick(list);
    if (found !== not) return found;
  }
};
const KINDS = {
  "the same recording": () => {
    const voice = pick(pick(people));
    return [voice, voice];
  },
  "another recording of the person": () => {
    const person = pick(people);
    const voice = pick(person);
    return [voice, another(person, voice)];
  },
};
const strangers = () => {
  const person = pick(people);
  return [pick(person), pick(another(people, person))];
};
const sizes = (vector) => Float64Array.from(vector, Math.abs).sort();
const peak = (vector) => vector.reduce((sum, value) => sum + value ** 4, 0);
const ATTACKS = {
  cosine,
  "cosine, either sign": (a, b) => Math.abs(cosine(a, b)),
  "sizes of the numbers, sorted": (a, b) => cosine(sizes(a), sizes(b)),
  "fourth moments": (a, b) => -Math.abs(peak(a) - peak(b)),
};
const STORED = {
  "not turned": ([a, b]) => [a.embedding, b.embedding],
  turned: async ([a, b]) => [await kept(a, secrets.one), await kept(b, secrets.other)],
};

/** For each attack, the scores of the same number of pairs. */
async function scoresOf(draw, stored) {
  const scores = Object.keys(ATTACKS).map(() => new Float64Array(PAIRS));
  for (let i = 0; i < PAIRS; i++) {
    const [a, b] = await stored(draw());
    for (const [at, attack] of Object.values(ATTACKS).entries()) scores[at][i] = attack(a, b);
  }
  return scores;
}

const rows = [];
for (const [templates, stored] of Object.entries(STORED)) {
  const nonMated = await scoresOf(strangers, stored);
  for (const [pairs, draw] of Object.entries(KINDS)) {
    const mated = await scoresOf(draw, stored);
    for (const [at, attack] of Object.keys(ATTACKS).entries())
      rows.push({ templates, pairs, attack, D_sys: linkability(mated[at], nonMated[at]).toFixed(3) });
  }
}
console.log(
  `${people.length} people, ${everything.length} recordings; ${PAIRS} pairs of each kind, each sealed again; seed ${options.seed}`,
);
console.log(
  `embeddings changed by turning and turning back: ${changed}; mean |cosine| between a voice and its stored form: ` +
    `${(likeness / everything.length).toFixed(3)} (random directions: ${Math.sqrt(2 / Math.PI / everything[0].embedding.length).toFixed(3)})`,
);
console.table(rows);

/** D_sys: the mean over mated scores of how clearly each indicates "mated", prior odds 1, densities by histograms as in the authors' own tool. */
function linkability(mated, nonMated) {
  const bins = Math.min(Math.floor(mated.length / 10), MOST_BINS);
  const low = Math.min(least(mated), least(nonMated));
  const high = -Math.min(least(mated.map((s) => -s)), least(nonMated.map((s) => -s)));
  const histogram = (scores) => {
    const counts = new Float64Array(bins);
    for (const score of scores)
      counts[Math.min(bins - 1, Math.floor(((score - low) / (high - low)) * bins))] += 1 / scores.length;
    return counts;
  };
  const [m, n] = [histogram(mated), histogram(nonMated)];
  return m.reduce((sum, share, i) => sum + (share > n[i] ? share * ((2 * share) / (share + n[i]) - 1) : 0), 0);
}

function least(values) {
  let found = Number.POSITIVE_INFINITY;
  for (const value of values) if (value < found) found = value;
  return found;
}
