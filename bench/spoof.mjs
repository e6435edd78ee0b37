// The attack checks of the shipped model on DEV: systems, loudspeakers and rooms unseen in training. Terms of ISO/IEC 30107-3.
//   python3 training/spoof/extract.py MIRROR WAVS DIR          writes the recordings and DIR/list.tsv
//   npm run bench:accuracy -- --spoof --corpora DIR [--callers DIR2] [--model FILE] [--conditions none,g711,gsm,opus] [--lengths all,4,2] [--scores FILE] [--json]
// --scores: every recording's ratio and reliability, for training/spoof/rates.py.
// --callers: the folder of training/extract.py; counts genuine callers of its lists that are taken for attacks with both checks on.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const dist = (path) => new URL(`../dist/${path}`, import.meta.url);
const { openEngine } = await import(dist("engine/index.js"));
const { readRecording } = await import(dist("audio/index.js"));
const { attackHalfWidth, judgeAttack } = await import(dist("voiceprint/decision.js"));
const { builtInConfigurationSets, defaultConfigurationSetId } = await import(dist("voiceprint/configuration-set.js"));
const { pcm16Wav } = await import(dist("audio/wav-writer.js"));
const { table } = await import(dist("cli/output.js"));

/** Related to Kokoro, which was in the training data: reported apart from unseen systems. */
const known = (system) => /-page\/styletts2?$|^kokoro-dev$/.test(system);
const quiet = ["-hide_banner", "-loglevel", "error", "-y"];
/** A condition by its name; `none` is as recorded. */
export const lines = {
  none: null,
  g711: { rateHz: 8000, encode: ["-c:a", "pcm_mulaw"], file: "coded.wav" },
  gsm: { rateHz: 8000, encode: ["-c:a", "libgsm"], file: "coded.gsm" },
  opus: { rateHz: 16000, encode: ["-c:a", "libopus", "-b:a", "12k", "-application", "voip"], file: "coded.ogg" },
};

/** Recordings through a codec: all of one rate in one run of ffmpeg, with half a second of silence between them. */
function coded(recordings, { rateHz, encode, file }) {
  const out = [];
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-line-"));
  const at = (name) => join(folder, name);
  try {
    for (const from of new Set(recordings.map((recording) => recording.rateHz))) {
      const gap = new Float32Array(Math.round(from / 2));
      const mine = recordings.filter((recording) => recording.rateHz === from);
      writeFileSync(at("all.wav"), pcm16Wav(joined(mine.flatMap(({ samples }) => [samples, gap])), from));
      execFileSync("ffmpeg", [...quiet, "-i", at("all.wav"), "-ar", String(rateHz), ...encode, at(file)]);
      execFileSync("ffmpeg", [...quiet, "-i", at(file), "-ar", String(rateHz), "-f", "f32le", at("back.f32")]);
      const back = floats(readFileSync(at("back.f32")));
      let first = 0;
      for (const recording of mine) {
        const last = first + recording.samples.length;
        const [start, end] = [first, last].map((sample) => Math.round((sample * rateHz) / from));
        out[recordings.indexOf(recording)] = { samples: back.slice(start, end), rateHz };
        first = last + gap.length;
      }
    }
    return out;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const floats = (bytes) => new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));

function joined(parts) {
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function read(path) {
  const recording = readRecording(readFileSync(path));
  return { samples: joined([...recording.read(0)]), rateHz: recording.rateHz };
}

/** A few at a time: the engine's queue is limited. */
async function each(some, work) {
  const out = [];
  for (let i = 0; i < some.length; i += 16) out.push(...(await Promise.all(some.slice(i, i + 16).map(work))));
  return out;
}

/** The equal error rate: as many attacks below as genuine recordings above. */
function equalErrorRate(genuine, attacks) {
  const all = [...genuine.map((score) => [score, 0]), ...attacks.map((score) => [score, 1])].sort(
    (a, b) => a[0] - b[0],
  );
  let missed = 0;
  let passed = 0;
  let best = 1;
  let rate = 0.5;
  for (const [, attack] of all) {
    if (attack) missed++;
    else passed++;
    const [miss, alarm] = [missed / attacks.length, 1 - passed / genuine.length];
    if (Math.abs(miss - alarm) >= best) continue;
    best = Math.abs(miss - alarm);
    rate = (miss + alarm) / 2;
  }
  return rate;
}

/** The 95 % interval of k of n (Wilson). */
function interval(k, n, z = 1.96) {
  const p = k / n;
  const d = 1 + (z * z) / n;
  const centre = (p + (z * z) / (2 * n)) / d;
  const half = (z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n))) / d;
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}

const quantile = (values, share) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))];
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const rate = (k, n) =>
  `${percent(k / n)} [${interval(k, n)
    .map((v) => (100 * v).toFixed(0))
    .join("..")}]`;

const { targetFalseAlarmRateForAttacks } = builtInConfigurationSets[defaultConfigurationSetId];
const verdicts = (scores, threshold) => {
  const share = (verdict) => scores.filter((score) => judgeAttack({ ...score, threshold }) === verdict).length;
  return { above: share("above"), near: share("near"), below: share("below"), of: scores.length };
};

/**
 * One check on a set of recordings: [{ system, label, score }]. Recordings without speech give no answer and are counted apart. So is
 * recorded speech from a web page with a codec of the lowest rates: it is not an attack, but callers do not sound like this either.
 */
function figures(all, threshold) {
  const rows = all.filter(({ score }) => score.reliability > 0);
  const of = (some, ...wanted) => some.filter(({ label }) => wanted.includes(label));
  const [genuine, attacks, coded] = [of(rows, "genuine"), of(rows, "attack", "replay"), of(rows, "coded")];
  const llrs = (some) => some.map(({ score }) => score.llr);
  const bound = quantile(llrs(genuine), 0.95);
  const systems = [...new Set(attacks.map(({ system }) => system))].toSorted();
  const relatives = attacks.filter(({ system }) => known(system));
  const strangers = attacks.filter(({ system }) => !known(system));
  return {
    genuine: genuine.length,
    attacks: attacks.length,
    unheard: [of(all, "genuine").length - genuine.length, of(all, "attack", "replay").length - attacks.length],
    equalErrorRate: equalErrorRate(llrs(genuine), llrs(strangers)),
    withCoded: coded.length > 0 ? equalErrorRate(llrs([...genuine, ...coded]), llrs(strangers)) : null,
    knownLineage: relatives.length > 0 ? equalErrorRate(llrs(genuine), llrs(relatives)) : null,
    all: equalErrorRate(llrs(genuine), llrs(attacks)),
    apcer: systems.map((system) => {
      const mine = llrs(attacks.filter((row) => row.system === system));
      return { system, clips: mine.length, missed: mine.filter((llr) => llr <= bound).length };
    }),
    decisions: {
      genuine: verdicts(
        genuine.map(({ score }) => score),
        threshold,
      ),
      attacks: verdicts(
        attacks.map(({ score }) => score),
        threshold,
      ),
      coded: verdicts(
        coded.map(({ score }) => score),
        threshold,
      ),
    },
  };
}

const LABELS = new Set(["genuine", "coded", "attack", "replay"]);

export async function spoof({ corpora, callers, conditions, lengths, workers, model, scores, json }) {
  const engine = await openEngine({ workers, ...(model ? { model } : {}) });
  const rows = readFileSync(join(corpora, "list.tsv"), "utf8")
    .trim()
    .split("\n")
    .map((row) => row.split("\t"));
  const unknown = rows.findIndex(([, label]) => !LABELS.has(label));
  if (unknown >= 0)
    throw new Error(
      `list.tsv, line ${unknown + 1}: label must be one of ${[...LABELS].join(", ")}, got "${rows[unknown][1]}"`,
    );
  const recordings = rows.map(([file, label, system]) => ({ label, system, ...read(join(corpora, file)) }));
  const scored = async (kind, some, seconds) => {
    const kinds = kind === "playback" ? ["genuine", "replay"] : ["genuine", "coded", "attack"];
    const wanted = some.filter(({ label }) => kinds.includes(label));
    return each(wanted, async ({ label, system, samples, rateHz }) => ({
      label,
      system,
      score: await engine.attack(kind, samples.slice(0, Math.round(seconds * rateHz)), rateHz),
    }));
  };
  const result = { revision: engine.model.revision, synthetic: {}, playback: {} };
  const all = [];
  for (const condition of conditions) {
    const line = lines[condition];
    const heard = [];
    for (let i = 0; i < recordings.length; i += 200) {
      const some = recordings.slice(i, i + 200);
      const through = line ? coded(some, line) : some;
      heard.push(...some.map(({ label, system }, k) => ({ label, system, ...through[k] })));
    }
    for (const kind of ["synthetic", "playback"]) {
      if (!engine.model.attacks.includes(kind)) continue;
      for (const length of condition === "none" ? lengths : ["all"]) {
        const name = length === "all" ? condition : `${condition}, ${length} s`;
        const found = await scored(kind, heard, length === "all" ? 60 : Number(length));
        result[kind][name] = figures(found, engine.attackThreshold(kind, targetFalseAlarmRateForAttacks));
        for (const { label, system, score } of found)
          all.push({ kind, condition: name, label, system, ...score, leftOpen: attackHalfWidth(score.reliability) });
        const { equalErrorRate: error } = result[kind][name];
        console.error(`${kind}, ${name}: EER ${percent(error)}`);
      }
    }
  }
  if (scores) writeFileSync(scores, JSON.stringify(all));
  if (callers) {
    result.callers = {};
    for (const set of readdirSync(callers, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
      const files = readdirSync(join(callers, set.name), { recursive: true })
        .filter((name) => name.endsWith(".wav"))
        .toSorted();
      const every = Math.max(1, Math.floor(files.length / 250));
      const chosen = files.filter((_, i) => i % every === 0).map((name) => read(join(callers, set.name, name)));
      const strong = new Set();
      for (const kind of engine.model.attacks) {
        const threshold = engine.attackThreshold(kind, targetFalseAlarmRateForAttacks);
        const heard = await each(chosen, ({ samples, rateHz }) => engine.attack(kind, samples.slice(), rateHz));
        for (const [i, score] of heard.entries()) if (judgeAttack({ ...score, threshold }) === "above") strong.add(i);
      }
      result.callers[set.name] = { segments: chosen.length, refused: strong.size };
    }
  }
  await engine.close();
  if (json) console.log(JSON.stringify(result, null, 2));
  else say(result);
}

function say({ revision, callers, ...kinds }) {
  console.log(
    `model ${revision.slice(0, 16)}; APCER at BPCER 5 % with its 95 % interval; a strong attack is FRAUD at a target of 1 %`,
  );
  for (const [kind, byCondition] of Object.entries(kinds)) {
    if (Object.keys(byCondition).length === 0) {
      console.log(`\n${kind}: the model does not have this network`);
      continue;
    }
    console.log(`\n${kind}`);
    console.log(
      table(
        [
          "condition",
          "genuine / attacks",
          "no speech",
          "EER",
          "EER, coded speech as genuine",
          "EER, known lineage",
          "EER, all",
          "genuine: FRAUD, uncertain",
          "attacks: FRAUD, uncertain",
        ],
        Object.entries(byCondition).map(
          ([name, { genuine, attacks, unheard, equalErrorRate: error, withCoded, knownLineage, all, decisions }]) => [
            name,
            `${genuine} / ${attacks}`,
            unheard.join(" / "),
            percent(error),
            withCoded === null ? "" : percent(withCoded),
            knownLineage === null ? "" : percent(knownLineage),
            percent(all),
            `${rate(decisions.genuine.above, genuine)}, ${percent(decisions.genuine.near / genuine)}`,
            `${percent(decisions.attacks.above / attacks)}, ${percent(decisions.attacks.near / attacks)}`,
          ],
        ),
      ),
    );
    const conditions = Object.keys(byCondition);
    console.log(
      table(
        ["APCER of", "recordings", ...conditions],
        byCondition[conditions[0]].apcer.map(({ system, clips }) => [
          system,
          clips,
          ...conditions.map((name) => {
            const found = byCondition[name].apcer.find((row) => row.system === system);
            return found ? rate(found.missed, found.clips) : "unheard";
          }),
        ]),
      ),
    );
  }
  if (!callers) return;
  console.log("\ngenuine callers classified as an attack, both checks on");
  console.log(
    table(
      ["set", "segments", "classified as an attack"],
      Object.entries(callers).map(([set, { segments, refused }]) => [set, segments, rate(refused, segments)]),
    ),
  );
}
