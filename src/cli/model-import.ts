/** `vivavoce model import`, `info` and `compare`. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { readModelFile } from "../engine/model-file.js";
import { ModelFileError } from "../engine/model-file-error.js";
import { readModel } from "../engine/platform.js";
import { CalibrationRefusal, calibrated, fitCalibration, refuseFewIn } from "../evaluate/calibrate.js";
import { compareEvaluations } from "../evaluate/compare.js";
import { bytesOfFile, mono } from "../evaluate/evaluate.js";
import { isAudioName } from "../evaluate/trials.js";
import { ImportRefusal } from "../model-import/import-refusal.js";
import { modelLocation } from "../server/model-location.js";
import { bytesOf, faultOf } from "./calls.js";
import { CommandError } from "./command-error.js";
import { comparisonTable, decode, evaluated, trialsOf, unusableHint } from "./evaluate.js";
import { ExitCode } from "./exit-code.js";
import { MODEL } from "./model-option.js";
import { createOutput, facts } from "./output.js";
import { assertCanWrite, writeOutput } from "./output-file.js";
import { createProgress } from "./progress.js";
import { WORKERS, wholeNumber } from "./shared-options.js";

interface ImportOptions {
  readonly speech: string;
  readonly out: string;
  readonly name?: string;
  readonly license: string;
  readonly workers?: number;
  readonly json?: boolean;
}

export function modelFileCommands(model: Command): void {
  model
    .command("import")
    .description(
      "convert a published ONNX network to a model file: CAM++, ECAPA-TDNN, TitaNet, or the ResNet34 of WeSpeaker",
    )
    .argument("<net.onnx>", "the ONNX file, with its weights inside")
    .requiredOption(
      "--speech <folder>",
      "recordings from which the network is scaled; if they are in folders speaker/session/file, with at least 5 speakers, they also calibrate it",
    )
    .requiredOption("--out <file>", "the model file to write, such as mine.vvm")
    .option("--name <name>", "name of the model; by default the name of the file")
    .option("--license <text>", "the license of the network", "not stated")
    .addOption(WORKERS)
    .option("--json", "print the result as JSON")
    .action(importModel);
  model
    .command("info")
    .description("show the contents of a model file")
    .argument("[model]", MODEL, "vivavoce-2")
    .option("--json", "print the result as JSON")
    .action(info);
  model
    .command("compare")
    .description("compare the errors of two models on the same recordings")
    .argument("<one>", MODEL)
    .argument("<other>", "the model to compare it with: a name or a file, as for the first")
    .requiredOption("--speech <folder-or-list>", "labeled recordings, as for `evaluate`")
    .option(
      "--resamples <n>",
      "bootstrap resamples of the speakers, for confidence intervals",
      wholeNumber(0, 100_000),
      1000,
    )
    .option("--no-cache", "do not cache embeddings")
    .addOption(WORKERS)
    .option("--json", "print the result as JSON")
    .action(compare);
}

async function importModel(path: string, options: ImportOptions): Promise<void> {
  const output = createOutput(options.json);
  const progress = createProgress(!output.json);
  const [{ importNetwork }, { modelFileBytes, sectionBytes }] = await Promise.all([
    import("../model-import/import-model.js"),
    import("../model-import/model-writer.js"),
  ]);
  const onnx = await bytesOf(path);
  await assertCanWrite(options.out);
  progress.start("windows", 1);
  const network = await importNetwork(onnx, recordingsIn(options.speech), (done, total) => {
    if (done === 1) progress.start("windows", total);
    progress.set(done);
  })
    .catch((error: unknown) => {
      if (error instanceof ImportRefusal) throw new CommandError(`${path}: ${error.message}`);
      throw error;
    })
    .finally(() => progress.stop());
  // Everything except the network comes from the shipped model of the same kind.
  const like = network.architecture === "resnet34-1" ? "vivavoce-2-accurate" : "vivavoce-2";
  const shipped = await readModelFile(await readModel(modelLocation(like).model));
  const description = {
    family: options.name ?? basename(options.out).replace(/\.vvm$/, ""),
    licence: options.license,
    trainingData: [],
  };
  const bytesWith = (calibration: object) => {
    const sections = new Map([
      ["network", network.section],
      ["calibration", sectionBytes(calibration)],
      ...["synthetic", "playback"].flatMap((name): [string, Uint8Array][] => {
        const section = shipped.sections.get(name);
        return section ? [[name, section.bytes]] : [];
      }),
    ]);
    return modelFileBytes(description, sections);
  };
  const { tensors: _, ...usual } = shipped.calibration!;
  const fitted = await calibrationFor(bytesWith(usual), options);
  const bytes = bytesWith("fit" in fitted ? calibrated(usual, fitted.fit) : usual);
  await writeOutput(options.out, bytes);
  const { revision } = await readModelFile(bytes);
  const { architecture, dimensions, windows, likeness } = network;
  const answer = { file: options.out, revision, architecture, dimensions, windows, likeness, calibration: fitted };
  output.answer(answer, () =>
    facts([
      ["model", options.out],
      ["revision", revision.slice(0, 16)],
      ["network", architecture],
      ["embedding", `${dimensions} numbers`],
      [
        "cosine to the network as published",
        `median ${likeness.median.toFixed(4)}, worst ${likeness.worst.toFixed(4)}`,
      ],
      ["scaled by", `${windows} windows of speech`],
      [
        "calibration",
        "fit" in fitted
          ? `fitted to ${fitted.fit.speakers} speakers`
          : `from ${like}, not fitted (${fitted.reason}); run "vivavoce calibrate recordings/ --model ${options.out}"`,
      ],
    ]),
  );
}

async function calibrationFor(model: Uint8Array, { speech, workers, json = false }: ImportOptions) {
  const folder = await mkdtemp(join(tmpdir(), "vivavoce-import-"));
  try {
    const file = join(folder, "imported.vvm");
    await writeFile(file, model);
    const set = await trialsOf(speech);
    refuseFewIn(set);
    const { evaluation } = await evaluated(
      set,
      { model: file, cache: false, json, ...(workers === undefined ? {} : { workers }) },
      { resamples: 0, calibration: null },
    );
    return { fit: fitCalibration(evaluation.trials, evaluation.copies) };
  } catch (error) {
    // The recordings do not allow it. An interruption ends the command.
    const refused =
      error instanceof CalibrationRefusal || (error instanceof CommandError && error.exitCode === ExitCode.usage);
    if (refused) return { reason: error.message };
    throw error;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Takes files from all over the folder, so that many speakers are included early. */
async function* recordingsIn(folder: string) {
  const files = (await readdir(folder, { recursive: true })).filter((path) => isAudioName(basename(path))).sort();
  const step = Math.max(1, Math.floor(files.length / spread));
  for (let first = 0; first < step; first++)
    for (let i = first; i < files.length; i += step) {
      const path = join(folder, files[i]!);
      yield mono(
        await bytesOfFile(path)
          .then(decode)
          .catch((error: unknown) => Promise.reject(faultOf(path, error))),
      );
    }
}

const spread = 16;

async function info(model: string, options: { readonly json?: boolean }): Promise<void> {
  const bytes = await readModel(modelLocation(model).model);
  const file = await readModelFile(bytes).catch((error: unknown) => {
    throw error instanceof ModelFileError ? new ModelFileError(error.code, `${model}: ${error.message}`) : error;
  });
  const { dimensions, windowSeconds, frontEnd } = file.network.description as {
    dimensions: number;
    windowSeconds: number;
    frontEnd: { window?: string };
  };
  const described = {
    name: file.family,
    revision: file.revision,
    architecture: file.architecture,
    dimensions,
    windowSeconds,
    frontEnd,
    calibrationRevision: file.calibrationRevision,
    sections: [...file.sections.values()].map(({ name, revision }) => ({ name, revision })),
    license: file.licence,
    trainingData: file.trainingData,
    bytes: bytes.length,
  };
  createOutput(options.json).answer(described, () =>
    facts([
      ["model", file.family],
      ["revision", file.revision],
      ["network", file.architecture],
      ["embedding", `${dimensions} numbers, windows of ${windowSeconds} s`],
      ["front end", `80 log-mel bins of 25 ms every 10 ms under a ${frontEnd.window ?? "povey"} window`],
      ["calibration", file.calibrationRevision],
      ["sections", described.sections.map(({ name }) => name).join(", ")],
      ["license", file.licence],
      ["trained on", file.trainingData.join(", ") || null],
      ["size", `${(bytes.length / 1e6).toFixed(1)} MB`],
    ]),
  );
}

async function compare(
  one: string,
  other: string,
  options: { speech: string; resamples: number; cache: boolean; workers?: number; json?: boolean },
): Promise<void> {
  const set = await trialsOf(options.speech);
  const figures = async (name: string) => {
    const { model } = modelLocation(name);
    const file = model instanceof URL || model!.startsWith("file:") ? fileURLToPath(model!) : model!;
    const { evaluation } = await evaluated(
      set,
      { ...options, model: file },
      { resamples: options.resamples, calibration: null },
    );
    const { summary, openSet, note } = evaluation;
    if (!summary)
      throw new CommandError(
        "the scored trials must include the same speaker and different speakers",
        unusableHint(evaluation),
      );
    return { summary, openSet, note };
  };
  const comparison = compareEvaluations(await figures(one), await figures(other));
  createOutput(options.json).answer({ one, other, ...comparison }, () => comparisonTable(comparison, [one, other]));
}
