import { createHash } from "node:crypto";
import type { Command } from "commander";
import {
  CALIBRATION_FORMAT,
  CALIBRATION_VERSION,
  type CalibrationFile,
  readCalibrationFile,
} from "../engine/calibration-file.js";
import { readModelFile } from "../engine/model-file.js";
import { readModel } from "../engine/platform.js";
import type { AttackKind } from "../engine/port.js";
import { mostWorkers } from "../engine/threads.js";
import { type FittedAttack, fitAttack, genuineReach } from "../evaluate/attacks.js";
import {
  CalibrationRefusal,
  calibrated,
  cllrOf,
  type FittedCalibration,
  fitCalibration,
  underFit,
} from "../evaluate/calibrate.js";
import type { Evaluation } from "../evaluate/evaluate.js";
import { rate } from "../evaluate/format.js";
import type { ScoredTrial } from "../evaluate/summary.js";
import type { TrialSet } from "../evaluate/trials.js";
import { CommandError } from "./command-error.js";
import { decode, evaluated, failuresIn, MODEL, type TrialOptions, trialsOf, unusableHint } from "./evaluate.js";
import { modelOption } from "./model-option.js";
import { createOutput, facts, table } from "./output.js";
import { assertCanWrite, writeOutput } from "./output-file.js";
import { createProgress } from "./progress.js";
import { wholeNumber, workersOf } from "./shared-options.js";

interface Options extends TrialOptions {
  readonly out: string;
  readonly attacks: boolean;
}

type FittedAttacks = { readonly [kind in AttackKind]?: FittedAttack };

export function calibrateCommand(program: Command): void {
  program
    .command("calibrate")
    .description("fit the calibration to your own recordings; voiceprints stay valid")
    .argument(
      "<folder-or-list>",
      "labeled recordings, as for `evaluate`, of at least 5 speakers; 20 or more are better",
    )
    .option("--out <file>", "the calibration file to write", "calibration.json")
    .option(
      "--no-attacks",
      "leave the thresholds of the attack checks unchanged; use it if the recordings are not genuine calls over your lines",
    )
    .option("--model <model>", MODEL)
    .option("--cache <file>", "file that caches the embeddings (biometric data, readable only by you)")
    .option("--no-cache", "do not cache embeddings")
    .option("--workers <n>", "number of threads", wholeNumber(1, mostWorkers))
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      "\nUse the file with --calibration (evaluate, serve), VIVAVOCE_CALIBRATION=<file> (every command, the box) or openEngine({ calibration }).",
    )
    .action(run);
}

async function run(path: string, options: Options): Promise<void> {
  const output = createOutput(options.json ?? false);
  await assertCanWrite(options.out);
  // Starts from the model's own calibration, whichever is in use: a fit of a fit would drift.
  const set = await trialsOf(path);
  const { evaluation, modelRevision } = await evaluated(set, options, { resamples: 0, calibration: null });
  const { calibration: section } = await readModelFile(await readModel(modelOption(options.model).model));
  if (section === null) throw new CommandError("the model has no calibration to start from");
  const fit = fitted(evaluation);
  const attacks = options.attacks ? await fittedAttacks(set, options) : {};
  const file: CalibrationFile = {
    format: CALIBRATION_FORMAT,
    version: CALIBRATION_VERSION,
    modelRevision,
    speakers: fit.speakers,
    sameTrials: fit.sameTrials,
    differentTrials: fit.differentTrials,
    calibration: calibrated(section, fit),
    attacks,
  };
  const bytes = `${JSON.stringify(file, null, 1)}\n`;
  // As the engine will read it: a file that it refuses is not written.
  await readCalibrationFile(Buffer.from(bytes), modelRevision);
  await writeOutput(options.out, bytes);
  const revision = createHash("sha256").update(bytes).digest("hex");
  const after = underFit(evaluation.trials, fit);
  const { sampledFrom, note, unusable, unscoredTrials } = evaluation;
  const answer = { file: options.out, revision, ...fit, sampledFrom, note, unusable, unscoredTrials, attacks };
  output.answer(answer, () =>
    [
      ...(note ? [note] : []),
      text(options.out, revision, fit, evaluation, after),
      ...attacksText(attacks),
      ...failuresIn(evaluation),
    ].join("\n"),
  );
}

/** Processes every recording once more with each attack network of the model. */
async function fittedAttacks({ files }: TrialSet, options: Options): Promise<FittedAttacks> {
  const workers = workersOf(options);
  const { openEngine } = await import("../engine/index.js");
  const engine = await openEngine({ workers, calibration: null, ...modelOption(options.model) });
  const progress = createProgress(!options.json);
  try {
    const fits: { [kind in AttackKind]?: FittedAttack } = {};
    for (const kind of engine.model.attacks) {
      progress.start(`${kind} speech`, files.length);
      const onProgress = (done: number) => progress.set(done);
      const reach = await genuineReach(files, kind, { engine, decode }, { concurrency: 2 * workers, onProgress });
      const fit = fitAttack(reach, kind, engine);
      if (fit) fits[kind] = fit;
    }
    return fits;
  } finally {
    progress.stop();
    await engine.close();
  }
}

function attacksText(attacks: FittedAttacks): string[] {
  const rows = Object.entries(attacks).map(([kind, { location, scale, recordings, weight }]) => [
    kind,
    recordings,
    (location - scale * Math.log(0.01)).toFixed(2),
    rate(weight),
  ]);
  return rows.length === 0
    ? []
    : [
        "Attack checks (assuming that all recordings are genuine calls):",
        table(["check", "recordings", "ratio exceeded by 1 %", "weight of your recordings"], rows),
      ];
}

function fitted(evaluation: Evaluation): FittedCalibration {
  try {
    return fitCalibration(evaluation.trials, evaluation.copies);
  } catch (error) {
    if (error instanceof CalibrationRefusal) throw new CommandError(error.message, unusableHint(evaluation));
    throw error;
  }
}

function text(
  file: string,
  revision: string,
  fit: FittedCalibration,
  { trials: before, sampledFrom }: Evaluation,
  after: readonly ScoredTrial[],
): string {
  return [
    facts([
      ["calibration", file],
      ["revision", revision.slice(0, 16)],
      ["fitted on", `${fit.speakers} speakers, ${fit.sameTrials} same, ${fit.differentTrials} different`],
      ...(sampledFrom
        ? [["a random sample of", `${sampledFrom.same} same, ${sampledFrom.different} different`] as const]
        : []),
      ["weight of your recordings", rate(fit.weight)],
    ]),
    "On the same recordings (results on other speakers will be somewhat worse):",
    table(
      ["", "the model's own", "this calibration"],
      [
        ["Cllr", cllrOf(before).toFixed(3), cllrOf(after).toFixed(3)],
        ["impostor scores shifted by", null, fit.centerShift.toFixed(3)],
        ["impostor spread multiplied by", null, fit.spreadFactor.toFixed(3)],
      ],
    ),
  ].join("\n");
}
