import type { Command } from "commander";
import { secondsOf } from "../contract/duration.js";
import {
  type AuthenticationScore,
  Decision,
  DecisionReason,
  type DetectKnownFraudstersResult,
  type FraudDetectionScore,
  type IdentifyResult,
  type VerifyResult,
} from "../contract/index.js";
import type { Operations } from "../contract/operations.js";
import {
  type Comparison,
  candidatesIn,
  channelSelector,
  comparisonOf,
  inSession,
  type Media,
  profilesIn,
  type SessionContext,
  upload,
} from "../workflow.js";
import { enrollCall, listOf, person, profileOf, recordingOf } from "./calls.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { withOperations } from "./operations.js";
import { createOutput, facts, words } from "./output.js";
import { type AudioOptions, mediaFormat, type PlaceOptions, withAudio, withPlace } from "./shared-options.js";

export interface CheckOptions extends PlaceOptions, AudioOptions {
  readonly ignoreCheckpoints?: boolean;
}

/** Help of `<file>`. */
export const RECORDING = "WAV file (MP3, MP4, Opus and others if ffmpeg is installed)";

export function withCheck(command: Command): Command {
  return withAudio(withPlace(command)).option(
    "--ignore-checkpoints",
    "process the whole recording, even if the answer is clear early",
  );
}

export function verifyCommand(program: Command): void {
  withCheck(
    program
      .command("verify")
      .description("check whether this person is speaking")
      .argument("<person>", "name of the claimed person")
      .argument("<file>", RECORDING)
      .option("--tag <tag>", "tag of the voiceprint, if the person has several"),
  ).action(async (name: string, file: string, options: CheckOptions & { tag?: string }) => {
    await check(options, file, async ({ operations, context, audio }) => {
      const owner = person(name, options.tag);
      const profile = await profileOf(operations, options.scope, owner);
      const gkVoiceprintProfileId = { value: profile };
      const { result, status } = await operations.verify({ context, gkVoiceprintProfileId, ...audio });
      const notCompared = status?.message;
      const { reason, authenticationScore: score } = result!;
      const isUnfinished = reason === DecisionReason.NOT_ENOUGH_SEGMENTS || reason === DecisionReason.NO_SCORES;
      const nextStep = isUnfinished && !notCompared ? `finish the enrollment: ${enrollCall(owner, "more.wav")}` : null;
      return { subject: name, result: result!, score, notCompared, nextStep };
    });
  });
}

export function identifyCommand(program: Command): void {
  withCheck(
    program
      .command("identify")
      .description("find out who is speaking: one of the named people or, without names, anybody enrolled")
      .argument("<file>", RECORDING)
      .argument("[people...]", "names of the candidates")
      .option("--group <group>", "name or id of a group to search, instead of people")
      .option("--tag <tag>", "tag of the voiceprints, if people have several"),
  ).action(async (file: string, people: string[], options: CheckOptions & { group?: string; tag?: string }) => {
    if (people.length > 0 && options.group) throw new CommandError("give either names or --group, not both");
    await check(options, file, async ({ operations, context, audio }) => {
      const group = options.group && (await listOf(operations, options.scope, "group", options.group));
      const names = new Map<string, string>();
      for (const name of people) names.set(await profileOf(operations, options.scope, person(name, options.tag)), name);
      if (people.length === 0) {
        const enrolled = group
          ? await profilesIn(operations, options.scope, "person")
          : await candidatesIn(operations, options.scope, "person", options.tag);
        for (const { id, name } of enrolled) names.set(id, name);
        if (names.size === 0 && !group)
          throw new CommandError("nobody is enrolled here", "enroll first: vivavoce enroll ada a.wav b.wav c.wav");
      }
      const { result, status } = await operations.identify({
        context,
        target: group
          ? { case: "group", value: { uniqueId: { value: group }, tag: options.tag ?? "" } }
          : { case: "gkVoiceprintProfileIds", value: { uniqueIds: [...names.keys()].map((value) => ({ value })) } },
        ...audio,
      });
      return { ...compared(result!, names), score: result!.authenticationScore, notCompared: status?.message };
    });
  });
}

/** The likeliest speaker, and all profiles that were compared, best first. */
export function compared(result: IdentifyResult | DetectKnownFraudstersResult, names: ReadonlyMap<string, string>) {
  const best = result.voiceprintDetails?.gkVoiceprintProfileId?.value;
  const candidates = result.voiceprintResults.map(({ gkVoiceprintProfileId, score }) => {
    const profileId = gkVoiceprintProfileId?.value ?? "";
    return { profileId, name: names.get(profileId) ?? null, ...comparisonOf(score.value) };
  });
  return { result, subject: best ? (names.get(best) ?? best) : null, candidates };
}

interface CheckCall {
  readonly operations: Operations;
  readonly context: SessionContext;
  /** The fields of the request that select the audio. */
  readonly audio: {
    readonly audio: Media;
    readonly ignoreCheckpoints: boolean;
    readonly channelSelector?: { readonly channel: number };
  };
}

interface Checked {
  readonly subject: string | null;
  readonly result: VerifyResult | IdentifyResult | DetectKnownFraudstersResult;
  readonly score: AuthenticationScore | FraudDetectionScore | undefined;
  readonly candidates?: ReturnType<typeof compared>["candidates"];
  /** Which prints could not be compared, and why. */
  readonly notCompared: string | undefined;
  /** What a person can do about an answer without a score. */
  readonly nextStep?: string | null;
}

/** Uploads, runs one check, prints it, and returns the decision as an exit code. */
export async function check(
  options: CheckOptions,
  file: string,
  run: (call: CheckCall) => Promise<Checked>,
): Promise<void> {
  const output = createOutput(options.json);
  const recording = await recordingOf(file, mediaFormat(options));
  await withOperations(options, ({ operations }) =>
    inSession(operations, options, async (context) => {
      const audio = await upload(operations, context, recording);
      const { ignoreCheckpoints = false, channel } = options;
      const {
        result,
        subject,
        score,
        candidates,
        notCompared = "",
        nextStep = null,
      } = await run({
        operations,
        context,
        audio: { audio, ignoreCheckpoints, ...channelSelector(channel) },
      });
      const comparison = comparisonOf(score);
      const { risk, reliability } = result.riskEngineResult ?? {};
      const answer = {
        file,
        subject,
        decision: Decision[result.decision]!,
        reason: DecisionReason[result.reason]!,
        ...comparison,
        risk: risk ?? null,
        reliability: reliability ?? null,
        netSpeechSeconds: secondsOf(result.audioDetails?.netAudio),
        snrDb: result.audioDetails?.snrDb ?? null,
        ...(candidates ? { candidates } : {}),
        notCompared,
      };
      const others = alsoMatching(candidates ?? [], subject);
      output.answer(answer, () =>
        facts([
          ["decision", answer.decision.replaceAll("_", " ")],
          ["reason", words(answer.reason)],
          ["compared with", subject],
          ["score (cosine)", comparison.score?.toFixed(3)],
          ["ratio (log)", ratioText(comparison)],
          ["risk", risk === undefined ? null : `${risk} of 1000`],
          ["reliability", reliability === undefined ? null : `${reliability} of 100`],
          ["net speech", `${answer.netSpeechSeconds.toFixed(1)} s`],
          ["SNR", answer.snrDb === null ? null : `${answer.snrDb.toFixed(0)} dB`],
          ...(candidates ?? [])
            .slice(0, 10)
            .map((one, i) => [`${i + 1}.`, `${one.name ?? one.profileId}  ${ratioText(one) ?? "–"}`] as const),
          ...(others.length > 0 ? [["also match", others.join(", ")] as const] : []),
          ...(notCompared ? [["not compared", notCompared] as const] : []),
          ...(nextStep ? [["next step", nextStep] as const] : []),
        ]),
      );
      process.exitCode = exitCodeOf(result.decision);
    }),
  );
}

/** The names of others whose prints reach their threshold. */
function alsoMatching(candidates: ReturnType<typeof compared>["candidates"], subject: string | null): string[] {
  const matching = candidates.filter(
    ({ ratio, threshold }) => threshold !== null && ratio !== null && ratio >= threshold,
  );
  return [...new Set(matching.map(({ name, profileId }) => name ?? profileId))].filter((name) => name !== subject);
}

/** In the same form as on the page. */
function ratioText({ ratio, threshold, falseAcceptRate }: Comparison): string | null {
  if (ratio === null || threshold === null) return null;
  const target = falseAcceptRate === null ? "" : ` for ${+(100 * falseAcceptRate).toPrecision(3)} % false accepts`;
  return `${ratio.toFixed(1)}, needed ${threshold.toFixed(1)}${target}`;
}

function exitCodeOf(decision: Decision): ExitCode {
  if (decision === Decision.AUTHENTIC || decision === Decision.NO_RISK_DETECTED) return ExitCode.ok;
  return decision === Decision.NO_MATCH || decision === Decision.FRAUD ? ExitCode.no : ExitCode.undecided;
}
