import type { Command } from "commander";
import { openAnyRecording } from "../audio/file.js";
import { recordingOfSamples } from "../audio/index.js";
import type { Recording } from "../audio/port.js";
import { pcm16Wav } from "../audio/wav-writer.js";
import { AudioValidity } from "../contract/index.js";
import { speak } from "../demo/voice.js";
import type { Engine, VoiceAnalysis } from "../engine/port.js";
import { configurationSets } from "../voiceprint/configuration-set.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { channelSelector, inSession, secondsOf, upload } from "../workflow.js";
import { faultOf, recordingOf, remedy } from "./calls.js";
import { CommandError } from "./command-error.js";
import { openOperations } from "./operations.js";
import { createOutput, facts, type Output, words } from "./output.js";
import { createProgress } from "./progress.js";
import { type AudioOptions, mediaFormat, type PlaceOptions, withAudio, withPlace } from "./shared-options.js";

interface Options extends PlaceOptions, AudioOptions {}

/** The measures; those that a box does not report are absent. */
interface Measured {
  readonly rateHz: number;
  readonly channels: number;
  readonly grossSeconds: number;
  readonly netSpeechSeconds: number;
  readonly snrDb: number | null;
  readonly speechLevelDb: number | null;
  readonly saturatedPerMinute: number;
  readonly saturationRatio?: number;
  readonly bandwidthHz?: number | null;
  readonly speakers: number;
  readonly voiceClass: number | null;
  readonly model: string;
  readonly verdicts: readonly { readonly purpose: "enroll" | "verify"; readonly validity: AudioValidity }[];
}

export function measureCommand(program: Command): void {
  withAudio(
    withPlace(
      program
        .command("measure")
        .description("measure speech, noise, level and clipping of a recording, and say whether it is good enough")
        .argument(
          "[file]",
          "WAV file (MP3, MP4, Opus and others if ffmpeg is installed); without one, a voice is synthesized",
        ),
    ),
  ).action(measure);
}

async function measure(file: string | undefined, options: Options): Promise<void> {
  const output = createOutput(options.json ?? false);
  const channel = options.channel ?? 0;
  const measured = await (options.url ? onBox(file, options) : here(file, options, output)).catch((error: unknown) => {
    throw file === undefined ? error : faultOf(file, error);
  });
  const { verdicts, ...figures } = measured;
  const answer = {
    file: file ?? null,
    channel,
    ...figures,
    verdict: Object.fromEntries(verdicts.map(({ purpose, validity }) => [purpose, AudioValidity[validity]!])),
  };
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
      ...verdicts.map(({ purpose, validity }) => [`good enough to ${purpose}`, verdictText(validity)] as const),
    ]),
  );
}

async function here(file: string | undefined, options: Options, output: Output): Promise<Measured> {
  const set = configurationSets().get(options.configset);
  if (!set) throw new CommandError(`unknown configuration set ${options.configset}`);
  const opened = file === undefined ? null : await openAnyRecording(file, rawOf(options));
  const recording = opened ?? synthesized();
  const progress = createProgress(!output.json);
  const { openEngine } = await import("../engine/index.js");
  const engine = await openEngine({ workers: 1 });
  try {
    const channel = options.channel ?? 0;
    if (channel > recording.channels)
      throw new CommandError(`--channel must be 0 to ${recording.channels}, got ${channel}`);
    const { measures, speakers, voiceClass, revision } = await analyzed(engine, recording, channel, progress);
    return {
      rateHz: recording.rateHz,
      channels: recording.channels,
      grossSeconds: measures.grossSeconds,
      netSpeechSeconds: measures.netSpeechSeconds,
      snrDb: measures.snrDb,
      speechLevelDb: measures.speechLevelDb,
      saturatedPerMinute: measures.saturatedPerMinute,
      saturationRatio: measures.saturationRatio,
      bandwidthHz: measures.bandwidthHz,
      speakers,
      voiceClass,
      model: revision,
      verdicts: (["enroll", "verify"] as const).map((purpose) => ({
        purpose,
        validity: audioValidity({ ...measures, speakers }, purpose, set),
      })),
    };
  } finally {
    progress.stop();
    opened?.close();
    await engine.close();
  }
}

/** ProcessAudio measures the audio: once as for a check, once as for an enrollment. */
async function onBox(file: string | undefined, options: Options): Promise<Measured> {
  const recording =
    file === undefined
      ? { chunk: pcm16Wav(speak(SYNTHESIZED), SYNTHESIZED.rateHz) }
      : await recordingOf(file, mediaFormat(options));
  const { operations, close } = await openOperations(options);
  try {
    return await inSession(operations, options, async (context) => {
      const input = await upload(operations, context, recording);
      const process = async (isForEnrollment: boolean) =>
        (
          await operations.processAudio({
            context,
            input,
            isForEnrollment,
            ...channelSelector(options.channel),
          })
        ).result!;
      const [whole, forEnrollment] = [await process(false), await process(true)];
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
        verdicts: [
          { purpose: "enroll", validity: forEnrollment.validity },
          { purpose: "verify", validity: whole.validity },
        ],
      };
    });
  } finally {
    await close();
  }
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

/** Streams, so that hours of audio fit in memory. */
async function analyzed(
  engine: Engine,
  recording: Recording,
  channel: number,
  progress: ReturnType<typeof createProgress>,
): Promise<VoiceAnalysis> {
  const stream = await engine.stream(recording.rateHz);
  try {
    progress.start("measuring", Math.ceil(recording.frames / recording.rateHz));
    let heard = 0;
    for (const chunk of recording.read(channel)) {
      heard += chunk.length;
      await stream.push(chunk);
      progress.set(Math.floor(heard / recording.rateHz));
    }
    progress.stop();
    return await stream.analysis();
  } finally {
    await stream.close();
  }
}
