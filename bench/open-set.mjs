// Open-set identification on DEV: do watch and identify find people on a list, and leave out people who are not (ISO/IEC 19795-1: FNIR, FPIR)?
//   node bench/voices.mjs --corpora DIR --out VOICES.jsonl               analyzes every recording
//   python3 training/calibrate.py DIR VOICES.jsonl OUT.json WITHOUT       WITHOUT/<set>.json: the calibration fitted without that set
//   npm run bench:accuracy -- --open-set --corpora DIR --voices VOICES.jsonl [--without WITHOUT]
// Pairs of labels that two networks take for one person (training/trials/doubtful-labels.json) are in one row, and left out of the next.
// Callers are DEV's probes of 4 s; lists hold the other speakers of their set and the training speakers that training/members.py wrote, drawn from all
// alike, or with the caller's neighbours first: people of one place on one line.
// Lists of 10,000 and 100,000 are synthetic: normal, with the mean and covariance of the training speakers.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openEngine } from "../dist/engine/index.js";
import { seededRandom } from "../dist/evaluate/bootstrap.js";
import { openSet } from "../dist/evaluate/open-set.js";
import { readTrialSet } from "../dist/evaluate/trials.js";
import { VoiceCache } from "../dist/evaluate/voice-cache.js";
import { rateOfOneComparison } from "../dist/voiceprint/decision.js";
import { impostorsOnList, mostRanks } from "../dist/voiceprint/list-impostors.js";
import { heardIn } from "./voice-cache.mjs";

const doubtful = JSON.parse(readFileSync(new URL("../training/trials/doubtful-labels.json", import.meta.url), "utf8"));
const narrow = ["wuw-dev", "hv-dev", "fsdd"];
const mostCallers = 240;
const clean = "as recorded";
const mulaw = "G.711 µ-law";

/** Converts a calibration by calibrate.py into a file that an engine can load. */
export const asFile = (path, modelRevision) =>
  new TextEncoder().encode(
    JSON.stringify({
      format: "vivavoce-calibration",
      version: 1,
      modelRevision,
      calibration: JSON.parse(readFileSync(path, "utf8")),
    }),
  );

export async function openSetFigures({ corpora, voices, without, model, sets }) {
  const ask = { workers: 0, ...(model ? { model } : {}) };
  const shipped = await openEngine({ ...ask, calibration: null });
  const { revision } = shipped.model;
  const cache = await VoiceCache.open(voices);
  const heard = heardIn(cache, revision);
  const members = await memberTemplates(shipped, corpora, heard);
  const rows = [];
  const promises = [];
  const everyone = [];
  for (const set of sets) {
    const file = without && join(without, `${set}.json`);
    const engine =
      file && existsSync(file) ? await openEngine({ ...ask, calibration: asFile(file, revision) }) : shipped;
    const pairs = doubtful[set] ?? [];
    for (const leftOut of pairs.length > 0 ? [[], pairs] : [[]]) {
      const list = join(corpora, `${set}.trials.txt`);
      const { callers, verify } = await callersOf(engine, list, heard, members, set, leftOut);
      const name = leftOut.length > 0 ? `${set}, less ${leftOut.length} pairs` : set;
      promises.push({ set: name, ...verify });
      if (leftOut.length === 0) everyone.push(...callers);
      for (const [suffix, some] of [
        ["", callers],
        [", neighbours first", callers.map((caller) => ({ ...caller, neighbours: caller.nearby }))],
      ])
        for (const row of openSet(some, (rate, of) => engine.threshold(rate, of), { rates: [0.01] }))
          rows.push({ set: name + suffix, ...row });
    }
    if (engine !== shipped) await engine.close();
    console.error(set);
  }
  const threshold = (rate, of) => shipped.threshold(rate, of);
  for (const row of openSet(everyone, threshold, { rates: [0.01] })) rows.push({ set: "all sets", ...row });
  for (const size of [10_000, 100_000]) rows.push(onDrawn(shipped, everyone, members, size));
  const identical = await identicalFound(shipped, corpora, heard, sets, members);
  await shipped.close();
  return { members: members.length, rows, promises, identical };
}

async function memberTemplates(engine, corpora, heard) {
  const folder = join(corpora, "members");
  const out = [];
  for (const set of readdirSync(folder).sort())
    for (const speaker of readdirSync(join(folder, set)).sort()) {
      const files = readdirSync(join(folder, set, speaker)).map((name) => join(folder, set, speaker, name));
      const templateOf = async (condition) => {
        const found = files.map((path) => heard(path, condition)).filter((voice) => voice !== null);
        return found.length > 0 ? (await engine.train(found)).template : null;
      };
      const wide = await templateOf(clean);
      if (wide) out.push({ wide, narrow: (await templateOf(mulaw)) ?? wide });
    }
  return out;
}

/** The set's probes with their scores against its enrollments and against the members; and the results of Verify at 1 and 0.1 %. */
async function callersOf(engine, list, heard, members, set, leftOut) {
  const trials = await readTrialSet(list);
  const labelOf = (file) => trials.files[file].split("/").at(-3);
  const isLeftOut = ({ same, model, test }) => {
    const both = [labelOf(trials.models[model][0]), labelOf(test)];
    return !same && leftOut.some((pair) => pair.every((label) => both.includes(label)));
  };
  const templates = [];
  for (const model of trials.models) {
    const found = model.map((file) => heard(trials.files[file], clean)).filter((voice) => voice !== null);
    templates.push(found.length > 0 ? (await engine.train(found)).template : null);
  }
  const byTest = new Map();
  for (const trial of trials.trials) byTest.set(trial.test, [...(byTest.get(trial.test) ?? []), trial]);
  const step = Math.max(1, Math.ceil(byTest.size / mostCallers));
  const others = members.map((member) => (narrow.includes(set) ? member.narrow : member.wide));
  const callers = [];
  const verify = { genuine: 0, impostors: 0, accepted: { 0.01: [0, 0], 0.001: [0, 0] }, scores: [] };
  let i = 0;
  for (const [test, of] of byTest) {
    const probe = heard(trials.files[test], clean);
    if (!probe) continue;
    const scorable = of.filter((trial) => templates[trial.model] !== null && !isLeftOut(trial));
    const scores = await engine.score(
      scorable.map(({ model }) => templates[model]),
      probe,
    );
    const bySpeaker = new Map();
    const own = [];
    for (const [k, { same, model }] of scorable.entries()) {
      const score = scores[k];
      verify[same ? "genuine" : "impostors"]++;
      verify.scores.push([same, score.raw]);
      for (const rate of [0.01, 0.001])
        if (score.llr >= engine.threshold(rate, score)) verify.accepted[rate][same ? 0 : 1]++;
      if (same) own.push(score);
      else {
        const speaker = trials.speakers[trials.models[model][0]];
        bySpeaker.set(speaker, [...(bySpeaker.get(speaker) ?? []), score]);
      }
    }
    if (i++ % step !== 0) continue;
    const foreign = await engine.score(others, probe);
    callers.push({
      probe,
      own,
      nearby: bySpeaker.size,
      others: [...bySpeaker.values(), ...foreign.map((score) => [score])],
    });
  }
  return { callers, verify: verified(verify) };
}

function verified({ genuine, impostors, accepted, scores }) {
  const of = (rate) => {
    const [own, foreign] = accepted[rate];
    const fmr = foreign / impostors;
    const sorted = scores.filter(([same]) => !same).map(([, raw]) => raw);
    sorted.sort((a, b) => b - a);
    const at = sorted[Math.floor(fmr * sorted.length)];
    const oracle = scores.filter(([same, raw]) => same && raw <= at).length / genuine;
    return { fmr, fnmr: 1 - own / genuine, oracle };
  };
  return { genuine, impostors, onePercent: of(0.01), onePerMille: of(0.001) };
}

function drawnGallery(engine, members, size) {
  const draw = drawer(members.map(({ wide }) => wide.embedding));
  const gallery = engine.gallery();
  for (let i = 0; i < size; i++) gallery.set(String(i), draw());
  return gallery;
}

/** A list of synthetic voices: every caller against all of them. */
function onDrawn(engine, callers, members, size) {
  const gallery = drawnGallery(engine, members, size);
  const targetRate = 0.01;
  const rate = rateOfOneComparison(targetRate, size, 1);
  const some = callers.filter((_, i) => i % 3 === 0);
  const unlisted = [];
  const listed = [];
  for (const { probe, own } of some) {
    // The ratio is linear in the cosine, and does not depend on the template's quality.
    const like = own[0] ?? callers.find((caller) => caller.own.length > 0).own[0];
    const hits = gallery.top(probe.embedding, 1 + mostRanks).map(({ raw }) => ({
      ...like,
      raw,
      llr: like.ratios.unlike + raw * (like.ratios.identical - like.ratios.unlike),
    }));
    const onList = (candidate) => ({ ...candidate, impostors: impostorsOnList(candidate, hits, size) });
    unlisted.push(onList(hits[0]));
    for (const candidate of own.slice(0, 2))
      listed.push({ candidate: onList(candidate), found: candidate.llr > hits[0].llr });
  }
  gallery.close();
  const passes = (one) => one.llr >= engine.threshold(rate, one);
  const fpir = unlisted.filter(passes).length / unlisted.length;
  const missed = (above) => listed.filter(({ candidate, found }) => !found || !above(candidate)).length / listed.length;
  const scores = unlisted.map(({ llr }) => llr).sort((a, b) => b - a);
  const oracle = (share) => missed(({ llr }) => llr > scores[Math.floor(share * scores.length)]);
  return {
    set: "all sets, drawn voices",
    size,
    targetRate,
    listedCalls: listed.length,
    unlistedCalls: unlisted.length,
    fpir,
    fnir: missed(passes),
    oracleFnir: oracle(targetRate),
    oracleFnirAtMet: oracle(fpir),
  };
}

/** Unit vectors; before scaling they are normal, with the mean and covariance of the given ones. */
function drawer(embeddings) {
  const d = embeddings[0].length;
  const mean = new Float64Array(d);
  for (const e of embeddings) for (let i = 0; i < d; i++) mean[i] += e[i] / embeddings.length;
  const random = seededRandom(7);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  // A random mixture of the centered voices has their covariance.
  const mixed = 64;
  return () => {
    const out = Float64Array.from(mean);
    for (let k = 0; k < mixed; k++) {
      const e = embeddings[Math.floor(random() * embeddings.length)];
      const weight = normal() / Math.sqrt(mixed);
      for (let i = 0; i < d; i++) out[i] += weight * (e[i] - mean[i]);
    }
    const length = Math.sqrt(out.reduce((sum, x) => sum + x * x, 0));
    return Float32Array.from(out, (x) => x / length);
  };
}

/** Recordings against lists of synthetic voices that include a print of the recording itself. */
async function identicalFound(engine, corpora, heard, sets, members) {
  const voices = [];
  for (const set of sets) {
    const { files } = await readTrialSet(join(corpora, `${set}.trials.txt`));
    for (const path of files.filter((_, i) => i % 20 === 0)) {
      const voice = heard(path, clean);
      if (voice) voices.push({ set, voice, template: (await engine.train([voice])).template });
    }
  }
  const out = [];
  for (const size of [10, 1000, 100_000]) {
    const rate = rateOfOneComparison(0.01, size, 3);
    const gallery = drawnGallery(engine, members, size - 1);
    const found = new Map(sets.map((set) => [set, { set, size, of: 0, found: 0 }]));
    for (const { set, voice, template } of voices) {
      gallery.set("own", template.embedding);
      const hits = gallery.top(voice.embedding, 1 + mostRanks);
      const [score] = await engine.score([template], voice);
      const others = hits.filter(({ id }) => id !== "own").map(({ raw }) => ({ ...score, raw }));
      const impostors = impostorsOnList(score, others, size);
      const row = found.get(set);
      row.of++;
      if (hits[0].id === "own" && score.llr >= engine.threshold(rate, { ...score, impostors })) row.found++;
    }
    gallery.close();
    out.push(...found.values());
  }
  return out;
}
