import { join } from "node:path";
import type { Command } from "commander";
import { pcm16Wav } from "../audio/wav-writer.js";
import { Decision, DecisionReason, SessionType, TrainStatus } from "../contract/index.js";
import type { Operations } from "../contract/operations.js";
import { mix, noise, speak } from "../demo/voice.js";
import { makeFolders } from "../store/make-folders.js";
import { Voiceprints } from "../voiceprints.js";
import { findProfile, type Owner, upload } from "../workflow.js";
import { fraudster, person } from "./calls.js";
import { faultOfFile } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { withOperations } from "./operations.js";
import { createOutput, table, words } from "./output.js";
import { writeOutput } from "./output-file.js";
import { createProgress } from "./progress.js";
import { type PlaceOptions, withPlace } from "./shared-options.js";

const RATE_HZ = 8000;
const PHRASES = 3;

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

interface Row {
  readonly speaks: string;
  readonly check: string;
  readonly decision: string;
  readonly reason: string;
  readonly score: number | null;
  readonly risk: number | null;
  readonly asExpected: boolean;
}

/** Both workflows of the contract, then the other checks; by default on a separate store. */
async function demonstrate(options: PlaceOptions): Promise<void> {
  const output = createOutput(options.json);
  const progress = createProgress(!output.json);
  const place = { ...options, store: options.store ?? "memory", creates: true };
  await withOperations(place, async ({ operations }) => {
    const voices = new Voiceprints(operations, options);
    const enrolled: Awaited<ReturnType<typeof enrollment>>[] = [];
    const everybody = [
      ...PEOPLE.map((one) => ({ ...one, owner: person(one.name, "demo") })),
      { ...MALLORY, owner: fraudster(MALLORY.name, "demo") },
    ];
    progress.start("enrolling", everybody.length);
    for (const [i, { speaker, owner }] of everybody.entries()) {
      enrolled.push(await enrollment(voices, owner, speaker));
      progress.set(i + 1);
    }

    const rows: Row[] = [];
    const speakers = [...PEOPLE, MALLORY];
    progress.start("verifying", speakers.length * PEOPLE.length);
    for (const caller of speakers) {
      for (const claimed of PEOPLE) {
        rows.push(await verification(operations, options, claimed.name, caller));
        progress.set(rows.length);
      }
    }
    progress.start("watching", speakers.length);
    const watched = await watch(voices, speakers, (done) => progress.set(done));
    progress.stop();

    const all = [...rows, ...watched];
    output.answer({ enrolled, checks: all }, () => {
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
      const checks = table(
        ["speaker", "check", "decision", "reason", "score", "risk", "as expected"],
        all.map((row) => [
          row.speaks,
          row.check,
          words(row.decision),
          words(row.reason),
          row.score?.toFixed(3),
          row.risk,
          row.asExpected ? "yes" : "NO",
        ]),
      );
      const right = all.filter((row) => row.asExpected).length;
      return `${enrollments}\n${checks}\n${right} of ${all.length} checks gave the expected result.`;
    });
    if (enrolled.some((one) => one.training !== TrainStatus[TrainStatus.TRAINED]))
      process.exitCode = ExitCode.undecided;
  }).finally(() => progress.stop());
}

/** The enrollment workflow: profile, three phrases, training. */
async function enrollment(voices: Voiceprints, { kind, name, tag }: Owner, speaker: number) {
  const phrases = Array.from({ length: PHRASES }, (_, i) => phrase(speaker, i + 1));
  const enroll = kind === "person" ? "enroll" : "enrollFraudster";
  const { enrollStatus, trained, status, netSpeechSeconds } = await voices[enroll](name, phrases, { tag });
  const training = TrainStatus[trained ? TrainStatus.TRAINED : TrainStatus.FAILED]!;
  return { name, phrases: PHRASES, enrollStatus, training, profile: status, netSpeechSeconds };
}

/** The verification workflow: engagement, session, profile, status, check, decision of the session. */
async function verification(
  operations: Operations,
  place: PlaceOptions,
  claimed: string,
  caller: { readonly name: string; readonly speaker: number },
): Promise<Row> {
  const scope = { gkScopeId: { value: place.scope } };
  const { gkEngagementId } = await operations.startEngagement({ context: scope });
  const { gkSessionId } = await operations.startSession({
    context: { ...scope, gkEngagementId: gkEngagementId! },
    sessionType: SessionType.IVR,
    claimedPersonId: claimed,
  });
  const context = {
    ...scope,
    gkEngagementId: gkEngagementId!,
    gkSessionId: gkSessionId!,
    configsetId: place.configset,
  };
  const profile = (await findProfile(operations, place.scope, person(claimed, "demo")))!;
  const gkVoiceprintProfileId = { value: profile };
  await operations.getEnrollStatus({ context, gkVoiceprintProfileId });
  const { result } = await operations.verify({
    context,
    gkVoiceprintProfileId,
    audio: await upload(operations, context, { chunk: phrase(caller.speaker, PHRASES + 1) }),
  });
  const { result: session } = await operations.getSessionDecision({ context });
  await operations.stopSession({ context });
  await operations.stopEngagement({ context });
  const genuine = caller.name === claimed;
  return {
    speaks: caller.name,
    check: `is it ${claimed}?`,
    decision: Decision[session!.decision]!,
    reason: DecisionReason[session!.reason]!,
    score: result!.authenticationScore?.biometricScore ?? null,
    risk: result!.riskEngineResult?.risk ?? null,
    asExpected: (session!.decision === Decision.AUTHENTIC) === genuine,
  };
}

async function watch(
  voices: Voiceprints,
  callers: readonly { readonly name: string; readonly speaker: number }[],
  onProgress: (done: number) => void,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { name, speaker } of callers) {
    const spoken = phrase(speaker, PHRASES + 2, 12);
    const { decision, reason, score, risk } = await voices.watch(spoken, [MALLORY.name], { tag: "demo" });
    const asExpected = (decision === "FRAUD") === (name === MALLORY.name);
    rows.push({ speaks: name, check: "a known fraudster?", decision, reason, score, risk, asExpected });
    onProgress(rows.length);
  }
  return rows;
}
