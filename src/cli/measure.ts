import type { Command } from "commander";
import { openRecording } from "../audio/file.js";
import { recordingOfSamples } from "../audio/index.js";
import type { Recording } from "../audio/port.js";
import { AudioValidity } from "../contract/index.js";
import { speak } from "../demo/voice.js";
import type { Engine, VoiceAnalysis } from "../engine/port.js";
import { configurationSets } from "../voiceprint/configuration-set.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { remedy } from "./calls.js";
import { CommandError } from "./command-error.js";
import { createOutput, facts, words } from "./output.js";
import { createProgress } from "./progress.js";
import { type AudioOptions, mediaFormat, withAudio } from "./shared-options.js";

interface Options extends AudioOptions {
  readonly json?: boolean;
  readonly configset: string;
}

export function measureCommand(program: Command): void {
  withAudio(
    program
      .command("measure")
      .description("measure a recording: speech, noise, level, clipping, and whether it is good enough")
      .argument("[file]", "WAV file; without one a voice is synthesized")
      .option("--configset <id>", "configuration set that judges", "ivr-text-dependent")
      .option("--json", "answer as JSON"),
  ).action(measure);
}

async function measure(file: string | undefined, options: Options): Promise<void> {
  const output = createOutput(options.json ?? false);
  const set = configurationSets().get(options.configset);
  if (!set) throw new CommandError(`no configuration set ${options.configset}`);
  const opened = file === undefined ? null : openRecording(file, rawOf(options));
  const recording = opened ?? synthesized();
  const progress = createProgress(!output.json);
  const { openEngine } = await import("../engine/index.js");
  const engine = await openEngine({ workers: 1 });
  try {
    const channel = options.channel ?? 0;
    if (channel > recording.channels)
      throw new CommandError(`--channel ${channel}: the recording has ${recording.channels}`);
    const analysis = await analyzed(engine, recording, channel, progress);
    const { measures } = analysis;
    const verdicts = (["enroll", "verify"] as const).map((purpose) => ({
      purpose,
      validity: audioValidity({ ...measures, speakers: analysis.speakers }, purpose, set),
    }));
    const answer = {
      file: file ?? null,
      rateHz: recording.rateHz,
      channels: recording.channels,
      channel,
      grossSeconds: measures.grossSeconds,
      netSpeechSeconds: measures.netSpeechSeconds,
      snrDb: measures.snrDb,
      speechLevelDb: measures.speechLevelDb,
      saturatedPerMinute: measures.saturatedPerMinute,
      saturationRatio: measures.saturationRatio,
      bandwidthHz: measures.bandwidthHz,
      speakers: analysis.speakers,
      voiceClass: analysis.voiceClass,
      model: analysis.revision,
      verdict: Object.fromEntries(verdicts.map(({ purpose, validity }) => [purpose, AudioValidity[validity]!])),
    };
    output.answer(answer, () =>
      facts([
        ["recording", file ?? "synthesized voice (give a WAV file to measure yours)"],
        ["rate", `${recording.rateHz} Hz`],
        [
          "channels",
          recording.channels === 1 ? 1 : `${recording.channels} (${channel === 0 ? "mixed" : `channel ${channel}`})`,
        ],
        ["gross", `${measures.grossSeconds.toFixed(2)} s`],
        ["net speech", `${measures.netSpeechSeconds.toFixed(2)} s`],
        ["SNR", unit(measures.snrDb, "dB")],
        ["speech level", unit(measures.speechLevelDb, "dBov")],
        ["saturation", `${measures.saturatedPerMinute.toFixed(0)} samples a minute`],
        ["bandwidth", measures.bandwidthHz === null ? null : `${measures.bandwidthHz.toFixed(0)} Hz`],
        ["speakers", analysis.speakers > 1 ? "several" : analysis.speakers],
        ["voice class", analysis.voiceClass?.toFixed(0)],
        ...verdicts.map(({ purpose, validity }) => [`fit to ${purpose}`, verdictText(validity)] as const),
      ]),
    );
  } finally {
    progress.stop();
    opened?.close();
    await engine.close();
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

function synthesized(): Recording {
  const rateHz = 16_000;
  return recordingOfSamples(speak({ speaker: 1, seconds: 8, rateHz }), rateHz);
}

/** Streams, so that hours of audio fit. */
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
