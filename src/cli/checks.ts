import type { Command } from "commander";
import {
  Decision,
  DecisionReason,
  type DetectKnownFraudstersResult,
  type IdentifyResult,
  OwnerType,
  type VerifyResult,
} from "../contract/index.js";
import type { Operations } from "../contract/operations.js";
import { channelSelector, inSession, type Media, type SessionContext, secondsOf, upload } from "../workflow.js";
import { person, profileOf, recordingOf } from "./calls.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { openOperations } from "./operations.js";
import { createOutput, facts, words } from "./output.js";
import { profilesIn } from "./people.js";
import { type AudioOptions, mediaFormat, type PlaceOptions, withAudio, withPlace } from "./shared-options.js";

export interface CheckOptions extends PlaceOptions, AudioOptions {
  readonly ignoreCheckpoints?: boolean;
}

export function withCheck(command: Command): Command {
  return withAudio(withPlace(command)).option(
    "--ignore-checkpoints",
    "listen to the whole recording, even when the answer is clear early",
  );
}

export function verifyCommand(program: Command): void {
  withCheck(
    program
      .command("verify")
      .description("is it this person who speaks?")
      .argument("<person>", "who it is claimed to be")
      .argument("<file>", "WAV file")
      .option("--tag <tag>", "which of the person's voiceprints", ""),
  ).action(async (name: string, file: string, options: CheckOptions & { tag: string }) => {
    await check(options, file, async ({ operations, context, audio }) => {
      const profile = await profileOf(operations, options.scope, person(name, options.tag));
      const { result } = await operations.verify({ context, gkVoiceprintProfileId: { value: profile }, ...audio });
      return { subject: name, result: result!, score: result!.authenticationScore?.biometricScore ?? null };
    });
  });
}

export function identifyCommand(program: Command): void {
  withCheck(
    program
      .command("identify")
      .description("who of these people speaks? Without names: who of all that are enrolled")
      .argument("<file>", "WAV file")
      .argument("[people...]", "who it may be")
      .option("--group <id>", "or: a group of voiceprints, by its id")
      .option("--tag <tag>", "which of the people's voiceprints", ""),
  ).action(async (file: string, people: string[], options: CheckOptions & { group?: string; tag: string }) => {
    if (people.length > 0 && options.group) throw new CommandError("name people or a --group, not both");
    await check(options, file, async ({ operations, context, audio }) => {
      const names = new Map<string, string>();
      for (const name of people) names.set(await profileOf(operations, options.scope, person(name, options.tag)), name);
      if (people.length === 0 && !options.group) {
        for (const one of await profilesIn(operations, options.scope, OwnerType.PERSON))
          if (one.profileTag === options.tag) names.set(one.gkVoiceprintProfileId!.value, one.ownerId);
        if (names.size === 0)
          throw new CommandError("nobody is enrolled here", "enroll first: vivavoce enroll ada a.wav b.wav c.wav");
      }
      const { result } = await operations.identify({
        context,
        target: options.group
          ? { case: "group", value: { uniqueId: { value: options.group }, tag: options.tag } }
          : { case: "gkVoiceprintProfileIds", value: { uniqueIds: [...names.keys()].map((value) => ({ value })) } },
        ...audio,
      });
      const best = result!.voiceprintDetails?.gkVoiceprintProfileId?.value;
      return {
        subject: best ? (names.get(best) ?? best) : null,
        result: result!,
        score: result!.authenticationScore?.biometricScore ?? null,
        candidates: result!.voiceprintResults.map((one) => ({
          profileId: one.gkVoiceprintProfileId?.value ?? "",
          name: names.get(one.gkVoiceprintProfileId?.value ?? "") ?? null,
          score: one.score.value?.biometricScore ?? null,
        })),
      };
    });
  });
}

interface CheckCall {
  readonly operations: Operations;
  readonly context: SessionContext;
  /** The fields of the request that say what to listen to. */
  readonly audio: {
    readonly audio: Media;
    readonly ignoreCheckpoints: boolean;
    readonly channelSelector?: { readonly channel: number };
  };
}

interface Checked {
  readonly subject: string | null;
  readonly result: VerifyResult | IdentifyResult | DetectKnownFraudstersResult;
  readonly score: number | null;
  readonly candidates?: readonly {
    readonly profileId: string;
    readonly name: string | null;
    readonly score: number | null;
  }[];
}

/** Uploads, runs one check, prints it, and tells the shell what it decided. */
export async function check(
  options: CheckOptions,
  file: string,
  run: (call: CheckCall) => Promise<Checked>,
): Promise<void> {
  const output = createOutput(options.json ?? false);
  const recording = await recordingOf(file, mediaFormat(options));
  const { operations, close } = await openOperations(options);
  try {
    await inSession(operations, options, async (context) => {
      const audio = await upload(operations, context, recording);
      const checked = await run({
        operations,
        context,
        audio: {
          audio,
          ignoreCheckpoints: options.ignoreCheckpoints ?? false,
          ...channelSelector(options.channel),
        },
      });
      const { result, subject, score, candidates } = checked;
      const { risk, reliability } = result.riskEngineResult ?? {};
      const answer = {
        file,
        subject,
        decision: Decision[result.decision]!,
        reason: DecisionReason[result.reason]!,
        score,
        risk: risk ?? null,
        reliability: reliability ?? null,
        netSpeechSeconds: secondsOf(result.audioDetails?.netAudio),
        snrDb: result.audioDetails?.snrDb ?? null,
        ...(candidates ? { candidates } : {}),
      };
      output.answer(answer, () =>
        facts([
          ["decision", words(answer.decision).toUpperCase()],
          ["reason", words(answer.reason)],
          ["voice of", subject],
          ["score (cosine)", score?.toFixed(3)],
          ["risk", risk === undefined ? null : `${risk} of 1000`],
          ["reliability", reliability === undefined ? null : `${reliability} of 100`],
          ["net speech", `${answer.netSpeechSeconds.toFixed(1)} s`],
          ["SNR", answer.snrDb === null ? null : `${answer.snrDb.toFixed(0)} dB`],
          ...(candidates ?? [])
            .slice(0, 10)
            .map((one, i) => [`${i + 1}.`, `${one.name ?? one.profileId}  ${one.score?.toFixed(3) ?? "–"}`] as const),
        ]),
      );
      process.exitCode = exitCodeOf(result.decision);
    });
  } finally {
    await close();
  }
}

function exitCodeOf(decision: Decision): ExitCode {
  switch (decision) {
    case Decision.AUTHENTIC:
    case Decision.NO_RISK_DETECTED:
      return ExitCode.ok;
    case Decision.NO_MATCH:
    case Decision.FRAUD:
      return ExitCode.no;
    default:
      return ExitCode.undecided;
  }
}
