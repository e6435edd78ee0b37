import type { Command } from "commander";
import { openAnyRecording } from "../audio/file.js";
import { AudioError, recordingOfSamples } from "../audio/index.js";
import type { Recording } from "../audio/port.js";
import { pcm16Wav } from "../audio/wav-writer.js";
import { secondsOf } from "../contract/duration.js";
import { AudioValidity } from "../contract/index.js";
import { speak } from "../demo/voice.js";
import type { Engine, Measures, VoiceAnalysis } from "../engine/port.js";
import { loadConfig } from "../server/config.js";
import { modelLocation } from "../server/model-location.js";
import { configurationSets } from "../voiceprint/configuration-set.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { channelSelector, inSession, upload } from "../workflow.js";
import { faultOf, recordingOf, remedy } from "./calls.js";
import { CommandError } from "./command-error.js";
import { withOperations } from "./operations.js";
import { createOutput, facts, type Output, words } from "./output.js";
import { createProgress } from "./progress.js";
import { type AudioOptions, mediaFormat, type PlaceOptions, withAudio, withPlace } from "./shared-options.js";

interface Options extends PlaceOptions, AudioOptions {}

/** Measures that a box does not report. */
type Unreported = "saturationRatio" | "bandwidthHz";

interface Measured extends Omit<Measures, Unreported>, Partial<Pick<Measures, Unreported>> {
  readonly channels: number;
  readonly speakers: number;
  readonly voiceClass: number | null;
  readonly model: string;
  readonly verdicts: Readonly<Record<"enroll" | "verify", AudioValidity>>;
}

export function measureCommand(program: Command): void {
  withAudio(
    withPlace(
      program
        .command("measure")
        .description("measure speech, noise, level and clipping of a recording, and say whether it is good enough")
        .argument(
          "[file]",
          "WAV file (MP3, MP4, Opus and others if ffmpeg is installed); without one, a synthesized voice is measured",
        ),
    ),
  ).action(measure);
}

async function measure(file: string | undefined, options: Options): Promise<void> {
  const output = createOutput(options.json);
  const channel = options.channel ?? 0;
  const measured = await (options.url ? onBox(file, options) : here(file, options, output)).catch((error: unknown) => {
    throw file !== undefined && error instanceof AudioError ? faultOf(file, error) : error;
  });
  const { verdicts, ...figures } = measured;
  const verdict = { enroll: AudioValidity[verdicts.enroll], verify: AudioValidity[verdicts.verify] };
  const answer = { file: file ?? null, channel, ...figures, verdict };
  output.answer(answer, () =>
    facts([
      ["recording", file ?? "synthesized voice (give a WAV file to measure your own)"],
      ["rate", `${measured.rateHz} Hz`],
      [
        "channels",
        measured.channels === 1 ? 1 : `${measured.channels} (${channel === 0 ? "mixed" : `channel ${channel}`})`,
      ],
      ["gross", `${measured.grossSeconds.toFixed(2)} s`],
      ["net speech", `${measured.netSpeechSeconds.toFixed(2)} s`],
      ["SNR", unit(measured.snrDb, "dB")],
      ["speech level", unit(measured.speechLevelDb, "dBov")],
      ["saturation", `${measured.saturatedPerMinute.toFixed(0)} samples a minute`],
      ...(measured.bandwidthHz === undefined
        ? []
        : [["bandwidth", measured.bandwidthHz === null ? null : `${measured.bandwidthHz.toFixed(0)} Hz`] as const]),
      ["speakers", measured.speakers > 1 ? "several" : measured.speakers],
      ["voice class", measured.voiceClass?.toFixed(0)],
      ["good enough to enroll", verdictText(verdicts.enroll)],
      ["good enough to verify", verdictText(verdicts.verify)],
    ]),
  );
}

async function here(file: string | undefined, options: Options, output: Output): Promise<Measured> {
  const { model, calibration = null, configsets } = loadConfig();
  const sets = configurationSets(configsets);
  const set = sets.get(options.configset);
  if (!set)
    throw new CommandError(
      `unknown configuration set "${options.configset}"; use one of ${[...sets.keys()].join(", ")}`,
    );
  const opened = file === undefined ? null : await opening(file, options);
  const recording = opened ?? synthesized();
  const progress = createProgress(!output.json);
  const { openEngine } = await import("../engine/index.js");
  const engine = await openEngine({ workers: 1, calibration, ...modelLocation(model) });
  try {
    const channel = options.channel ?? 0;
    if (channel > recording.channels)
      throw new CommandError(`--channel must be 0 to ${recording.channels}, got ${channel}`);
    const whole = await analyzed(engine, recording, channel, progress);
    const { measures, speakers, voiceClass, revision } = whole;
    // Enroll stops reading at this much speech, so what follows does not count against the recording.
    const most = set.maxNetAudioForEnroll;
    const used = measures.netSpeechSeconds > most ? await analyzed(engine, recording, channel, progress, most) : whole;
    const verdicts = {
      enroll: audioValidity({ ...used.measures, speakers: used.speakers }, "enroll", set),
      verify: audioValidity({ ...measures, speakers }, "verify", set),
    };
    const { rateHz, channels } = recording;
    return { ...measures, rateHz, channels, speakers, voiceClass, model: revision, verdicts };
  } finally {
    progress.stop();
    opened?.close();
    await engine.close();
  }
}

/** The caller names the file in errors of its audio. */
const opening = (file: string, options: Options) =>
  openAnyRecording(file, rawOf(options)).catch((error: unknown) =>
    Promise.reject(error instanceof AudioError ? error : faultOf(file, error)),
  );

/** ProcessAudio measures the audio: once as for a check, once as for an enrollment. */
async function onBox(file: string | undefined, options: Options): Promise<Measured> {
  const recording =
    file === undefined
      ? { chunk: pcm16Wav(speak(SYNTHESIZED), SYNTHESIZED.rateHz) }
      : await recordingOf(file, mediaFormat(options));
  return withOperations(options, ({ operations }) =>
    inSession(operations, options, async (context) => {
      const input = await upload(operations, context, recording);
      const request = { context, input, ...channelSelector(options.channel) };
      const whole = (await operations.processAudio({ ...request, isForEnrollment: false })).result!;
      const forEnrollment = (await operations.processAudio({ ...request, isForEnrollment: true })).result!;
      const details = whole.audioDetails;
      return {
        rateHz: details?.mediaSamplingRateHz ?? 0,
        channels: details?.mediaNumberOfChannels ?? 0,
        grossSeconds: secondsOf(details?.grossAudio),
        netSpeechSeconds: secondsOf(details?.netAudio),
        snrDb: details?.snrDb ?? null,
        speechLevelDb: details?.speechLevel ?? null,
        saturatedPerMinute: details?.saturationLevel ?? 0,
        speakers: details?.numberOfDetectedSpeakers ?? 0,
        voiceClass: whole.voiceClassScore ?? null,
        model: whole.gkCalibrationModelRevisionId?.value ?? "",
        verdicts: { enroll: forEnrollment.validity, verify: whole.validity },
      };
    }),
  );
}

const unit = (value: number | null, name: string) => (value === null ? null : `${value.toFixed(1)} ${name}`);

function verdictText(validity: AudioValidity): string {
  const advice = remedy(validity);
  return validity === AudioValidity.AUDIO_OK
    ? "yes"
    : `no, ${words(AudioValidity[validity]!)}${advice ? `: ${advice}` : ""}`;
}

function rawOf(options: AudioOptions) {
  const format = mediaFormat(options);
  return format && { encoding: format.encoding, rateHz: format.rate, channels: format.channels };
}

const SYNTHESIZED = { speaker: 1, seconds: 8, rateHz: 16_000 };

const synthesized = (): Recording => recordingOfSamples(speak(SYNTHESIZED), SYNTHESIZED.rateHz);

/** Streams, so that hours of audio fit in memory. 0: all of it. */
async function analyzed(
  engine: Engine,
  recording: Recording,
  channel: number,
  progress: ReturnType<typeof createProgress>,
  maxNetSpeechSeconds = 0,
): Promise<VoiceAnalysis> {
  const stream = await engine.stream(recording.rateHz, { maxNetSpeechSeconds });
  try {
    progress.start("measuring", Math.ceil(recording.frames / recording.rateHz));
    let samples = 0;
    for (const chunk of recording.read(channel)) {
      samples += chunk.length;
      await stream.push(chunk);
      progress.set(Math.floor(samples / recording.rateHz));
      if (stream.ended) break;
    }
    progress.stop();
    return await stream.analysis();
  } finally {
    await stream.close();
  }
}
