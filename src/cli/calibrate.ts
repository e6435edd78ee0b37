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
import { alarmRate, type FittedAttack, fitAttack, genuineReach, leastRecordings } from "../evaluate/attacks.js";
import {
  CalibrationRefusal,
  calibrated,
  cllrOf,
  type FittedCalibration,
  fitCalibration,
  refuseFewIn,
  underFit,
} from "../evaluate/calibrate.js";
import type { Evaluation } from "../evaluate/evaluate.js";
import { rate } from "../evaluate/format.js";
import type { ScoredTrial } from "../evaluate/summary.js";
import type { TrialSet } from "../evaluate/trials.js";
import { type Pair, worstPairs } from "../evaluate/verdicts.js";
import { CommandError } from "./command-error.js";
import { evaluated, failuresIn, type TrialOptions, trialsOf, unusableHint, withEngine } from "./evaluate.js";
import { MODEL, modelOption } from "./model-option.js";
import { createOutput, facts, table } from "./output.js";
import { assertCanWrite, writeOutput } from "./output-file.js";
import { WORKERS } from "./shared-options.js";

interface Options extends TrialOptions {
  readonly out: string;
  readonly attacks: boolean;
}

/** How the recordings look to an attack check. */
interface AttackCheck {
  readonly kind: AttackKind;
  /** Recordings with speech. */
  readonly recordings: number;
  /** Share of them that exceeds the model's own threshold for 1 %. */
  readonly alarms: number;
  readonly ownThreshold: number;
  /** `null` if there are too few recordings: the check then keeps the model's own thresholds. */
  readonly fit: FittedAttack | null;
}

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
    .option(
      "--cache <file>",
      "file that caches the embeddings and attack scores, so that an interrupted run can continue (biometric data, readable only by you)",
    )
    .option("--no-cache", "do not cache embeddings")
    .addOption(WORKERS)
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      "\nUse the file with --calibration (evaluate, serve), VIVAVOCE_CALIBRATION=<file> (every command, the box) or openEngine({ calibration }).",
    )
    .action(run);
}

async function run(path: string, options: Options): Promise<void> {
  const output = createOutput(options.json);
  await assertCanWrite(options.out);
  // Starts from the model's own calibration, whichever is in use: a fit of a fit would drift.
  const set = await trialsOf(path);
  unlessRefused(() => refuseFewIn(set));
  const { evaluation, modelRevision } = await evaluated(set, options, { resamples: 0, calibration: null });
  const model = await readModel(modelOption(options.model).model);
  const { calibration: section } = await readModelFile(model);
  if (section === null) throw new CommandError("the model has no calibration to start from");
  const fit = unlessRefused(() => fitCalibration(evaluation.trials, evaluation.copies), unusableHint(evaluation));
  const checks = options.attacks ? await attackChecks(set, sha256(model), options) : [];
  const attacks = Object.fromEntries(checks.flatMap(({ kind, fit }) => (fit ? [[kind, fit]] : [])));
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
  const revision = sha256(bytes);
  const after = underFit(evaluation.trials, fit);
  const { sampledFrom, note, unusable, unscoredTrials } = evaluation;
  const worst = worstPairs(evaluation.trials);
  const results = { sampledFrom, note, unusable, unscoredTrials, worst, attacks, checks };
  const answer = { file: options.out, revision, ...fit, ...results };
  output.answer(answer, () =>
    [
      ...(note ? [note] : []),
      text(options.out, revision, fit, evaluation, after),
      ...attacksText(checks),
      ...failuresIn(evaluation),
    ].join("\n"),
  );
}

const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Processes every recording once more with each attack network of the model. */
const attackChecks = ({ files }: TrialSet, modelDigest: string, options: Options): Promise<AttackCheck[]> =>
  withEngine(options, null, async ({ parts, running, progress }) => {
    const { engine } = parts;
    const checks: AttackCheck[] = [];
    for (const kind of engine.model.attacks) {
      progress.start(`${kind} speech`, files.length);
      const onProgress = (done: number) => progress.set(done);
      const reach = await genuineReach(files, kind, modelDigest, parts, { ...running, onProgress });
      checks.push({
        kind,
        recordings: reach.reach.length,
        alarms: alarmRate(reach, kind, engine, ALARM_RATE),
        ownThreshold: engine.attackThreshold(kind, ALARM_RATE),
        fit: fitAttack(reach, kind, engine),
      });
    }
    return checks;
  });

const ALARM_RATE = 0.01;
/** Above this share of alarms, the recordings are unlike the model's genuine speech, or attacks are among them. */
const MOST_ALARMS = 0.1;

function attacksText(checks: readonly AttackCheck[]): string[] {
  if (checks.length === 0) return [];
  const rows = checks.map(({ kind, recordings, alarms, ownThreshold, fit }) => [
    kind,
    recordings,
    rate(alarms),
    ownThreshold.toFixed(2),
    fit ? (fit.location - fit.scale * Math.log(ALARM_RATE)).toFixed(2) : "unchanged",
    fit ? rate(fit.weight) : `too few recordings, at least ${leastRecordings} are needed`,
  ]);
  return [
    "Attack checks (assuming that all recordings are genuine calls), for 1 % false alarms:",
    table(["check", "recordings", "false alarms", "the model's own threshold", "this calibration", "weight"], rows),
    ...checks
      .filter(({ fit, alarms }) => fit && alarms > MOST_ALARMS)
      .map(
        ({ kind, alarms }) =>
          `${rate(alarms)} of the recordings look like an attack (${kind}) to the model. If they are not all genuine calls over your lines, use --no-attacks: otherwise such attacks pass from now on.`,
      ),
  ];
}

function unlessRefused<T>(work: () => T, hint?: string): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof CalibrationRefusal) throw new CommandError(error.message, hint);
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
  const { different, same } = worstPairs(before, 1);
  return [
    facts([
      ["calibration", file],
      ["revision", revision.slice(0, 16)],
      ["fitted on", `${fit.speakers} speakers, ${fit.sameTrials} same, ${fit.differentTrials} different`],
      ...(sampledFrom
        ? [["a random sample of", `${sampledFrom.same} same, ${sampledFrom.different} different`] as const]
        : []),
      ["weight of your recordings", rate(fit.weight)],
      ["most alike under two names", pair(different[0]!)],
      ["least alike under one name", pair(same[0]!)],
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

/** Wrong labels make a worse calibration without any error, so the operator sees where they would be. */
const pair = ({ enrolled, tested, raw }: Pair) => `${enrolled} and ${tested} (score ${raw.toFixed(3)})`;
