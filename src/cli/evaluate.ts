import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { readRecording } from "../audio/index.js";
import { toWav } from "../audio/to-wav.js";
import {
  type ComparedEvaluation,
  type Comparison,
  comparedEvaluation,
  compareEvaluations,
} from "../evaluate/compare.js";
import { type Evaluation, type EvaluationParts, evaluate } from "../evaluate/evaluate.js";
import { lastEvaluation } from "../evaluate/last-evaluation.js";
import { figuresOf, tablesOf } from "../evaluate/tables.js";
import { MOST_TRIALS, readTrialSet, type TrialSet, TrialSetError } from "../evaluate/trials.js";
import { scoresCsv, worstPairs } from "../evaluate/verdicts.js";
import { CacheError, VoiceCache } from "../evaluate/voice-cache.js";
import { home, loadConfig } from "../server/config.js";
import { fileFault } from "../server/file-fault.js";
import { VERSION } from "../server/version.js";
import { makeFolders } from "../store/make-folders.js";
import { bytesOf } from "./calls.js";
import { CommandError, faultOfFile } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { MODEL, modelOption } from "./model-option.js";
import { createOutput, facts, table } from "./output.js";
import { assertCanWrite, writeOutput } from "./output-file.js";
import { createProgress, type ProgressDisplay } from "./progress.js";
import { WORKERS, wholeNumber, workersOf } from "./shared-options.js";

export interface TrialOptions {
  readonly json?: boolean;
  readonly model?: string;
  readonly cache: string | boolean;
  readonly workers?: number;
}

interface Options extends TrialOptions {
  readonly report?: string;
  readonly scores?: string;
  readonly compare?: readonly string[];
  readonly calibration?: string;
  readonly keep: string | boolean;
  readonly resamples: number;
}

export function evaluateCommand(program: Command): void {
  program
    .command("evaluate")
    .description("measure accuracy on your own recordings: error rates and calibration, by amount of speech and noise")
    .argument(
      "[folder-or-list]",
      "a folder of speaker/session/file or speaker/file (WAV; FLAC, MP3, Opus, AAC, M4A, AMR, AIFF and others if ffmpeg is installed), or a text file with a line `label enroll[,enroll…] test` for each trial",
    )
    .option("--report <file>", "write an HTML report with DET curve, histograms and calibration")
    .option("--scores <file>", "write a CSV file with the score, ratio and speakers of every trial")
    .option(
      "--compare <json...>",
      "compare two saved outputs of `evaluate --json` instead: --compare before.json after.json",
    )
    .option("--model <model>", MODEL)
    .option("--calibration <file>", 'calibration file from "vivavoce calibrate"')
    .option(
      "--cache <file>",
      "file that caches the embeddings, so that an interrupted run can continue (biometric data, readable only by you)",
    )
    .option("--no-cache", "do not cache embeddings")
    .option("--keep <file>", "file to save figures and DET curve to, for the operator view of a box")
    .option("--no-keep", "do not write that file")
    .option(
      "--resamples <n>",
      "bootstrap resamples of the speakers, for confidence intervals; 0 for none",
      wholeNumber(0, 100_000),
      1000,
    )
    .addOption(WORKERS)
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      `\nIf there are more than ${MOST_TRIALS.toLocaleString("en")} trials of one kind, a random sample of them is scored; the result also gives their total.`,
    )
    .action(run);
}

async function run(path: string | undefined, options: Options): Promise<void> {
  const output = createOutput(options.json);
  if (options.compare) {
    if (path !== undefined || options.report || options.scores)
      throw new CommandError(
        "--compare only reads two saved outputs; leave out the folder or list, --report and --scores",
      );
    if (options.compare.length !== 2)
      throw new CommandError("--compare needs two files: --compare before.json after.json");
    const [before, after] = await Promise.all(options.compare.map(readAnswer));
    const comparison = compareEvaluations(before!, after!);
    output.answer(comparison, () => comparisonTable(comparison, ["before", "after"]));
    return;
  }
  if (path === undefined) throw new CommandError("give a folder of recordings or a list of trials");
  const config = loadConfig();
  if (typeof options.keep === "string") await makeFolders(dirname(options.keep));
  await assertCanWrite(options.report, options.scores, typeof options.keep === "string" ? options.keep : undefined);
  const { evaluation } = await evaluated(await trialsOf(path), options, {
    resamples: options.resamples,
    calibration: options.calibration ?? config.calibration ?? null,
  });
  if (options.report) {
    const { reportHtml } = await import("../evaluate/report.js");
    await writeOutput(options.report, reportHtml(`Evaluation of ${basename(resolve(path))}`, [evaluation], new Date()));
    output.note(`report: ${options.report}`);
  }
  if (options.scores) {
    await writeOutput(options.scores, scoresCsv(evaluation.trials));
    output.note(`scores: ${options.scores}`);
  }
  await keep(options.keep, config.evaluation, basename(resolve(path)), evaluation, (text) => output.note(text));
  const { trials, ...figures } = evaluation;
  output.answer({ ...figures, worst: worstPairs(trials) }, () => text(evaluation));
  if (evaluation.summary === null) process.exitCode = ExitCode.undecided;
}

/** WAV, or formats that ffmpeg converts to WAV. */
export const decode = async (bytes: Uint8Array) => readRecording(await toWav(bytes));

/** The trials of a folder or list. Read once for a command: a list may come through a pipe. */
export const trialsOf = (path: string): Promise<TrialSet> =>
  readTrialSet(path).catch((error: unknown) => {
    if (error instanceof TrialSetError) throw new CommandError(error.message);
    throw error;
  });

/** An engine for many recordings, with what shows and interrupts its work. */
interface Opened {
  readonly parts: EvaluationParts;
  readonly running: { readonly concurrency: number; readonly signal: AbortSignal };
  readonly progress: ProgressDisplay;
  /** From here on, Ctrl-C ends the process. */
  endInterruption(): void;
}

/** Runs `work` with an engine and the cache, and closes them afterwards. A failure of the cache's file says so. */
export async function withEngine<T>(
  options: TrialOptions,
  calibration: string | null,
  work: (opened: Opened) => Promise<T>,
): Promise<T> {
  const workers = workersOf(options);
  const { openEngine } = await import("../engine/index.js");
  const engine = await openEngine({ workers, calibration, ...modelOption(options.model) });
  const progress = createProgress(!options.json);
  const { signal, end } = interruptible(options);
  const file = options.cache === false ? null : cachePath(options.cache, engine.model.revision);
  try {
    const cache = file === null ? VoiceCache.inMemory() : await VoiceCache.open(file);
    const running = { concurrency: 2 * workers, signal };
    return await work({ parts: { engine, decode, cache }, running, progress, endInterruption: end });
  } catch (error) {
    return cacheFault(file)(error);
  } finally {
    progress.stop();
    end();
    await engine.close();
  }
}

/** Processes the recordings of a set and scores its trials. */
export const evaluated = (
  set: TrialSet,
  options: TrialOptions,
  { resamples, calibration }: { resamples: number; calibration: string | null },
): Promise<{ evaluation: Evaluation; modelRevision: string }> =>
  withEngine(options, calibration, async ({ parts, running, progress, endInterruption }) => {
    let phase = "";
    const evaluation = await evaluate(set, parts, {
      ...running,
      resamples,
      onProgress(at) {
        if (at.phase !== phase) progress.start(at.phase, at.total);
        phase = at.phase;
        progress.set(at.done);
        // Figures are computed in one go, which only the signal itself ends.
        if (phase === "figures") endInterruption();
      },
    });
    return { evaluation, modelRevision: parts.engine.model.revision };
  });

/** Until `end` is called, Ctrl-C aborts the signal instead of ending the process. */
export function interruptible({ cache }: TrialOptions): { readonly signal: AbortSignal; end(): void } {
  const interrupted = new AbortController();
  const hint = cache === false ? undefined : "run the command again to continue where it stopped";
  const interrupt = () => interrupted.abort(new CommandError("interrupted", hint, ExitCode.failed));
  process.once("SIGINT", interrupt);
  return { signal: interrupted.signal, end: () => void process.off("SIGINT", interrupt) };
}

/** Recordings that cannot be read are results, so a file that fails an evaluation is its cache. */
export const cacheFault = (path: string | null) => (error: unknown) => {
  if (error instanceof CacheError) throw new CommandError(error.message);
  throw path !== null && fileFault(error) ? faultOfFile(path, error, "--no-cache works without this file") : error;
};

async function readAnswer(file: string): Promise<ComparedEvaluation> {
  const answer = comparedEvaluation(String(await bytesOf(file)));
  if (answer) return answer;
  throw new CommandError(`${file}: expected the output of "vivavoce evaluate --json", with figures`);
}

export const comparisonTable = ({ rows, note }: Comparison, [one, other]: readonly [string, string]): string =>
  [
    table(
      ["", one, other, "change"],
      rows.map(({ figure, before, after, change }) => [figure, before, after, change]),
    ),
    ...(note ? [note] : []),
  ].join("\n");

/** If nobody asked for the file and it cannot be written, the figures are still printed. */
async function keep(
  given: string | boolean,
  usual: string,
  name: string,
  evaluation: Evaluation,
  note: (text: string) => void,
): Promise<void> {
  const last = given === false ? null : lastEvaluation(name, evaluation, new Date());
  if (!last) return;
  const file = typeof given === "string" ? given : usual;
  try {
    await makeFolders(dirname(file));
    // A box may run as another user, and rates and counts are not secret.
    await writeOutput(file, JSON.stringify(last), 0o644);
    note(`for the operator view: ${file}`);
  } catch (error) {
    if (typeof given === "string") throw error;
    note(`not saved for the operator view: ${(error as Error).message}`);
  }
}

export function cachePath(given: string | boolean, revision: string): string {
  if (typeof given === "string") return given;
  const root = process.env.XDG_CACHE_HOME || join(home(), ".cache");
  // The kernels of another version may compute slightly different embeddings.
  return join(root, "vivavoce", "evaluate", `${revision.slice(0, 16)}-${VERSION}.jsonl`);
}

const mostListed = 10;

const listed = (title: string, lines: readonly string[]): string[] => [
  title,
  ...lines.slice(0, mostListed).map((line) => `  ${line}`),
  ...(lines.length > mostListed ? [`  and ${lines.length - mostListed} more (--json lists all)`] : []),
];

/** What could not be scored, and what should not have been. */
export function failuresIn({ unusable, unscoredTrials, failedModels, copies }: Evaluation): string[] {
  return [
    ...(copies.length === 0
      ? []
      : listed(
          `copies of other recordings: ${copies.length}; remove them, because comparing a recording with its own copy shows nothing`,
          copies.map(({ file, of }) => `${file}: ${of}`),
        )),
    ...(unusable.length + unscoredTrials === 0
      ? []
      : listed(
          `not scored: ${unscoredTrials} trials (recordings without usable speech: ${unusable.length}; enrollments that failed: ${failedModels})`,
          unusable.map(({ file, reason }) => `${file}: ${reason}`),
        )),
  ];
}

/** A hint for a command that had too few trials. */
export const unusableHint = ({ unusable: [first, ...more] }: Evaluation): string | undefined =>
  first && `recordings that could not be used: ${1 + more.length}, such as ${first.file}: ${first.reason}`;

function text(evaluation: Evaluation): string {
  const { summary } = evaluation;
  const failures = failuresIn(evaluation);
  if (!summary)
    return ["no figures: the scored trials must include the same speaker and different speakers", ...failures].join(
      "\n",
    );
  const tables = tablesOf(evaluation, summary).flatMap(({ title, head, rows, notes = [] }) => [
    title,
    table(head, rows),
    ...notes,
  ]);
  const figures = facts([
    ["Model", evaluation.modelRevision.slice(0, 16)],
    ["Calibration", evaluation.calibrationRevision.slice(0, 16)],
    ...figuresOf(summary, evaluation.sampledFrom),
  ]);
  return [...(evaluation.note ? [evaluation.note] : []), figures, ...tables, ...failures].join("\n");
}
