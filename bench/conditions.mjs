/** Conditions that the benchmarks apply to recordings before testing. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import wavefile from "wavefile";
import { readRecording } from "../dist/audio/read-recording.js";
import { pcm16Wav } from "../dist/audio/wav-writer.js";
import { mix, noise } from "../dist/demo/voice.js";
import { mono } from "../dist/evaluate/evaluate.js";

const run = promisify(execFile);
const TELEPHONE_HZ = 8000;

/**
 * Companding of the telephone network, at 8 kHz.
 * @param {"alaw" | "mulaw"} law
 * @returns {import("../dist/evaluate/evaluate.js").Condition}
 */
export const g711 = (law) => ({
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

/**
 * The codec of mobile networks, by ffmpeg; `null` if it is not installed.
 * @returns {Promise<import("../dist/evaluate/evaluate.js").Condition | null>}
 */
export async function gsm() {
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

/**
 * Pink noise over the whole recording; always the same for the same file.
 * @param {number} snrDb
 * @returns {import("../dist/evaluate/evaluate.js").Condition}
 */
export const noisy = (snrDb) => ({
  name: `noise ${snrDb} dB`,
  apply({ samples, rateHz }, file) {
    const seed = createHash("sha256").update(file.split("/").slice(-3).join("/")).digest().readUInt32LE(0);
    const mixed = mix(samples, noise(samples.length / rateHz + 0.1, rateHz, seed, -40, "pink"), snrDb);
    return { samples: mixed.map((x) => Math.max(-1, Math.min(1, x))), rateHz };
  },
});

/**
 * Only the first seconds.
 * @param {number} seconds
 * @returns {import("../dist/evaluate/evaluate.js").Condition}
 */
export const cut = (seconds) => ({
  name: `cut to ${seconds} s`,
  apply: ({ samples, rateHz }) => ({ samples: samples.slice(0, Math.round(seconds * rateHz)), rateHz }),
});
