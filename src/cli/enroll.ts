import { basename } from "node:path";
import type { Command } from "commander";
import {
  AudioValidity,
  EnrollReason,
  EnrollStatus,
  TrainReason,
  TrainStatus,
  VoiceprintProfileStatus,
} from "../contract/index.js";
import { ensureProfile, fraudster, inSession, person, processForEnrollment, remedy, upload } from "./calls.js";
import { ExitCode } from "./exit-code.js";
import { openOperations } from "./operations.js";
import { createOutput, table, words } from "./output.js";
import { createProgress } from "./progress.js";
import { type AudioOptions, mediaFormat, type PlaceOptions, withAudio, withPlace } from "./shared-options.js";

interface Options extends PlaceOptions, AudioOptions {
  readonly fraudster?: boolean;
  readonly tag: string;
  readonly train: boolean;
}

export function enrollCommand(program: Command): void {
  const command = program
    .command("enroll")
    .description("add recordings to somebody's voiceprint, and train it")
    .argument("<person>", "who speaks: any name or number of yours")
    .argument("<files...>", "WAV files; three phrases of a few seconds are enough")
    .option("--fraudster", "the voice of a known fraudster, for watchlists")
    .option("--tag <tag>", "which of the person's voiceprints", "")
    .option("--no-train", "add the recordings only");
  withAudio(withPlace(command)).action(enroll);
}

async function enroll(name: string, files: string[], options: Options): Promise<void> {
  const output = createOutput(options.json ?? false);
  const progress = createProgress(!output.json);
  const format = mediaFormat(options);
  const { operations, close } = await openOperations(options);
  try {
    const owner = options.fraudster ? fraudster(name, options.tag) : person(name, options.tag);
    await inSession(operations, options, async (context) => {
      // All are read before anything is kept: a wrong name among them leaves no half of an enrollment.
      const media = [];
      for (const file of files) media.push(await upload(operations, context, file, format));
      const profile = await ensureProfile(operations, context, owner);
      const gkVoiceprintProfileId = { value: profile };
      const segments = [];
      let status = EnrollStatus.UNSPECIFIED;
      progress.start("enrolling", files.length);
      for (const [i, file] of files.entries()) {
        const audio = await processForEnrollment(operations, context, media[i]!, options.channel);
        const { result } = await operations.enroll({
          context,
          gkVoiceprintProfileId,
          gkProcessedAudioId: audio.gkProcessedAudioId!,
        });
        status = result!.enrollStatus;
        segments.push({ file, audio, enrolled: result!.enrolled ?? false, reason: result!.reason });
        progress.set(i + 1);
      }
      progress.stop();

      const canTrain = status !== EnrollStatus.TRAIN_NOT_POSSIBLE && status !== EnrollStatus.UNSPECIFIED;
      const trained =
        options.train && canTrain ? (await operations.train({ context, gkVoiceprintProfileId })).result! : null;
      const used = new Map(
        trained?.enrollmentSegmentsDetails.map((segment) => [segment.gkProcessedAudioId?.value, segment]),
      );
      const rows = segments.map(({ file, audio, enrolled, reason }) => ({
        file,
        netSpeechSeconds: seconds(audio.audioDetails?.netAudio),
        snrDb: audio.audioDetails?.snrDb ?? null,
        validity: AudioValidity[audio.validity]!,
        enrolled,
        reason: EnrollReason[reason]!,
        usedForTraining: used.get(audio.gkProcessedAudioId?.value)?.usedForTrain ?? null,
        remedy: remedy(audio.validity),
      }));
      const answer = {
        person: name,
        profileId: profile,
        enrollStatus: EnrollStatus[status]!,
        segments: rows,
        training: trained && {
          status: TrainStatus[trained.trainStatus]!,
          reason: TrainReason[trained.reason]!,
          profile: VoiceprintProfileStatus[trained.status]!,
          printVersion: trained.voiceprintDetails?.printVersion ?? null,
          netSpeechSeconds: seconds(trained.totalNetAudio),
        },
      };
      output.answer(answer, () => {
        const list = table(
          ["file", "net speech", "SNR", "audio", "added", "used"],
          rows.map((row) => [
            basename(row.file),
            `${row.netSpeechSeconds.toFixed(1)} s`,
            row.snrDb === null ? null : `${row.snrDb.toFixed(0)} dB`,
            row.remedy ? `${words(row.validity)}: ${row.remedy}` : words(row.validity),
            row.enrolled ? "yes" : `no, ${words(row.reason)}`,
            row.usedForTraining === null ? null : row.usedForTraining ? "yes" : "no",
          ]),
        );
        const outcome = !trained
          ? options.train
            ? `${name} cannot be trained yet: ${words(EnrollStatus[status]!)}. Add more recordings.`
            : `${name}: ${words(EnrollStatus[status]!)}.`
          : trained.trainStatus === TrainStatus.TRAINED
            ? `${name} is enrolled: ${words(VoiceprintProfileStatus[trained.status]!)}, ${seconds(trained.totalNetAudio).toFixed(1)} s of speech, print version ${trained.voiceprintDetails?.printVersion}.`
            : `${name} was not trained: ${words(TrainReason[trained.reason]!)}.`;
        return `${list}\n${outcome}`;
      });
      if (options.train && trained?.trainStatus !== TrainStatus.TRAINED) process.exitCode = ExitCode.undecided;
    });
  } finally {
    progress.stop();
    await close();
  }
}

export function seconds(duration: { seconds: bigint; nanos: number } | undefined): number {
  return duration ? Number(duration.seconds) + duration.nanos / 1e9 : 0;
}
