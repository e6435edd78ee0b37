/** Two people in one channel: decides which voices may be the caller's, and what to report about the audio. */
import { type AudioChannelSelector, AudioValidity } from "../contract/index.js";
import type { VoiceAnalysis } from "../engine/port.js";
import type { Id } from "../store/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import { audioValidity } from "../voiceprint/quality-gate.js";
import { measuredAudio, voiceOf } from "./audio-model.js";
import { assertKind, findOneProfile } from "./candidates.js";
import type { OpenContext } from "./context.js";
import { engineOptions } from "./dependencies.js";
import { invalid } from "./failures.js";
import type { JointAnalysis } from "./joint-analysis.js";

/** How to separate voices that share a channel. */
export interface Separation {
  /** `null` when the other person is unknown. */
  readonly agentId: Id | null;
}

/** The voices found at a checkpoint or at the end. */
export interface CallerVoices {
  readonly validity: AudioValidity;
  /** Voices fit for comparison that may be the caller's; empty unless the validity is AUDIO_OK. */
  readonly voices: readonly JointAnalysis[];
  readonly isAgentRecognized: boolean;
}

/** How many voices are compared with each candidate. Known before any audio arrives, as thresholds depend on it. */
export const voicesCompared = (separation: Separation | null): number =>
  separation !== null && separation.agentId === null ? 2 : 1;

/**
 * When two people share a channel, the caller alone reaches a checkpoint's amount of speech later than the channel does, at an unknown time.
 * So there is a look at each of these multiples of the checkpoint; it compares if the caller has spoken enough.
 */
const lookMultiples = [1, 1.5, 2, 3, 4];

export const looksAround = (checkpoints: readonly number[]): number[] =>
  [...new Set(checkpoints.flatMap((at) => lookMultiples.map((multiple) => at * multiple)))].sort((a, b) => a - b);

/** Likelihood ratios may be wrong by a factor of ten. Below this, even the more similar of two voices is not the agent's. */
const leastRatioOfTwo = -Math.LN10;

export async function findSeparation(
  context: OpenContext,
  selector: AudioChannelSelector | undefined,
  field: string,
): Promise<Separation | null> {
  const asked = selector?.voiceSeparation;
  if (!asked) return null;
  const id = asked.gkAgentVoiceprintProfileId?.value;
  if (id === undefined) return { agentId: null };
  const path = `${field}.voice_separation.gk_agent_voiceprint_profile_id`;
  const profile = await findOneProfile(context, id, path);
  assertKind(profile, "person", path);
  if (profile.revision !== context.engine.model.revision)
    throw invalid(path, "not_trained", "the agent's print was not made by the current model; train it first");
  return { agentId: id };
}

/** Enrollment must be certain of whose voice it is: a print made from two people would accept both. */
export function refuseSeparation(selector: AudioChannelSelector | undefined, field: string): void {
  if (selector?.voiceSeparation)
    throw invalid(
      `${field}.voice_separation`,
      "not_allowed",
      "voice_separation is for checks only; enroll from a channel with one person",
    );
}

export async function callerVoices(
  { deps, options, scopeId, engine, set }: OpenContext,
  separation: Separation | null,
  analysis: JointAnalysis,
): Promise<CallerVoices> {
  if (separation === null) return fitVoices([analysis], false, set);
  const voices = analysis.voices ?? [];
  const { agentId } = separation;
  if (agentId === null || voices.length === 0) return fitVoices(voices, false, set);
  // As it is now: it may have been erased, or its consent withdrawn, since the call began.
  const [agent] = await deps.prints.get(scopeId, [agentId]);
  if (agent?.template.revision !== engine.model.revision) return unknownCaller;
  const ratioTo = async (voice: VoiceAnalysis) => {
    if (voice.embedding === null) return Number.NEGATIVE_INFINITY;
    const [score] = await engine.score([agent.template], voiceOf(voice, voice.embedding), engineOptions(options));
    return score!.llr;
  };
  const likeness = await Promise.all(voices.map(ratioTo));
  const best = likeness.indexOf(Math.max(...likeness));
  // If there are two voices, one should be the agent's; a single voice is more likely the caller's.
  const isAgentRecognized = likeness[best]! > (voices.length > 1 ? leastRatioOfTwo : 0);
  const others = voices.filter((_, i) => i !== best);
  if (isAgentRecognized) return fitVoices(others, true, set);
  // Two voices and neither is the agent's: there is no way to know which is the caller's.
  return voices.length > 1 ? unknownCaller : fitVoices(voices, false, set);
}

const unknownCaller: CallerVoices = {
  validity: AudioValidity.MULTIPLE_SPEAKERS_DETECTED,
  voices: [],
  isAgentRecognized: false,
};

function fitVoices(voices: readonly JointAnalysis[], isAgentRecognized: boolean, set: ConfigurationSet): CallerVoices {
  const validities = voices.map((voice) => audioValidity(measuredAudio(voice), "verify", set));
  const fit = voices.filter((_, i) => validities[i] === AudioValidity.AUDIO_OK);
  const validity = fit.length > 0 ? AudioValidity.AUDIO_OK : (validities[0] ?? AudioValidity.AUDIO_TOO_SHORT);
  return { validity, voices: fit, isAgentRecognized };
}

/** The analysis to report: that of one voice, or an empty one when no voice was the caller's. */
export function reportedVoice(analysis: VoiceAnalysis, judged: VoiceAnalysis | null): VoiceAnalysis {
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
