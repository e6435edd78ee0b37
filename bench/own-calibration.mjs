// A calibration of one's own on DEV: fitted to a few speakers of a set, tested on its other speakers, starting from the calibration fitted without the set.
//   node bench/voices.mjs --corpora DIR --out VOICES.jsonl               analyzes every recording
//   python3 training/calibrate.py DIR VOICES.jsonl OUT.json WITHOUT       WITHOUT/<set>.json: the calibration fitted without that set
//   npm run bench:accuracy -- --own-calibration --corpora DIR --voices VOICES.jsonl --without WITHOUT [--sets …] [--json]
// Medians over draws of speakers, means of the rate. "Off by" is the factor by which the share of impostors accepted misses the target of 1 %, either way.
// The whole set's own threshold, and its own best monotone ratio, miss as well, because speakers in the test are few: no calibration can be expected to do
// better than one fitted to the tested speakers themselves.
import { join } from "node:path";
import { table } from "../dist/cli/output.js";
import { openEngine } from "../dist/engine/index.js";
import { seededRandom } from "../dist/evaluate/bootstrap.js";
import { CalibrationRefusal, cllrOf, fitCalibration, underFit } from "../dist/evaluate/calibrate.js";
import { rate } from "../dist/evaluate/format.js";
import { minimumCllr, monotoneCalibration, sortedByRatio } from "../dist/evaluate/metrics.js";
import { readTrialSet } from "../dist/evaluate/trials.js";
import { VoiceCache } from "../dist/evaluate/voice-cache.js";
import { asFile } from "./open-set.mjs";
import { heardIn } from "./voice-cache.mjs";

const targetRate = 0.01;
const counts = [5, 10, 20];
const draws = 60;
const clean = "as recorded";

export async function ownCalibration({ corpora, voices, without, model, sets, json }) {
  const cache = await VoiceCache.open(voices);
  const rows = [];
  for (const set of sets) {
    const shipped = await openEngine({ workers: 0, calibration: null, ...(model ? { model } : {}) });
    const { revision } = shipped.model;
    await shipped.close();
    const calibration = asFile(join(without, `${set}.json`), revision);
    const engine = await openEngine({ workers: 0, calibration, ...(model ? { model } : {}) });
    const trials = await scoredTrials(engine, join(corpora, `${set}.trials.txt`), heardIn(cache, revision));
    const most = Math.floor(new Set(trials.map(({ testedSpeaker }) => testedSpeaker)).size / 2);
    const fitted = new Set(counts.map((count) => Math.min(count, most)));
    for (const count of fitted) rows.push({ set, ...measure(engine, trials, count) });
    await engine.close();
    console.error(set);
  }
  if (json) return console.log(JSON.stringify(rows, null, 2));
  console.log(
    table(
      [
        "set",
        "speakers fitted / tested",
        ...["off by: given", "own", "whole set"],
        ...["rate met: given", "own", "whole set"],
        ...["Cllr / least: given", "own", "whole set"],
      ],
      rows.map(({ set, fitted, tested, given, own, whole }) => [
        set,
        `${fitted} / ${tested}`,
        ...[given, own, whole].map(({ off }) => off.toFixed(2)),
        ...[given, own, whole].map(({ met }) => rate(met)),
        ...[given, own, whole].map(({ cllr }) => cllr.toFixed(2)),
      ]),
    ),
  );
}

async function scoredTrials(engine, list, heard) {
  const set = await readTrialSet(list);
  const voiceOf = set.files.map((path) => heard(path, clean));
  const templates = [];
  for (const model of set.models) {
    const found = model.map((file) => voiceOf[file]).filter((voice) => voice !== null);
    templates.push(found.length > 0 ? (await engine.train(found)).template : null);
  }
  const out = [];
  for (const { same, model, test } of set.trials) {
    if (!templates[model] || !voiceOf[test]) continue;
    const [score] = await engine.score([templates[model]], voiceOf[test]);
    const enrolledSpeaker = set.speakers[set.models[model][0]];
    out.push({ ...score, same, model, test, enrolledSpeaker, testedSpeaker: set.speakers[test] });
  }
  return out;
}

function measure(engine, trials, count) {
  const speakers = [
    ...new Set(trials.flatMap(({ enrolledSpeaker, testedSpeaker }) => [enrolledSpeaker, testedSpeaker])),
  ];
  const random = seededRandom(count);
  const threshold = wholeThreshold(trials);
  const best = wholeRatio(trials);
  const found = { given: [], own: [], whole: [] };
  while (found.own.length < draws) {
    const drawn = new Set(shuffled(speakers, random).slice(0, count));
    const among = ({ enrolledSpeaker, testedSpeaker }) =>
      Number(drawn.has(enrolledSpeaker)) + Number(drawn.has(testedSpeaker));
    const own = trials.filter((trial) => among(trial) === 2);
    const tested = trials.filter((trial) => among(trial) === 0);
    const fit = fitOf(own);
    if (!fit) continue;
    const least = minimumCllr(sortedByRatio(tested));
    const passes = (trial) => trial.llr >= engine.threshold(targetRate, trial);
    const figures = (some, isAccepted, rescored = some) => {
      const impostors = some.filter(({ same }) => !same);
      const accepted = impostors.filter(isAccepted).length;
      return {
        off: factor(accepted, impostors.length),
        met: accepted / impostors.length,
        cllr: cllrOf(rescored) / least,
      };
    };
    found.given.push(figures(tested, passes));
    found.own.push(figures(underFit(tested, fit), passes));
    found.whole.push(figures(tested, (trial) => aboveCenter(trial) > threshold, best(tested)));
  }
  const over = (kind) => ({
    off: median(found[kind].map(({ off }) => off)),
    met: mean(found[kind].map(({ met }) => met)),
    cllr: median(found[kind].map(({ cllr }) => cllr)),
  });
  return {
    fitted: count,
    tested: speakers.length - count,
    given: over("given"),
    own: over("own"),
    whole: over("whole"),
  };
}

/** `null` if these speakers have too few trials: other ones are drawn then. */
function fitOf(trials) {
  try {
    return fitCalibration(trials);
  } catch (error) {
    if (error instanceof CalibrationRefusal) return null;
    throw error;
  }
}

const aboveCenter = ({ raw, impostors }) => Math.atanh(raw) - impostors.center;

/** The threshold that all speakers of the set together would choose. */
function wholeThreshold(trials) {
  const impostors = trials.filter(({ same }) => !same);
  const sorted = Float64Array.from(impostors, aboveCenter).sort();
  return sorted[Math.floor((1 - targetRate) * sorted.length)];
}

/** The best monotone ratio of all speakers of the set together, applied to some of their trials. */
function wholeRatio(trials) {
  const blocks = monotoneCalibration(sortedByRatio(trials));
  const ratioOf = (llr) => blocks.find(({ highest }) => llr <= highest).llr;
  return (some) => some.map((trial) => ({ ...trial, llr: ratioOf(trial.llr) }));
}

/** None accepted counts as half a trial. */
function factor(accepted, of) {
  const met = Math.max(accepted, 0.5) / of / targetRate;
  return Math.max(met, 1 / met);
}

function shuffled(values, random) {
  const out = [...values];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [out[i], out[j]] = [out[j], out[i]];
  }
  return out;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
