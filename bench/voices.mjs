// Analyzes every recording that calibrate.py and the open-set figures need, into one file: embeddings and measured quality
// of the DEV segments under every condition used for fitting, and of the list members as recorded and through G.711.
//   node bench/voices.mjs --corpora DIR [--model FILE] [--out VOICES.jsonl] [--workers N]
// An interrupted run continues where it stopped. DIR: the output of training/extract.py and training/members.py.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readRecording } from "../dist/audio/index.js";
import { CALIBRATION_FORMAT, CALIBRATION_VERSION } from "../dist/engine/calibration-file.js";
import { openEngine } from "../dist/engine/index.js";
import { readModelFile } from "../dist/engine/model-file.js";
import { inParallel, voiceOfFile } from "../dist/evaluate/evaluate.js";
import { VoiceCache } from "../dist/evaluate/voice-cache.js";
import * as conditions from "./conditions.mjs";
import { modelBytes } from "./material.mjs";

const { values: options } = parseArgs({
  options: {
    corpora: { type: "string" },
    model: { type: "string" },
    out: { type: "string" },
    workers: { type: "string", default: String(availableParallelism()) },
  },
});
if (!options.corpora || !options.out) {
  console.error("--corpora DIR and --out FILE are required");
  process.exit(2);
}

const gsm = await conditions.gsm();
if (!gsm) {
  console.error("GSM is required, but this machine's ffmpeg has no libgsm");
  process.exit(2);
}
const clean = { name: "as recorded", apply: (pcm) => pcm };
const mulaw = conditions.g711("mulaw");
const noise = conditions.noisy(10);
const cut = conditions.cut(2);
// A telephone call is already narrowband and coded.
const narrow = ["wuw-dev", "hv-dev", "fsdd"];
/** Recordings that enroll a list member. */
const enrolling = 2;
/** For a set whose speakers said only a word or two each, this many are enough. */
const mostMembers = 400;

const folders = (path) => readdirSync(path).sort();
const wavFiles = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? wavFiles(join(folder, entry.name)) : join(folder, entry.name)))
    .filter((path) => path.endsWith(".wav"));
const developed = folders(options.corpora)
  .filter((name) => existsSync(join(options.corpora, `${name}.trials.txt`)))
  .flatMap((set) => wavFiles(join(options.corpora, set)).map((path) => ({ path, set })));
const memberFolder = join(options.corpora, "members");
const members = (existsSync(memberFolder) ? folders(memberFolder) : []).flatMap((set) =>
  folders(join(memberFolder, set))
    .slice(0, mostMembers)
    .map((speaker, i) => ({
      files: wavFiles(join(memberFolder, set, speaker)).slice(0, enrolling),
      third: i % 3 === 0,
    })),
);
const everySecond = developed.filter((_, i) => i % 2 === 0);
const wide = ({ set }) => !narrow.includes(set);
const through = (condition, recordings) => recordings.map(({ path }) => ({ path, condition }));
// Most needed first. G.711 is needed for all: both sides may be calls.
const work = [
  ...through(clean, developed),
  ...through(mulaw, developed.filter(wide)),
  ...through(cut, everySecond),
  ...members.map(({ files }) => ({ path: files[0], condition: clean })),
  ...members.flatMap(({ files }) => files.slice(1).map((path) => ({ path, condition: clean }))),
  ...through(noise, everySecond),
  ...through(gsm, everySecond.filter(wide)),
  ...members.filter(({ third }) => third).flatMap(({ files }) => files.map((path) => ({ path, condition: mulaw }))),
];

/** An engine refuses a model without a calibration. Nothing is scored here, so the shipped model's is used. */
async function calibrationFor(model) {
  const { calibration, revision } = await readModelFile(model);
  if (calibration) return null;
  const shipped = await readModelFile(modelBytes());
  const [format, version] = [CALIBRATION_FORMAT, CALIBRATION_VERSION];
  const file = { format, version, modelRevision: revision, calibration: shipped.calibration };
  return new TextEncoder().encode(JSON.stringify(file));
}

const workers = Number(options.workers);
const model = options.model ? new Uint8Array(readFileSync(options.model)) : modelBytes();
const engine = await openEngine({ workers, model, calibration: await calibrationFor(model) });
const parts = { engine, decode: (bytes) => readRecording(bytes), cache: await VoiceCache.open(options.out) };
let done = 0;
let said = Date.now();
await inParallel(work, workers * 2, async ({ path, condition }) => {
  await voiceOfFile(path, condition, parts);
  done++;
  if (Date.now() - said < 10_000) return;
  said = Date.now();
  console.error(`${done} of ${work.length}`);
});
await engine.close();
