import { join } from "node:path";
import type { Command } from "commander";
import { pcm16Wav } from "../audio/wav-writer.js";
import { TrainStatus } from "../contract/index.js";
import { mix, noise, speak } from "../demo/voice.js";
import { makeFolders } from "../store/make-folders.js";
import { type Answer, Voiceprints } from "../voiceprints.js";
import { faultOfFile } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { withOperations } from "./operations.js";
import { createOutput, table, words } from "./output.js";
import { writeOutput } from "./output-file.js";
import { createProgress } from "./progress.js";
import { type PlaceOptions, withPlace } from "./shared-options.js";

const RATE_HZ = 8000;
const PHRASES = 3;
/** Of all prints of the demonstration. */
const tag = "demo";

/** The people of the demonstration, each with a speaker number of the synthesizer. */
const PEOPLE = [
  { name: "ada", speaker: 3 },
  { name: "bob", speaker: 20 },
  { name: "carol", speaker: 30 },
] as const;
const MALLORY = { name: "mallory", speaker: 31 } as const;

const spoken = new Map<string, Uint8Array>();

/** A phrase over the telephone: 8 kHz, with a little noise. */
function phrase(speaker: number, take: number, seconds = 5): Uint8Array {
  const key = `${speaker} ${take} ${seconds}`;
  const known = spoken.get(key);
  if (known) return known;
  const speech = speak({ speaker, seconds, rateHz: RATE_HZ, seed: take });
  const made = pcm16Wav(mix(speech, noise(seconds, RATE_HZ, speaker * 100 + take), 25), RATE_HZ);
  spoken.set(key, made);
  return made;
}

export function demoCommand(program: Command): void {
  withPlace(
    program
      .command("demo")
      .description("enroll and verify synthesized voices, end to end")
      .option("--wav <folder>", "only write the voices as WAV files, for trying other commands"),
  ).action((options: PlaceOptions & { wav?: string }) =>
    options.wav ? writeVoices(options.wav, options.json) : demonstrate(options),
  );
}

async function writeVoices(folder: string, json?: boolean): Promise<void> {
  await makeFolders(folder).catch((error: unknown) => Promise.reject(faultOfFile(folder, error)));
  const files: string[] = [];
  for (const { name, speaker } of [...PEOPLE, MALLORY]) {
    for (let take = 1; take <= PHRASES + 1; take++) {
      const file = join(folder, `${name}-${take}.wav`);
      await writeOutput(file, phrase(speaker, take));
      files.push(file);
    }
  }
  createOutput(json).answer(
    { files },
    () =>
      `${files.length} recordings in ${folder}: ${[...PEOPLE, MALLORY].map(({ name }) => `${name}-1.wav…${name}-${PHRASES + 1}.wav`).join(", ")}`,
  );
}

/** Enrollment, then every check of every voice; by default on a separate store. */
async function demonstrate(options: PlaceOptions): Promise<void> {
  const output = createOutput(options.json);
  const progress = createProgress(!output.json);
  const place = { ...options, store: options.store ?? "memory", creates: true };
  await withOperations(place, async ({ operations }) => {
    const voices = new Voiceprints(operations, options);
    const speakers = [...PEOPLE, MALLORY];
    const enrolled: Awaited<ReturnType<typeof enrollment>>[] = [];
    progress.start("enrolling", speakers.length);
    for (const speaker of speakers) {
      enrolled.push(await enrollment(voices, speaker));
      progress.set(enrolled.length);
    }
    const checks: ReturnType<typeof rowOf>[] = [];
    progress.start("checking", speakers.length * (PEOPLE.length + 1));
    for (const { name, speaker } of speakers)
      for (const claimed of PEOPLE) {
        const answer = await voices.verify(claimed.name, phrase(speaker, PHRASES + 1), { tag });
        const asExpected = (answer.decision === "AUTHENTIC") === (name === claimed.name);
        checks.push(rowOf(name, `is it ${claimed.name}?`, answer, asExpected));
        progress.set(checks.length);
      }
    for (const { name, speaker } of speakers) {
      const answer = await voices.watch(phrase(speaker, PHRASES + 2, 12), [MALLORY.name], { tag });
      const asExpected = (answer.decision === "FRAUD") === (name === MALLORY.name);
      checks.push(rowOf(name, "a known fraudster?", answer, asExpected));
      progress.set(checks.length);
    }
    progress.stop();

    output.answer({ enrolled, checks }, () => {
      const enrollments = table(
        ["voice", "phrases", "status", "net speech", "profile"],
        enrolled.map((one) => [
          one.name,
          one.phrases,
          words(one.enrollStatus),
          `${one.netSpeechSeconds.toFixed(1)} s`,
          words(one.profile),
        ]),
      );
      const results = table(
        ["speaker", "check", "decision", "reason", "score", "risk", "as expected"],
        checks.map((row) => [
          row.speaks,
          row.check,
          words(row.decision),
          words(row.reason),
          row.score?.toFixed(3),
          row.risk,
          row.asExpected ? "yes" : "NO",
        ]),
      );
      const right = checks.filter((row) => row.asExpected).length;
      return `${enrollments}\n${results}\n${right} of ${checks.length} checks gave the expected result.`;
    });
    if (enrolled.some((one) => one.training !== TrainStatus[TrainStatus.TRAINED]))
      process.exitCode = ExitCode.undecided;
  }).finally(() => progress.stop());
}

/** Three phrases and training. */
async function enrollment(voices: Voiceprints, { name, speaker }: typeof MALLORY | (typeof PEOPLE)[number]) {
  const phrases = Array.from({ length: PHRASES }, (_, i) => phrase(speaker, i + 1));
  const enroll = name === MALLORY.name ? "enrollFraudster" : "enroll";
  const { enrollStatus, trained, status, netSpeechSeconds } = await voices[enroll](name, phrases, { tag });
  const training = TrainStatus[trained ? TrainStatus.TRAINED : TrainStatus.FAILED]!;
  return { name, phrases: PHRASES, enrollStatus, training, profile: status, netSpeechSeconds };
}

const rowOf = (
  speaks: string,
  check: string,
  { decision, reason, score, risk }: Answer<unknown>,
  asExpected: boolean,
) => ({ speaks, check, decision, reason, score, risk, asExpected });
