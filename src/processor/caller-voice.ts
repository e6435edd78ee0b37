/** Two people in one channel: which of the voices may be the caller's, and what is said of the audio then. */
import type { AudioChannelSelector } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { AudioValidity } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import type { Engine, Template, VoiceAnalysis } from "../engine/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { measuredAudio, voiceOf } from "./audio-model.js";
import { assertKind, findOneProfile, isPrint } from "./candidates.js";
import type { OpenContext } from "./context.js";
import { type Dependencies, engineOptions, type OperationOptions } from "./dependencies.js";
import { invalid } from "./failures.js";
import type { JointAnalysis } from "./joint-hearing.js";

/** How voices that share a channel are told apart. */
export interface Separation {
  /** `null` where it is not known who the other person is. */
  readonly agent: Template | null;
}

/** The voices of a look, or of the end. */
export interface CallerVoices {
  readonly validity: AudioValidity;
  /** Fit to be compared, each of them perhaps the caller's; empty unless the validity is AUDIO_OK. */
  readonly voices: readonly JointAnalysis[];
  readonly isAgentRecognized: boolean;
}

/** Beside a candidate, each voice that may be the caller's is a comparison of its own: known before anything is heard. */
export const voicesCompared = (separation: Separation | null): number =>
  separation !== null && separation.agent === null ? 2 : 1;

/**
 * With both in one channel the caller has spoken a checkpoint's worth later than the channel, nobody knows when: looks are at these multiples
 * of it, and compare where the caller has reached it.
 */
const lookMultiples = [1, 1.5, 2, 3, 4];

export const looksAround = (checkpoints: readonly number[]): number[] =>
  [...new Set(checkpoints.flatMap((at) => lookMultiples.map((multiple) => at * multiple)))].sort((a, b) => a - b);

/** Ratios may be wrong by a factor of ten: below this, even the more alike of two voices is not the agent's. */
const leastRatioOfTwo = -Math.LN10;

export async function findSeparation(
  deps: Dependencies,
  { scopeId, engine }: Pick<OpenContext, "scopeId" | "engine">,
  selector: AudioChannelSelector | undefined,
  field: string,
): Promise<Separation | null> {
  const asked = selector?.voiceSeparation;
  if (!asked) return null;
  const id = asked.gkAgentVoiceprintProfileId?.value;
  if (id === undefined) return { agent: null };
  const path = `${field}.voice_separation.gk_agent_voiceprint_profile_id`;
  const profile = await findOneProfile(deps, scopeId, id, path);
  assertKind(profile, "person", path);
  if (!isPrint(profile) || profile.template.revision !== engine.model.revision)
    throw invalid(path, "not_trained", "the agent's profile has no print of the present model; train it first");
  return { agent: profile.template };
}

/** Whose voice enrolls must be certain: a print made of two people would let both in. */
export function refuseSeparation(selector: AudioChannelSelector | undefined, field: string): void {
  if (selector?.voiceSeparation)
    throw invalid(
      `${field}.voice_separation`,
      "not_allowed",
      "voices are separated for checks only; enroll from a channel with one person",
    );
}

export async function callerVoices(
  { engine, set }: Pick<OpenContext, "engine" | "set">,
  separation: Separation | null,
  analysis: JointAnalysis,
  options: OperationOptions,
): Promise<CallerVoices> {
  if (separation === null) return fitVoices([analysis], false, set);
  const voices = analysis.voices ?? [];
  const { agent } = separation;
  if (agent === null || voices.length === 0) return fitVoices(voices, false, set);
  const likeness = await Promise.all(voices.map((voice) => ratioTo(engine, agent, voice, options)));
  const best = likeness.indexOf(Math.max(...likeness));
  // Of two voices one should be the agent's; a voice alone is more likely the caller's.
  const isAgentRecognized = likeness[best]! > (voices.length > 1 ? leastRatioOfTwo : 0);
  if (isAgentRecognized)
    return fitVoices(
      voices.filter((_, i) => i !== best),
      true,
      set,
    );
  // Two voices, and neither is the agent's: who of them is the caller cannot be known.
  return voices.length > 1
    ? { validity: AudioValidity.MULTIPLE_SPEAKERS_DETECTED, voices: [], isAgentRecognized }
    : fitVoices(voices, false, set);
}

function fitVoices(voices: readonly JointAnalysis[], isAgentRecognized: boolean, set: ConfigurationSet): CallerVoices {
  const validities = voices.map((voice) => audioValidity(measuredAudio(voice), "verify", set));
  const fit = voices.filter((_, i) => validities[i] === AudioValidity.AUDIO_OK);
  const validity = fit.length > 0 ? AudioValidity.AUDIO_OK : (validities[0] ?? AudioValidity.AUDIO_TOO_SHORT);
  return { validity, voices: fit, isAgentRecognized };
}

async function ratioTo(
  engine: Engine,
  agent: Template,
  voice: VoiceAnalysis,
  options: OperationOptions,
): Promise<number> {
  if (voice.embedding === null) return Number.NEGATIVE_INFINITY;
  const [score] = await engine.score([agent], voiceOf(voice, voice.embedding), engineOptions(options));
  return score!.llr;
}

/** The audio as it is told: of one voice, or of none where there was no caller. */
export function toldVoice(analysis: VoiceAnalysis, judged: VoiceAnalysis | null): VoiceAnalysis {
  const voice = judged ?? { windows: [], embedding: null, voiceClass: null, measures: { netSpeechSeconds: 0 } };
  const { netSpeechSeconds } = voice.measures;
  return {
    ...analysis,
    windows: voice.windows,
    embedding: voice.embedding,
    voiceClass: voice.voiceClass,
    measures: { ...analysis.measures, netSpeechSeconds },
  };
}
