/**
 * Conditions that the benchmarks apply to recordings before testing. Not published: wavefile, which encodes G.711 and resamples to 8 kHz,
 * is not a dependency of the installed package.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import wavefile from "wavefile";
import { readRecording } from "../audio/read-recording.js";
import { pcm16Wav } from "../audio/wav-writer.js";
import { mix, noise } from "../demo/voice.js";
import { type Condition, mono } from "./evaluate.js";

const run = promisify(execFile);
const TELEPHONE_HZ = 8000;

/** Companding of the telephone network, at 8 kHz. */
export const g711 = (law: "alaw" | "mulaw"): Condition => ({
  name: law === "alaw" ? "G.711 A-law" : "G.711 µ-law",
  apply(pcm) {
    const file = new wavefile.WaveFile(pcm16Wav(pcm.samples, pcm.rateHz));
    if (pcm.rateHz !== TELEPHONE_HZ) file.toSampleRate(TELEPHONE_HZ, { method: "sinc", LPF: true });
    if (law === "alaw") {
      file.toALaw();
      file.fromALaw();
    } else {
      file.toMuLaw();
      file.fromMuLaw();
    }
    return mono(readRecording(file.toBuffer()));
  },
});

/** The codec of mobile networks, by ffmpeg; `null` if it is not installed. */
export async function gsm(): Promise<Condition | null> {
  const codecs = await run("ffmpeg", ["-hide_banner", "-encoders"]).catch(() => ({ stdout: "" }));
  if (!/\blibgsm\b/.test(codecs.stdout)) return null;
  return {
    name: "GSM 06.10",
    async apply(pcm) {
      const folder = await mkdtemp(join(tmpdir(), "vivavoce-gsm-"));
      try {
        const [from, coded, to] = [join(folder, "from.wav"), join(folder, "coded.gsm"), join(folder, "to.wav")];
        await writeFile(from, pcm16Wav(pcm.samples, pcm.rateHz));
        const quiet = ["-hide_banner", "-loglevel", "error", "-y"];
        const encoder = `-ar ${TELEPHONE_HZ} -ac 1 -c:a libgsm -f gsm`.split(" ");
        await run("ffmpeg", [...quiet, "-i", from, ...encoder, coded]);
        await run("ffmpeg", [...quiet, "-f", "gsm", "-i", coded, "-c:a", "pcm_s16le", to]);
        return mono(readRecording(await readFile(to)));
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  };
}

/** Pink noise over the whole recording; always the same for the same file. */
export const noisy = (snrDb: number): Condition => ({
  name: `noise ${snrDb} dB`,
  apply({ samples, rateHz }, file) {
    const seed = createHash("sha256").update(file.split("/").slice(-3).join("/")).digest().readUInt32LE(0);
    const mixed = mix(samples, noise(samples.length / rateHz + 0.1, rateHz, seed, -40, "pink"), snrDb);
    return { samples: mixed.map((x) => Math.max(-1, Math.min(1, x))), rateHz };
  },
});

/** Only the first seconds. */
export const cut = (seconds: number): Condition => ({
  name: `cut to ${seconds} s`,
  apply: ({ samples, rateHz }) => ({ samples: samples.slice(0, Math.round(seconds * rateHz)), rateHz }),
});
