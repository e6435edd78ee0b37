// Accuracy on DEV: of the shipped model, as recorded and with codecs, noise and cuts on the tested side; of voice activity, compared with Silero.
//   python3 training/extract.py MIRROR DIR        writes the recordings and DIR/<set>.trials.txt
//   npm run bench:accuracy -- --spoof …           the attack checks instead: bench/spoof.mjs
//   npm run bench:accuracy -- --adaptation …      prints that adapt to later calls: bench/adaptation.mjs
//   npm run bench:accuracy -- --open-set …        lists of real voices instead: bench/open-set.mjs
//   npm run bench:accuracy -- --own-calibration … calibrations fitted to a few speakers: bench/own-calibration.mjs
//   npm run bench:accuracy -- --lost-packets …    telephone calls with packet loss: bench/lost-packets.mjs
//   npm run bench:accuracy -- --two-voices …      agent and caller in one channel: bench/two-voices.mjs
//   npm run bench:accuracy -- --corpora DIR [--sets cvau-dev,wuw-dev] [--conditions clean,g711,gsm,noise,cut] [--activity] [--json] [--report FILE]
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: {
    corpora: { type: "string" },
    sets: { type: "string" },
    conditions: { type: "string" },
    spoof: { type: "boolean", default: false },
    adaptation: { type: "boolean", default: false },
    "open-set": { type: "boolean", default: false },
    "own-calibration": { type: "boolean", default: false },
    "two-voices": { type: "boolean", default: false },
    "lost-packets": { type: "boolean", default: false },
    voices: { type: "string" },
    without: { type: "string" },
    callers: { type: "string" },
    scores: { type: "string" },
    lengths: { type: "string", default: "all,4,2" },
    // By default the package's own.
    model: { type: "string" },
    // Only voice activity.
    activity: { type: "boolean", default: false },
    resamples: { type: "string", default: "1000" },
    workers: { type: "string", default: String(availableParallelism()) },
    report: { type: "string" },
    json: { type: "boolean", default: false },
    // Use dist/ without building it.
    built: { type: "boolean", default: false },
  },
});
function refuse(why) {
  console.error(why);
  process.exit(2);
}

/** The names in a list. Unknown names are refused: a figure under a wrong name is worse than none. */
function named(option, list, known) {
  const names = list.split(",");
  const others = names.filter((name) => !known.includes(name));
  if (others.length > 0) refuse(`--${option} ${others.join(",")}: expected one of ${known.join(", ")}`);
  return names;
}

if (!options.corpora)
  refuse(
    "--corpora DIR is required: the folder that training/extract.py (for --spoof training/spoof/extract.py) wrote",
  );

if (!options.built) execFileSync(process.execPath, ["scripts/build.mjs"], { stdio: ["ignore", 2, 2] });
if (options.spoof) {
  const { lines, spoof } = await import("./spoof.mjs");
  const known = Object.keys(lines);
  const lengths = options.lengths.split(",");
  if (!lengths.every((length) => length === "all" || Number(length) > 0))
    refuse(`--lengths ${options.lengths}: "all", or seconds`);
  await spoof({
    ...options,
    conditions: named("conditions", options.conditions ?? known.join(","), known),
    lengths,
    workers: Number(options.workers),
  });
  process.exit();
}
if (options.adaptation) {
  const { adaptation } = await import("./adaptation.mjs");
  await adaptation({
    ...options,
    sets: options.sets?.split(",") ?? ["wuw-dev", "hv-dev"],
    workers: Number(options.workers),
  });
  process.exit();
}
if (options["own-calibration"]) {
  const { ownCalibration } = await import("./own-calibration.mjs");
  if (!options.voices) refuse("--voices FILE is required: the output of bench/voices.mjs");
  if (!options.without) refuse("--without DIR is required: the calibrations that training/calibrate.py wrote");
  const sets = (options.sets ?? "cvau-dev,wuw-dev,hv-dev,gsc-dev").split(",");
  await ownCalibration({ ...options, sets });
  process.exit();
}
if (options["lost-packets"]) {
  const { lostPackets } = await import("./lost-packets.mjs");
  const { table } = await import("../dist/cli/output.js");
  const { percent, rate } = await import("../dist/evaluate/format.js");
  const sets = (options.sets ?? "wuw-dev").split(",");
  const [workers, resamples] = [Number(options.workers), Number(options.resamples)];
  const rows = await lostPackets({ ...options, sets, workers, resamples });
  if (options.json) console.log(JSON.stringify(rows, null, 2));
  else
    console.log(
      table(
        ["set", "EER, G.711", "EER, 5 % of packets lost", "points", "target: 1.0"],
        rows.map(({ set, without, withLoss, points, met }) => [
          set,
          percent(without),
          percent(withLoss),
          rate(points),
          met ? "met" : "NOT MET",
        ]),
      ),
    );
  process.exit();
}
if (options["two-voices"]) {
  const { twoVoices } = await import("./two-voices.mjs");
  const { table } = await import("../dist/cli/output.js");
  const { rate } = await import("../dist/evaluate/format.js");
  const sets = (options.sets ?? "wuw-dev,cvau-dev").split(",");
  const rows = await twoVoices({ ...options, sets, workers: Number(options.workers) });
  if (options.json) console.log(JSON.stringify(rows, null, 2));
  else
    console.log(
      table(
        ["set", "channel", "calls", "accepted", "lost", "target: 25.0 %", "impostors accepted", "EER", "no verdict"],
        rows.map((row) => [
          row.set,
          row.title,
          row.calls,
          rate(row.accepted),
          rate(row.lost),
          row.title.includes("print") ? (row.met ? "met" : "NOT MET") : "",
          `${rate(row.falselyAccepted)} of ${row.impostors}`,
          rate(row.equalErrorRate),
          row.unscored,
        ]),
      ),
    );
  process.exit();
}
if (options["open-set"]) {
  const { openSetFigures } = await import("./open-set.mjs");
  const { table } = await import("../dist/cli/output.js");
  const { rate } = await import("../dist/evaluate/format.js");
  if (!options.voices) refuse("--voices FILE is required: the output of bench/voices.mjs");
  const sets = (options.sets ?? "cvau-dev,wuw-dev,hv-dev,gsc-dev,fsdd").split(",");
  const figures = await openSetFigures({ ...options, sets });
  if (options.json) console.log(JSON.stringify(figures, null, 2));
  else {
    console.log(`${figures.members} training speakers on the lists besides DEV's; target FPIR 1 %`);
    console.log(
      table(
        [
          "callers of",
          "list of",
          "calls listed / not",
          "FPIR",
          "found",
          "oracle at the target",
          "oracle at the rate met",
        ],
        figures.rows.map((row) => [
          row.set,
          row.size,
          `${row.listedCalls} / ${row.unlistedCalls}`,
          rate(row.fpir),
          rate(1 - row.fnir),
          rate(1 - row.oracleFnir),
          rate(1 - row.oracleFnirAtMet),
        ]),
      ),
    );
    const cells = ({ fmr, fnmr, oracle }) => [rate(fmr), rate(fnmr), rate(oracle)];
    console.log(options.without ? "Verify, calibration fitted without the set" : "Verify");
    console.log(
      table(
        ["set", "FMR at 1 %", "FNMR", "oracle's at that FMR", "FMR at 0.1 %", "FNMR", "oracle's at that FMR"],
        figures.promises.map(({ set, onePercent, onePerMille }) => [set, ...cells(onePercent), ...cells(onePerMille)]),
      ),
    );
    console.log("A recording against a print of itself on a list of drawn voices, three looks");
    console.log(
      table(
        ["set", "list of", "recordings", "found"],
        figures.identical.map(({ set, size, of, found }) => [set, size, of, found]),
      ),
    );
  }
  process.exit();
}
const dist = (path) => new URL(`../dist/${path}`, import.meta.url);
const { openEngine } = await import(dist("engine/index.js"));
const { readRecording } = await import(dist("audio/index.js"));
const { evaluate } = await import(dist("evaluate/evaluate.js"));
const { readTrialSet } = await import(dist("evaluate/trials.js"));
const { openVoiceCache } = await import("./voice-cache.mjs");
const { reportHtml } = await import(dist("evaluate/report.js"));
const { percent, decimal, rate } = await import(dist("evaluate/format.js"));
const conditions = await import("./conditions.mjs");
const { table } = await import(dist("cli/output.js"));

const known = ["clean", "g711", "gsm", "noise", "cut"];
const wanted = named("conditions", options.conditions ?? known.join(","), known);
const gsm = wanted.includes("gsm") ? await conditions.gsm() : null;
if (wanted.includes("gsm") && !gsm) console.error("no GSM: this machine's ffmpeg has no libgsm");
const chosen = [
  ...(wanted.includes("clean") ? [undefined] : []),
  ...(wanted.includes("g711") ? [conditions.g711("alaw"), conditions.g711("mulaw")] : []),
  ...(gsm ? [gsm] : []),
  ...(wanted.includes("noise") ? [conditions.noisy(10)] : []),
  ...(wanted.includes("cut") ? [conditions.cut(2), conditions.cut(1)] : []),
];
const found = readdirSync(options.corpora).flatMap((name) => /^(.+)\.trials\.txt$/.exec(name)?.[1] ?? []);
const sets = options.sets ? options.sets.split(",") : found;
if (sets.length === 0) refuse(`${options.corpora}: found no <set>.trials.txt`);

if (!existsSync(new URL("node_modules/@ricky0123/vad-web", import.meta.url)))
  execFileSync("npm", ["install", "--prefix", fileURLToPath(new URL(".", import.meta.url))], {
    stdio: ["ignore", 2, 2],
  });
const { voiceActivity } = await import("./voice-activity.mjs");
const activity = await voiceActivity(options.corpora, sets);
const showActivity = () =>
  console.log(
    table(
      ["sound", "frames", "agree with Silero", "speech found", "target", ""],
      activity.map(({ sound, frames, agreement, speech, target, met }) => [
        sound,
        frames,
        agreement === null ? "" : rate(agreement),
        rate(speech),
        target,
        met ? "met" : "NOT MET",
      ]),
    ),
  );
if (options.activity) {
  if (options.json) console.log(JSON.stringify({ activity }, null, 2));
  else showActivity();
  process.exit(0);
}

const workers = Number(options.workers);
const engine = await openEngine({ workers, ...(options.model ? { model: options.model } : {}) });
// Part of the key: a voice depends on the network and the kernels.
const cache = await openVoiceCache(engine);
const rows = [];
const evaluations = [];
for (const set of sets) {
  const trials = await readTrialSet(join(options.corpora, `${set}.trials.txt`));
  for (const condition of chosen) {
    let said = 0;
    const evaluation = await evaluate(
      trials,
      { engine, decode: (bytes) => readRecording(bytes), cache },
      {
        ...(condition ? { condition } : {}),
        concurrency: workers * 2,
        resamples: Number(options.resamples),
        onProgress({ phase, done, total }) {
          if (phase !== "recordings" || Date.now() - said < 5000) return;
          said = Date.now();
          console.error(`${set}, ${condition?.name ?? "as recorded"}: ${done} of ${total} recordings`);
        },
      },
    );
    rows.push({ set, ...evaluation, trials: undefined });
    evaluations.push({ ...evaluation, condition: `${set}, ${evaluation.condition}` });
    console.error(
      `${set}, ${evaluation.condition}: EER ${evaluation.summary ? percent(evaluation.summary.equalErrorRate) : "none"}`,
    );
  }
}
const { oneVoice } = await import("./one-voice.mjs");
const voices = await oneVoice(
  engine,
  options.corpora,
  sets.filter((set) => ["cvau-dev", "wuw-dev"].includes(set)),
);
await engine.close();

if (options.report) writeFileSync(options.report, reportHtml("Accuracy on DEV", evaluations, new Date()));
if (options.json) console.log(JSON.stringify({ speakers: rows, voices, activity }, null, 2));
else {
  showActivity();
  console.log(
    table(
      ["set", "result besides the match", "of", ""],
      voices.map(({ set, what, of, right, within, between }) => [
        set,
        what,
        of,
        right === undefined
          ? `deviation ${within.toFixed(1)} within a speaker over sessions, ${between.toFixed(1)} between`
          : rate(right / of),
      ]),
    ),
  );
  const figures = rows.map(({ set, condition, summary, unscoredTrials }) => [
    set,
    condition,
    summary?.speakers,
    summary && `${summary.sameTrials} / ${summary.differentTrials}`,
    unscoredTrials,
    summary && percent(summary.equalErrorRate),
    summary && percent(summary.operatingPoints[0].fnmr),
    summary && decimal(summary.cllr),
    summary && decimal(summary.minimumCllr),
    summary?.promisedPoints
      .slice(0, 2)
      .map((point) => rate(point.falseMatchRate))
      .join(", "),
  ]);
  console.log(
    `model ${engine.model.revision.slice(0, 16)}; 95 % intervals by a bootstrap over speakers; conditions on the tested side`,
  );
  console.log(
    table(
      [
        "set",
        "condition",
        "speakers",
        "same / different",
        "unscored",
        "EER",
        "FNMR at FMR 1 %",
        "Cllr",
        "minCllr",
        "FMR at targets 1 %, 0.1 %",
      ],
      figures,
    ),
  );
}
