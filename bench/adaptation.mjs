// Adaptation: equal error rate and misses before and after a print took in 1, 2 and 4 later recordings of its person,
// and the effect of one recording of an impostor that was added.
//   npm run bench:accuracy -- --adaptation --corpora DIR [--sets wuw-dev,hv-dev] [--model FILE] [--json]
// DIR/<set>/speaker/session/n.wav as training/extract.py writes it. Three recordings of one session enroll; those of the
// person's other sessions come in as calls, sessions other than the tested one first, never the tested recording itself.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readRecording } from "../dist/audio/index.js";
import { table } from "../dist/cli/output.js";
import { openEngine } from "../dist/engine/index.js";
import { mono } from "../dist/evaluate/evaluate.js";
import { grownVoice, meanEmbedding, withSession } from "../dist/voiceprint/growing-print.js";
import { openVoiceCache } from "./voice-cache.mjs";

const rate = 0.01;
const counts = [0, 1, 2, 4];
const fewest = 5;

export async function adaptation({ corpora, sets, model, workers, json }) {
  const engine = await openEngine({ workers, ...(model ? { model } : {}) });
  const cache = await openVoiceCache(engine);
  const rows = [];
  for (const set of sets) rows.push(...(await measure(engine, set, await voicesOf(engine, cache, corpora, set))));
  await engine.close();
  if (json) return console.log(JSON.stringify(rows, null, 2));
  console.log(`model ${engine.model.revision.slice(0, 16)}; ratios of the engine; FNMR at FMR ${100 * rate} %`);
  console.log(
    table(
      ["set", "what", "calls added", "trials, same / different", "EER %", "FNMR %", "FMR at the promised 1 %, %"],
      rows.map((row) => [
        row.set,
        row.what,
        row.taken.toFixed(2),
        `${row.same} / ${row.different}`,
        percent(row.equalErrorRate),
        percent(row.misses),
        percent(row.promised),
      ]),
    ),
  );
  console.log(
    table(
      [
        "set",
        "one impostor recording added, next to this many of the person",
        "the impostor's other recordings pass, before",
        "after",
        "the person passes, before",
        "after",
      ],
      rows.flatMap(({ set, poison }) =>
        (poison ?? []).map((one) => [
          set,
          one.genuine,
          `${percent(one.impostor[0])} of ${one.impostors}`,
          percent(one.impostor[1]),
          `${percent(one.person[0])} of ${one.persons}`,
          percent(one.person[1]),
        ]),
      ),
    ),
  );
}

const percent = (share) => (share === null ? "" : (100 * share).toFixed(1));

/** By speaker and session. */
async function voicesOf(engine, cache, corpora, set) {
  const root = join(corpora, set);
  const speakers = new Map();
  const files = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".wav"))
    .sort();
  for (const [done, file] of files.entries()) {
    const bytes = readFileSync(join(root, file));
    const key = [createHash("sha256").update(bytes).digest("hex"), engine.model.revision, "as recorded"].join(" ");
    let voice = cache.get(key);
    if (!voice) {
      const { samples, rateHz } = mono(readRecording(bytes));
      const { measures, embedding } = await engine.analyze(samples, rateHz);
      voice = { measures, embedding };
      await cache.put(key, voice);
      if (done % 50 === 0) console.error(`${set}: ${done} of ${files.length} recordings`);
    }
    if (!voice.embedding) continue;
    const [speaker, session] = file.split("/");
    const { netSpeechSeconds, snrDb, bandwidthHz } = voice.measures;
    const one = { speaker, session, file, embedding: voice.embedding, netSpeechSeconds, snrDb, bandwidthHz };
    if (!speakers.has(speaker)) speakers.set(speaker, new Map());
    const sessions = speakers.get(speaker);
    sessions.set(session, [...(sessions.get(session) ?? []), one]);
  }
  return speakers;
}

async function measure(engine, set, speakers) {
  const prints = [];
  for (const sessions of speakers.values())
    for (const [session, voices] of sessions) {
      const later = [...sessions].flatMap(([other, found]) => (other === session ? [] : found));
      if (voices.length < 3 || later.length < fewest) continue;
      const { template } = await engine.train(voices.slice(0, 3));
      if (template) prints.push({ template, later, speaker: voices[0].speaker });
    }
  const all = [...speakers.values()].flatMap((sessions) => [...sessions.values()].flat());
  const impostorsOf = ({ speaker }) => all.filter((voice) => voice.speaker !== speaker);
  // Later recordings that the product would take in: those that match the enrolled print.
  for (const print of prints) {
    const matching = new Set();
    for (const voice of print.later) if (await matches(engine, print.template, voice)) matching.add(voice);
    print.matching = matching;
  }
  const all4 = { only: [4], admits: () => true };
  const members = ({ template }, calls, most) => [
    template,
    ...calls.slice(0, most).map((voice) => ({ ...template, ...voice })),
  ];
  const rules = [
    {
      what: "all calls added",
      admits: () => true,
      grow: (print, calls, most) => grown(print, calls.slice(0, most), most),
    },
    { ...all4, what: "all, each with the weight of the enrolled part", grow: evenly },
    { ...all4, what: "all, the best ratio of the members", grow: members, fuse: (ratios) => Math.max(...ratios) },
    { ...all4, what: "all, the mean ratio of the members", grow: members, fuse: mean },
    {
      what: "those that match",
      admits: (print, voice) => print.matching.has(voice),
      grow: (print, calls, most) => grown(print, calls.slice(0, most), most),
    },
    {
      ...all4,
      what: "all, at most 2, drop the older of the most similar",
      grow: (print, calls, most) => grown(print, mostUnlike(calls.slice(0, most), 2), 2),
    },
    {
      ...all4,
      what: "all, at most 2, drop the oldest",
      grow: (print, calls, most) => grown(print, calls.slice(0, most), 2),
    },
  ];
  const rows = [];
  for (const { what, admits, grow, fuse, only = counts } of rules)
    for (const most of only) {
      if (most === 0 && rows.length > 0) continue;
      const same = [];
      const different = [];
      const templates = [];
      let taken = 0;
      for (const print of prints) {
        const calls = (tested) => {
          const apart = (voice) => (voice.session === tested?.session ? 1 : 0);
          const others = print.later
            .filter((voice) => voice !== tested)
            .sort((one, other) => apart(one) - apart(other));
          return others.slice(0, Math.max(most, 4)).filter((voice) => admits(print, voice));
        };
        for (const tested of print.later) {
          const joining = calls(tested);
          taken += Math.min(most, joining.length);
          same.push(fused(await engine.score([grow(print, joining, most)].flat(), tested), fuse)[0]);
        }
        templates.push([grow(print, calls(), most)].flat());
      }
      for (const voice of all) {
        const strangers = templates.filter((_, i) => prints[i].speaker !== voice.speaker);
        if (strangers.length === 0) continue;
        const scores = await engine.score(strangers.flat(), voice);
        for (const { length } of strangers) different.push(...fused(scores.splice(0, length), fuse));
      }
      const passed = different.filter((score) => score.llr >= engine.threshold(rate, score)).length;
      rows.push({
        set,
        what: most === 0 ? "as enrolled" : `${what}, ${most} calls`,
        taken: taken / same.length,
        same: same.length,
        different: different.length,
        ...figures(
          same.map(({ llr }) => llr),
          different.map(({ llr }) => llr),
        ),
        promised: passed / different.length,
      });
      console.error(`${set}: ${rows.at(-1).what}`);
    }
  rows[0].poison = [];
  for (const genuine of [0, 3]) rows[0].poison.push(await poisoned(engine, prints, impostorsOf, genuine));
  return rows;
}

/** One recording of the most similar impostor of each print is added: how do that impostor's other recordings score, and the person's? */
async function poisoned(engine, prints, impostorsOf, genuine) {
  const counted = { genuine, impostors: 0, persons: 0, impostor: [0, 0], person: [0, 0] };
  for (const print of prints) {
    const ranked = (await scored(engine, print.template, impostorsOf(print))).sort(
      (one, other) => other.score.llr - one.score.llr,
    );
    const [{ voice: intruder }] = ranked;
    const own = print.later.slice(0, genuine);
    const templates = [grown(print, own, 4), grown(print, [...own, intruder], 4)];
    const others = ranked
      .map(({ voice }) => voice)
      .filter((voice) => voice !== intruder && voice.speaker === intruder.speaker);
    const later = print.later.slice(genuine);
    counted.impostors += others.length;
    counted.persons += later.length;
    for (const [i, template] of templates.entries()) {
      counted.impostor[i] += passing(engine, await scored(engine, template, others));
      counted.person[i] += passing(engine, await scored(engine, template, later));
    }
  }
  const share = (passed, of) => passed.map((count) => count / of);
  return {
    ...counted,
    impostor: share(counted.impostor, counted.impostors),
    person: share(counted.person, counted.persons),
  };
}

const passing = (engine, found) => found.filter(({ score }) => score.llr >= engine.threshold(rate, score)).length;

/** As the product adapts a print. */
function grown({ template }, calls, most) {
  let sessions = [];
  calls.forEach((voice, at) => {
    sessions = withSession(sessions, { ...voice, sessionId: voice.file, at }, most);
  });
  return sessions.length === 0 ? template : { ...template, ...grownVoice({ enrolled: template, sessions }, most) };
}

/** Every member has the same weight as the enrolled part. */
const evenly = ({ template }, calls, most) => ({
  ...template,
  ...grownVoice({ enrolled: template, sessions: calls.slice(0, most) }, most),
  embedding: meanEmbedding([template, ...calls.slice(0, most)].map(({ embedding }) => ({ embedding, weight: 1 }))),
});

/** The calls that remain if, of the two most similar, the older is always dropped. */
function mostUnlike(calls, room) {
  const kept = [];
  for (const call of calls) {
    kept.push(call);
    if (kept.length <= room) continue;
    let [older, highest] = [0, Number.NEGATIVE_INFINITY];
    for (const [i, one] of kept.entries())
      for (const other of kept.slice(i + 1)) {
        const alike = one.embedding.reduce((sum, x, k) => sum + x * other.embedding[k], 0);
        if (alike > highest) [older, highest] = [i, alike];
      }
    kept.splice(older, 1);
  }
  return kept;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** One score from those of a print's members; the threshold is that of the enrolled part. */
const fused = ([first, ...others], fuse) =>
  fuse ? [{ ...first, llr: fuse([first, ...others].map(({ llr }) => llr)) }] : [first, ...others];

async function scored(engine, template, voices) {
  const found = [];
  for (const voice of voices) found.push({ voice, score: (await engine.score([template], voice))[0] });
  return found;
}

async function matches(engine, template, voice) {
  const [score] = await engine.score([template], voice);
  return score.llr >= engine.threshold(rate, score);
}

function figures(same, different) {
  const genuine = Float64Array.from(same).sort();
  const impostors = Float64Array.from(different).sort();
  let equalErrorRate = 1;
  let gap = Number.POSITIVE_INFINITY;
  let below = 0;
  for (const [i, score] of genuine.entries()) {
    while (below < impostors.length && impostors[below] < score) below++;
    const [missed, passed] = [i / genuine.length, 1 - below / impostors.length];
    if (Math.abs(missed - passed) >= gap) continue;
    gap = Math.abs(missed - passed);
    equalErrorRate = (missed + passed) / 2;
  }
  const threshold = impostors[Math.floor((1 - rate) * impostors.length)];
  return { equalErrorRate, misses: genuine.filter((score) => score < threshold).length / genuine.length };
}
