/**
 * What Verify, Identify, DetectKnownFraudsters and AnalyzeAudio share: audio is heard, as far as it takes, and held
 * against prints.
 */
import type { AudioChannelSelector } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { AudioValidity, Decision } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import { DecisionReason } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import type { AttackKind } from "../engine/port.js";
import type { Id, MediaSegment, ProcessedAudio } from "../store/port.js";
import { endsEarly, looksAt, reachableCheckpoints } from "../voiceprint/checkpoints.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import {
  decide,
  halfWidthOf,
  type JudgedEvidence,
  judgedEvidence,
  type Outcome,
  rateOfOneComparison,
} from "../voiceprint/decision.js";
import { audioValidity, isUnreadable, outcomeForValidity } from "../voiceprint/quality-gate.js";
import { type CheckEvidence, type CheckFailures, type CheckPart, checkParts } from "../voiceprint/session-decision.js";
import { AttackAudio, AttackChecks, type AttackResults, storedAudio } from "./attacks.js";
import { analysisOf, measuredAudio, newProcessedAudio } from "./audio-model.js";
import type { Candidates } from "./candidates.js";
import type { OpenContext } from "./context.js";
import { type Dependencies, engineOptions, type OperationOptions } from "./dependencies.js";
import { unlessEngineFails } from "./failures.js";
import type { CheckedParts, HeardAudio, PartResult } from "./heard-audio.js";
import type { JointAnalysis, JointStreamOptions } from "./joint-hearing.js";
import { learnFromCall } from "./learn-from-call.js";
import { describedAudio } from "./messages.js";
import {
  type AudioSource,
  findMedia,
  hearRecording,
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
  /** Of all parts and of the attack checks, ascending. */
  readonly #allCheckpoints: readonly number[];
  readonly #checkpoints: readonly (readonly number[])[];
  readonly #settled = new Map<Part, PartResult>();
  readonly #passed = new Map<Part, number>();
  readonly #looked = new Map<Part, PartResult>();

  /** `seconds` of audio there will be, `null` when it is not known; checkpoints that it cannot reach cost no look. */
  constructor(
    private readonly deps: Dependencies,
    private readonly context: Pick<OpenContext, "engine" | "set">,
    private readonly parts: readonly Part[],
    private readonly attacks: AttackChecks,
    private readonly options: OperationOptions,
    seconds: number | null,
    ignoreCheckpoints: boolean,
  ) {
    const reachable = (at: readonly number[]) => reachableCheckpoints(at, seconds ?? Number.POSITIVE_INFINITY);
    this.#checkpoints = parts.map((part) =>
      ignoreCheckpoints || part.candidates.count === 0 ? [] : reachable(part.checkpoints),
    );
    const compared = this.#checkpoints.flat();
    this.#allCheckpoints = [...new Set([...compared, ...reachable(attacks.checkpoints(compared))])].sort(
      (one, other) => one - other,
    );
  }

  /** All checkpoints, those of the attack checks too. */
  get checkpoints(): NonNullable<JointStreamOptions["checkpoints"]> {
    return { seconds: this.#allCheckpoints, look: (analysis) => this.look(analysis) };
  }

  /** The models that the candidates need, by their revisions. */
  get revisions(): ReadonlySet<string> {
    return revisionsOf(this.parts);
  }

  /** What the last look at each part said; absent for one that was not looked at. */
  get lastLook(): ReadonlyMap<Part, PartResult> {
    return this.#looked;
  }

  /** True when nothing more needs to be heard. */
  async look(analysis: JointAnalysis): Promise<boolean> {
    if (audioValidity(measuredAudio(analysis), "verify", this.context.set) !== AudioValidity.AUDIO_OK) return false;
    for (const [i, part] of this.parts.entries()) {
      const reached = this.#checkpoints[i]!.filter((at) => at <= analysis.measures.netSpeechSeconds).length;
      if (this.#settled.has(part) || reached <= (this.#passed.get(part) ?? 0)) continue;
      this.#passed.set(part, reached);
      const result = await this.#score(part, analysis);
      this.#looked.set(part, result);
      if (endsEarly(result.outcome.decision)) this.#settled.set(part, result);
    }
    // A known fraudster is FRAUD whatever the other parts would still hear.
    if ([...this.#settled.values()].some(({ outcome }) => outcome.decision === Decision.FRAUD)) return true;
    const settled = this.parts.every((part) => this.#settled.has(part) || part.candidates.count === 0);
    return settled && (await this.attacks.heardEnough(analysis, looksAt(this.#allCheckpoints)));
  }

  /** One result for each part, in their order, and those of the attack checks. */
  async conclude(
    analysis: JointAnalysis | null,
    validity: AudioValidity,
  ): Promise<{ results: PartResult[]; attacks: AttackResults }> {
    const results: PartResult[] = [];
    for (const part of this.parts) results.push(await this.#conclude(part, analysis, validity));
    for (const [i, part] of this.parts.entries()) this.#count(part.candidates, results[i]!);
    return { results, attacks: await this.attacks.conclude(analysis, validity, looksAt(this.#allCheckpoints)) };
  }

  async #conclude(part: Part, analysis: JointAnalysis | null, validity: AudioValidity): Promise<PartResult> {
    if (part.candidates.count === 0) return unscored(Decision.FAILED, await part.candidates.whyNone(this.context.set));
    if (validity !== AudioValidity.AUDIO_OK)
      return { outcome: outcomeForValidity(validity), evidence: null, scored: [] };
    return this.#settled.get(part) ?? (await this.#score(part, analysis!));
  }

  /** One candidate of a person is a verification: the caller most likely is that person, no impostor. */
  #count({ kind, count, revisions }: Candidates, { outcome, scored }: PartResult): void {
    if (scored.length === 0 || (kind === "person" && count === 1)) return;
    // Rates are counted for one model: prints of another tell nothing of it.
    const { fieldRates } = this.deps;
    if ([...revisions].some((revision) => revision !== fieldRates.revision)) return;
    const matched = endsEarly(outcome.decision) ? scored[0]! : null;
    fieldRates.count(kind === "person" ? "group" : "watchlist", scored, count, matched);
  }

  async #score(part: Part, analysis: JointAnalysis): Promise<PartResult> {
    const { context, options } = this;
    const { candidates } = part;
    if (analysis.embedding === null) return unscored(Decision.UNCERTAIN, DecisionReason.AUDIO_TOO_SHORT);
    const scored = await unlessEngineFails(() => candidates.score(analysis, engineOptions(options)), options.signal);
    if (scored === null) return unscored(Decision.FAILED, DecisionReason.INTERNAL_ERROR);
    if (scored.length === 0) return unscored(Decision.FAILED, DecisionReason.NO_SCORES);
    const looks = looksAt(this.#checkpoints[this.parts.indexOf(part)]!);
    const { score } = scored[0]!;
    const { targetRate } = part;
    const comparisons = { targetRate, candidates: candidates.count, looks };
    const evidence = judgedEvidence(score, comparisons, (rate) => context.engine.threshold(rate, score));
    const rate = rateOfOneComparison(targetRate, candidates.count, looks);
    const judged = scored.map((one, i) => ({
      ...one,
      threshold: i === 0 ? evidence.threshold + halfWidthOf(evidence) : context.engine.threshold(rate, one.score),
      falseAcceptRate: targetRate,
    }));
    return { outcome: decide(candidates.kind, evidence), evidence, scored: judged };
  }
}

const revisionsOf = (parts: readonly Part[]): ReadonlySet<string> =>
  new Set(parts.flatMap(({ candidates }) => [...candidates.revisions]));

const unscored = (decision: Decision, reason: DecisionReason): PartResult => ({
  outcome: { decision, reason },
  evidence: null,
  scored: [],
});

/**
 * Hears stored audio. What was processed by the one model that is needed is taken as it is; everything else is processed
 * now, and gets a new id.
 */
export async function hearAndCompare(
  deps: Dependencies,
  context: OpenContext,
  source: AudioSource,
  request: { readonly channelSelector?: AudioChannelSelector | undefined; readonly ignoreCheckpoints: boolean },
  parts: readonly Part[],
  options: OperationOptions,
  wanted: readonly AttackKind[] = [],
): Promise<{ heard: HeardAudio; results: PartResult[]; attacks: AttackResults }> {
  const { scopeId, session, set, engine } = context;
  const attacksIn = (media: MediaSegment | null, channel: number | null) =>
    new AttackChecks(
      wanted,
      media && new AttackAudio(engine, wanted, storedAudio(deps, media, channel), options),
      set,
      options,
    );
  const mediaOf = ({ mediaSegmentId }: ProcessedAudio) =>
    findMedia(deps, scopeId, mediaSegmentId, "gk_processed_audio_id");
  const heardAlready = ({ revision }: ProcessedAudio) =>
    revision === engine.model.revision && [...revisionsOf(parts)].every((needed) => needed === revision);
  if (source.from === "processed" && heardAlready(source.processed)) {
    const { processed } = source;
    const heard = asProcessed(processed, set);
    const attacks = attacksIn(wanted.length > 0 ? await mediaOf(processed) : null, processed.channel);
    const comparison = new Comparison(deps, context, parts, attacks, options, null, true);
    return { heard, ...(await comparison.conclude(heard.analysis, heard.validity)) };
  }
  const media = source.from === "media" ? source.media : await mediaOf(source.processed);
  const channel = source.from === "media" ? selectChannel(media, request.channelSelector) : source.processed.channel;
  const recording = openRecording(deps, media);
  const comparison = new Comparison(
    deps,
    context,
    parts,
    attacksIn(media, channel),
    options,
    recording && secondsOf(recording),
    request.ignoreCheckpoints || recording === null,
  );
  const { checkpoints, revisions } = comparison;
  const outcome = await hearRecording(deps, scopeId, recording, { channel, checkpoints, revisions }, options);
  const { analysis } = outcome;
  const validity = analysis ? audioValidity(measuredAudio(analysis), "verify", set) : outcome.failure;
  const concluded = await comparison.conclude(analysis, validity);
  const processed = newProcessedAudio(deps, media, session.id, channel, set, "check", validity, analysis);
  const audio = describedAudio(processed);
  // The audio may be good: nothing is kept of it when the engine failed, so that it is heard again.
  return validity === AudioValidity.INTERNAL_ERROR
    ? { heard: { audio: { ...audio, processedAudioId: null }, validity, analysis, unstored: null }, ...concluded }
    : { heard: { audio, validity, analysis, unstored: processed }, ...concluded };
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

/** Keeps what was heard, and what a session's decision is later fused from. */
export async function recordCheck(
  deps: Dependencies,
  context: OpenContext,
  operation: string,
  heard: HeardAudio,
  outcome: Outcome,
  figures: { readonly risk: number; readonly reliability: number } | null,
  parts: CheckedParts,
  profileId: Id | null,
): Promise<void> {
  const { scopeId, session } = context;
  const { audio, unstored } = heard;
  const flat: Record<string, number> = {};
  for (const part of checkParts) {
    const checked = parts[part];
    if (checked?.outcome.decision === Decision.FAILED) flat[`${part}Failed`] = checked.outcome.reason;
    if (!checked?.evidence) continue;
    const { llr, threshold, reliability, halfWidth } = checked.evidence;
    flat[part] = llr;
    flat[`${part}Threshold`] = threshold;
    flat[`${part}Reliability`] = reliability;
    if (halfWidth !== undefined) flat[`${part}HalfWidth`] = halfWidth;
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
    audioModelId: audio.processedAudioId,
    matchedProfileIds: [parts.authentication, parts.fraud].flatMap((part) => matchedBy(part) ?? []),
  };
  await deps.store.sessions.addCheck(check, unstored ?? undefined);
  // What was found stands, whether or not the print could learn from it.
  await learnFromCall(deps, context, heard, outcome.decision, parts).catch(() => {});
}

/** The print that a part clearly matched. */
function matchedBy(part: CheckedParts["authentication"]): Id | null {
  const matched = part && endsEarly(part.outcome.decision);
  return (matched && part.scored?.[0]?.print.profileId) || null;
}

/** The reverse of what `recordCheck` flattened. */
export function partsOfCheck(flat: Readonly<Record<string, number>>): {
  evidence: CheckEvidence;
  failures: CheckFailures;
} {
  const evidence: { [part in CheckPart]?: JudgedEvidence } = {};
  const failures: { [part in CheckPart]?: DecisionReason } = {};
  for (const part of checkParts) {
    const [llr, threshold, reliability] = [flat[part], flat[`${part}Threshold`], flat[`${part}Reliability`]];
    const halfWidth = flat[`${part}HalfWidth`];
    const failed: DecisionReason | undefined = flat[`${part}Failed`];
    if (llr !== undefined && threshold !== undefined && reliability !== undefined)
      evidence[part] = { llr, threshold, reliability, ...(halfWidth === undefined ? {} : { halfWidth }) };
    if (failed !== undefined) failures[part] = failed;
  }
  return { evidence, failures };
}
