/**
 * What Verify, Identify, DetectKnownFraudsters and AnalyzeAudio share: audio is heard, as far as it takes, and held
 * against prints.
 */
import type { AudioChannelSelector } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { AudioValidity, Decision } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { DecisionReason } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import type { VoiceAnalysis } from "../engine/port.js";
import type { Id, MediaSegment, ProcessedAudio } from "../store/port.js";
import { endsEarly, looksAt, reachableCheckpoints } from "../voiceprint/checkpoints.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import {
  decide,
  type JudgedEvidence,
  judge,
  type Outcome,
  rateOfOneComparison,
  strongestFirst,
} from "../voiceprint/decision.js";
import { audioValidity, isUnreadable, outcomeForValidity } from "../voiceprint/quality-gate.js";
import type { CheckEvidence } from "../voiceprint/session-decision.js";
import { analysisOf, measuredAudio, voiceOf } from "./audio-model.js";
import type { Candidates, ScoredPrint } from "./candidates.js";
import type { OpenContext } from "./context.js";
import { type Dependencies, engineOptions, type OperationOptions } from "./dependencies.js";
import { unlessEngineFails } from "./failures.js";
import { type DescribedAudio, describedAudio } from "./messages.js";
import {
  type AudioSource,
  findMedia,
  hearRecording,
  noMeasures,
  openRecording,
  secondsOf,
  selectChannel,
} from "./recorded-audio.js";

/** One comparison that a call asks for: against persons, or against fraudsters. */
export interface Part {
  readonly candidates: Candidates;
  readonly targetRate: number;
  readonly checkpoints: readonly number[];
}

export interface PartResult {
  readonly outcome: Outcome;
  /** `null` when nothing was scored. */
  readonly evidence: JudgedEvidence | null;
  /** Best first. */
  readonly scored: readonly ScoredPrint[];
}

export const authenticationPart = (candidates: Candidates, set: ConfigurationSet): Part => ({
  candidates,
  targetRate: set.targetFalseAcceptRate.authentication,
  checkpoints: set.checkpointsForAuthentication,
});

export const fraudPart = (candidates: Candidates, set: ConfigurationSet): Part => ({
  candidates,
  targetRate: set.targetFalseAcceptRate.fraud,
  checkpoints: set.checkpointsForFraudDetection,
});

/** The comparisons of one call while audio is heard: looks at checkpoints, then the end. */
export class Comparison {
  readonly #checkpoints: readonly (readonly number[])[];
  readonly #settled = new Map<Part, PartResult>();
  readonly #passed = new Map<Part, number>();

  /** `seconds` of audio there will be, `null` when it is not known; checkpoints that it cannot reach cost no look. */
  constructor(
    private readonly deps: Dependencies,
    private readonly set: ConfigurationSet,
    private readonly parts: readonly Part[],
    private readonly options: OperationOptions,
    seconds: number | null,
    ignoreCheckpoints: boolean,
  ) {
    this.#checkpoints = parts.map((part) =>
      ignoreCheckpoints || part.candidates.count === 0
        ? []
        : reachableCheckpoints(part.checkpoints, seconds ?? Number.POSITIVE_INFINITY),
    );
  }

  /** All checkpoints of all parts, ascending. */
  get checkpoints(): number[] {
    return [...new Set(this.#checkpoints.flat())].sort((one, other) => one - other);
  }

  /** True when nothing more needs to be heard. */
  async look(analysis: VoiceAnalysis): Promise<boolean> {
    if (audioValidity(measuredAudio(analysis), "verify", this.set) !== AudioValidity.AUDIO_OK) return false;
    for (const [i, part] of this.parts.entries()) {
      const reached = this.#checkpoints[i]!.filter((at) => at <= analysis.measures.netSpeechSeconds).length;
      if (this.#settled.has(part) || reached <= (this.#passed.get(part) ?? 0)) continue;
      this.#passed.set(part, reached);
      const result = await this.#score(part, analysis);
      if (endsEarly(result.outcome.decision)) this.#settled.set(part, result);
    }
    const settled = [...this.#settled.values()];
    return (
      settled.some(({ outcome }) => outcome.decision === Decision.FRAUD) ||
      this.parts.every((part) => this.#settled.has(part) || part.candidates.count === 0)
    );
  }

  /** One result for each part, in their order. */
  async conclude(analysis: VoiceAnalysis | null, validity: AudioValidity): Promise<PartResult[]> {
    const results: PartResult[] = [];
    for (const part of this.parts) results.push(await this.#conclude(part, analysis, validity));
    return results;
  }

  async #conclude(part: Part, analysis: VoiceAnalysis | null, validity: AudioValidity): Promise<PartResult> {
    if (part.candidates.count === 0) return unscored(Decision.FAILED, await part.candidates.whyNone(this.set));
    if (validity !== AudioValidity.AUDIO_OK)
      return { outcome: outcomeForValidity(validity), evidence: null, scored: [] };
    return this.#settled.get(part) ?? (await this.#score(part, analysis!));
  }

  async #score(part: Part, analysis: VoiceAnalysis): Promise<PartResult> {
    const { deps, options } = this;
    const { candidates } = part;
    if (analysis.embedding === null) return unscored(Decision.UNCERTAIN, DecisionReason.AUDIO_TOO_SHORT);
    const voice = voiceOf(analysis, analysis.embedding);
    const scored = await unlessEngineFails(() => candidates.score(voice, engineOptions(options)), options.signal);
    if (scored === null) return unscored(Decision.FAILED, DecisionReason.INTERNAL_ERROR);
    if (scored.length === 0) return unscored(Decision.FAILED, DecisionReason.NO_SCORES);
    const looks = looksAt(this.#checkpoints[this.parts.indexOf(part)]!);
    const rate = rateOfOneComparison(part.targetRate, candidates.count, looks);
    // Each is held against a threshold of its own: the highest ratio need not be the strongest evidence.
    const strongest = strongestFirst(judge);
    const judged = scored
      .map((one) => {
        const { llr, reliability } = one.score;
        return { one, evidence: { llr, reliability, threshold: deps.engine.threshold(rate, one.score) } };
      })
      .sort((one, other) => strongest(one.evidence, other.evidence));
    const { evidence } = judged[0]!;
    return { outcome: decide(candidates.kind, evidence), evidence, scored: judged.map(({ one }) => one) };
  }
}

const unscored = (decision: Decision, reason: DecisionReason): PartResult => ({
  outcome: { decision, reason },
  evidence: null,
  scored: [],
});

/** Audio, as a check has heard it. */
export interface HeardAudio {
  readonly audio: DescribedAudio;
  readonly validity: AudioValidity;
  /** `null` when the audio could not be decoded, or the engine failed. */
  readonly analysis: VoiceAnalysis | null;
  /** What was heard, where it is not stored yet: it is, in one write with the check. */
  readonly unstored: ProcessedAudio | null;
}

/**
 * Hears stored audio. What was processed by the present model is taken as it is; everything else is processed now, and
 * gets a new id.
 */
export async function hearAndCompare(
  deps: Dependencies,
  { scopeId, session, set }: OpenContext,
  source: AudioSource,
  request: { readonly channelSelector?: AudioChannelSelector | undefined; readonly ignoreCheckpoints: boolean },
  parts: readonly Part[],
  options: OperationOptions,
): Promise<{ heard: HeardAudio; results: PartResult[] }> {
  if (source.from === "processed" && source.processed.revision === deps.engine.model.revision) {
    const heard = asProcessed(source.processed, set);
    const comparison = new Comparison(deps, set, parts, options, null, true);
    return { heard, results: await comparison.conclude(heard.analysis, heard.validity) };
  }
  const media =
    source.from === "media"
      ? source.media
      : await findMedia(deps, scopeId, source.processed.mediaSegmentId, "gk_processed_audio_id");
  const channel = source.from === "media" ? selectChannel(media, request.channelSelector) : source.processed.channel;
  const recording = openRecording(deps, media);
  const comparison = new Comparison(
    deps,
    set,
    parts,
    options,
    recording && secondsOf(recording),
    request.ignoreCheckpoints || recording === null,
  );
  const outcome = await hearRecording(
    deps,
    recording,
    { channel, checkpoints: comparison.checkpoints, look: (soFar) => comparison.look(soFar) },
    options,
  );
  const { analysis } = outcome;
  const validity = analysis ? audioValidity(measuredAudio(analysis), "verify", set) : outcome.failure;
  const results = await comparison.conclude(analysis, validity);
  const processed = newProcessedAudio(deps, media, session.id, channel, set, "check", validity, analysis);
  const audio = describedAudio(processed);
  // The audio may be good: nothing is kept of it when the engine failed, so that it is heard again.
  return validity === AudioValidity.INTERNAL_ERROR
    ? { heard: { audio: { ...audio, processedAudioId: null }, validity, analysis, unstored: null }, results }
    : { heard: { audio, validity, analysis, unstored: processed }, results };
}

function asProcessed(processed: ProcessedAudio, set: ConfigurationSet): HeardAudio {
  const audio = describedAudio(processed);
  return isUnreadable(processed.validity)
    ? { audio, validity: processed.validity, analysis: null, unstored: null }
    : {
        audio,
        validity: audioValidity(measuredAudio(processed), "verify", set),
        analysis: analysisOf(processed),
        unstored: null,
      };
}

export function newProcessedAudio(
  deps: Dependencies,
  media: MediaSegment,
  sessionId: Id,
  channel: number | null,
  set: ConfigurationSet,
  source: ProcessedAudio["source"],
  validity: AudioValidity,
  analysis: VoiceAnalysis | null,
): ProcessedAudio {
  return {
    id: deps.ids.next(),
    scopeId: media.scopeId,
    sessionId,
    mediaSegmentId: media.id,
    channel,
    mediaChannels: media.channels,
    mediaRateHz: media.rateHz,
    printType: set.printType,
    source,
    validity,
    measures: analysis?.measures ?? noMeasures(media.rateHz),
    speakers: analysis?.speakers ?? 0,
    voiceClass: analysis?.voiceClass ?? null,
    revision: deps.engine.model.revision,
    createdAt: deps.clock.now(),
    voice: { windows: analysis?.windows ?? [], embedding: analysis?.embedding ?? null },
  };
}

/** Keeps what was heard, and what a session's decision is later fused from. */
export async function recordCheck(
  deps: Dependencies,
  { scopeId, session }: OpenContext,
  operation: string,
  { unstored }: HeardAudio,
  outcome: Outcome,
  figures: { readonly risk: number; readonly reliability: number } | null,
  evidence: CheckEvidence,
  profileId: Id | null,
): Promise<void> {
  const flat: Record<string, number> = {};
  for (const [part, judged] of Object.entries(evidence) as [string, JudgedEvidence | undefined][]) {
    if (!judged) continue;
    flat[part] = judged.llr;
    flat[`${part}Threshold`] = judged.threshold;
    flat[`${part}Reliability`] = judged.reliability;
  }
  const check = {
    id: deps.ids.next(),
    scopeId,
    sessionId: session.id,
    operation,
    at: deps.clock.now(),
    decision: outcome.decision,
    reason: outcome.reason,
    risk: figures?.risk ?? null,
    reliability: figures?.reliability ?? null,
    evidence: flat,
    profileId,
  };
  await deps.store.sessions.addCheck(check, unstored ?? undefined);
}

/** The reverse of what `recordCheck` flattened. */
export function evidenceOf(flat: Readonly<Record<string, number>>): CheckEvidence {
  const part = (name: string): JudgedEvidence | undefined => {
    const [llr, threshold, reliability] = [flat[name], flat[`${name}Threshold`], flat[`${name}Reliability`]];
    return llr === undefined || threshold === undefined || reliability === undefined
      ? undefined
      : { llr, threshold, reliability };
  };
  return {
    authentication: part("authentication"),
    fraud: part("fraud"),
    synthetic: part("synthetic"),
    playback: part("playback"),
  };
}
