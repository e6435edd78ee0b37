import { basename } from "node:path";
import type { Command } from "commander";
import { AudioValidity, TrainStatus } from "../contract/index.js";
import { type Audio, type Enrollment, Voiceprints, type VoiceprintsProgress } from "../voiceprints.js";
import { bytesOf, remedy } from "./calls.js";
import { ExitCode } from "./exit-code.js";
import { withOperations } from "./operations.js";
import { createOutput, table, words } from "./output.js";
import { createProgress } from "./progress.js";
import { type AudioOptions, mediaFormat, type PlaceOptions, withAudio, withPlace } from "./shared-options.js";

interface Options extends PlaceOptions, AudioOptions {
  readonly fraudster?: boolean;
  readonly tag?: string;
  readonly train: boolean;
}

export function enrollCommand(program: Command): void {
  const command = program
    .command("enroll")
    .description("add recordings to a person's voiceprint and train it")
    .argument("<person>", "name of the speaker: any name or number you choose")
    .argument(
      "<files...>",
      "WAV files (MP3, MP4, Opus and others if ffmpeg is installed); three phrases of a few seconds are enough",
    )
    .option("--fraudster", "enroll a known fraudster instead, for watchlists")
    .option("--tag <tag>", "tag of the voiceprint, if the person has several")
    .option("--no-train", "add the recordings without training");
  withAudio(withPlace(command)).action(enroll);
}

async function enroll(name: string, files: string[], options: Options): Promise<void> {
  const output = createOutput(options.json);
  const progress = createProgress(!output.json);
  const format = mediaFormat(options);
  // Reads all files before a store is opened, so that a wrong file name does not leave half an enrollment, or an empty store.
  const recordings: Audio[] = [];
  for (const file of files) {
    const bytes = await bytesOf(file);
    recordings.push(
      format ? { ...format, bytes, name: file, rateHz: format.rate } : new File([bytes as BlobPart], file),
    );
  }
  await withOperations({ ...options, creates: true }, async ({ operations }) => {
    const voices = new Voiceprints(operations, options);
    progress.start("enrolling", files.length);
    const choices = {
      tag: options.tag ?? "",
      train: options.train,
      ...(options.channel === undefined ? {} : { channel: options.channel }),
      onProgress(at: VoiceprintsProgress) {
        if (at.step === "segment") progress.set(at.index + 1);
      },
    };
    const enrollment = await (options.fraudster
      ? voices.enrollFraudster(name, recordings, choices)
      : voices.enroll(name, recordings, choices));
    progress.stop();

    const { enrollStatus, profileId, netSpeechSeconds, printVersion, status, reason, trained } = enrollment;
    const { missingSpeechSeconds, missingRecordings } = enrollment;
    const rows = enrollment.segments.map((segment, i) => ({
      file: files[i]!,
      ...segment,
      remedy: remedy(AudioValidity[segment.validity]),
    }));
    const wasReady = options.train && reason !== "NOT_READY_TO_TRAIN";
    const answer = {
      person: name,
      profileId,
      enrollStatus,
      missingSpeechSeconds,
      missingRecordings,
      segments: rows,
      training: wasReady
        ? {
            status: TrainStatus[trained ? TrainStatus.TRAINED : TrainStatus.FAILED]!,
            reason,
            profile: status,
            printVersion: printVersion || null,
            netSpeechSeconds,
          }
        : null,
    };
    output.answer(answer, () => {
      const list = table(
        ["file", "net speech", "SNR", "audio", "added", "used"],
        rows.map((row) => [
          basename(row.file),
          `${row.netSpeechSeconds.toFixed(1)} s`,
          row.snrDb === null ? null : `${row.snrDb.toFixed(0)} dB`,
          row.remedy ? `${words(row.validity)}: ${row.remedy}` : words(row.validity),
          row.enrolled ? "yes" : refusal(row),
          row.usedForTraining === null ? null : row.usedForTraining ? "yes" : "no",
        ]),
      );
      return `${list}\n${outcome(name, enrollment, options.train)}`;
    });
    if (options.train && !trained) process.exitCode = ExitCode.undecided;
  }).finally(() => progress.stop());
}

/** Why a recording was not added; that of bad audio is in the column before. */
function refusal({ validity, reason }: Enrollment["segments"][number]): string {
  if (validity !== "AUDIO_OK") return "no";
  return `no, ${words(reason === "UNSPECIFIED" ? "FULL" : reason)}`;
}

function outcome(name: string, enrollment: Enrollment, train: boolean): string {
  const { enrollStatus, netSpeechSeconds, printVersion, reason, status, trained } = enrollment;
  if (!train) return `${name}: ${words(enrollStatus)}.`;
  if (trained)
    return `${name} is enrolled from ${netSpeechSeconds.toFixed(1)} s of speech (${words(status)}, print version ${printVersion}).`;
  if (reason === "NOT_READY_TO_TRAIN" && printVersion > 0)
    return [
      `${name} was not trained again: ${missing(enrollment)} Recordings that another model processed do not count.`,
      `The voiceprint is still that of print version ${printVersion}.`,
      ...(status === "NOT_TRAINED" ? ["The model here cannot use it: enroll more recordings."] : []),
    ].join(" ");
  if (reason === "NOT_READY_TO_TRAIN") return `${name} cannot be trained yet: ${missing(enrollment)}`;
  return `${name} was not trained: ${words(reason)}.`;
}

function missing({ missingSpeechSeconds, missingRecordings }: Enrollment): string {
  const speech = missingSpeechSeconds ? `${missingSpeechSeconds.toFixed(1)} s of speech` : "";
  const recordings = missingRecordings ? `${missingRecordings} recording${missingRecordings === 1 ? "" : "s"}` : "";
  return `${[speech, recordings].filter(Boolean).join(" and ") || "more speech"} still missing.`;
}
