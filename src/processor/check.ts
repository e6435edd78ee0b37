/**
 * What Verify, Identify, DetectKnownFraudsters and AnalyzeAudio share: they process as much audio as they need and
 * compare it with prints.
 */
import { type AudioChannelSelector, AudioValidity, Decision, DecisionReason } from "../contract/index.js";
import type { AttackKind, Score } from "../engine/port.js";
import type { Id, MediaSegment, ProcessedAudio, Session } from "../store/port.js";
import { endsEarly, looksAt, reachableCheckpoints } from "../voiceprint/checkpoints.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import {
  decide,
  halfWidthOf,
  type JudgedEvidence,
  judge,
  judgedEvidence,
  type Outcome,
  rateOfOneComparison,
  strongestFirst,
} from "../voiceprint/decision.js";
import { impostorsOnList } from "../voiceprint/list-impostors.js";
import { isUnreadable, outcomeForValidity } from "../voiceprint/quality-gate.js";
import { type CheckPart, checkParts, type SessionCheck } from "../voiceprint/session-decision.js";
import type { AnalyzedAudio, CheckedParts, PartResult } from "./analyzed-audio.js";
import { AttackChecks, type AttackResults, storedAudio } from "./attacks.js";
import { analysisOf, newProcessedAudio } from "./audio-model.js";
import {
  type CallerVoices,
  callerVoices,
  findSeparation,
  looksAround,
  reportedVoice,
  type Separation,
  voicesCompared,
} from "./caller-voice.js";
import type { Candidates } from "./candidates.js";
import type { OpenContext } from "./context.js";
import type { Dependencies } from "./dependencies.js";
import { unlessEngineFails } from "./failures.js";
import type { JointAnalysis, JointStreamOptions } from "./joint-analysis.js";
import { learnFromCall } from "./learn-from-call.js";
import { describedAudio, type SeparatedAudio } from "./messages.js";
import {
  type AudioSource,
  analyzeRecording,
  findMedia,
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

/** The results of a call. */
export interface Conclusion {
  readonly results: readonly PartResult[];
  readonly attacks: AttackResults;
  readonly validity: AudioValidity;
  /** The analysis to report: of the caller alone if voices were separated, `null` if no audio could be processed. */
  readonly reported: JointAnalysis | null;
  readonly separated: SeparatedAudio | null;
}

/** The comparisons of one call: a look at each checkpoint while audio is processed, then the conclusion. */
export class Comparison {
  /** The checkpoints of all parts and of the attack checks, ascending. */
  readonly #allCheckpoints: readonly number[];
  readonly #checkpoints: readonly (readonly number[])[];
  readonly #settled = new Map<Part, PartResult>();
  readonly #passed = new Map<Part, number>();
  readonly #looked = new Map<Part, PartResult>();
  #isCounted = false;

  /** `seconds` is the length of the audio, `null` if unknown. Checkpoints that it cannot reach are left out. */
  constructor(
    private readonly context: OpenContext,
    private readonly parts: readonly Part[],
    private readonly attacks: AttackChecks,
    seconds: number | null,
    ignoreCheckpoints: boolean,
    private readonly separation: Separation | null = null,
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

  /** All checkpoints, including those of the attack checks. */
  get checkpoints(): NonNullable<JointStreamOptions["checkpoints"]> {
    const seconds = this.separation ? looksAround(this.#allCheckpoints) : this.#allCheckpoints;
    return { seconds, look: (analysis) => this.look(analysis) };
  }

  /** Revisions of the models that the candidates need. */
  get revisions(): ReadonlySet<string> {
    // Separated voices exist for one model only, so prints of other models are not compared with them.
    return this.separation ? new Set() : revisionsOf(this.parts);
  }

  /** The result of the last look at each part; parts without a look yet are absent. */
  get lastLook(): ReadonlyMap<Part, PartResult> {
    return this.#looked;
  }

  /** Resolves to true when no more audio is needed. */
  async look(analysis: JointAnalysis): Promise<boolean> {
    const { voices } = await this.#callerVoices(analysis);
    if (voices.length === 0) return false;
    const spoken = Math.max(...voices.map(({ measures }) => measures.netSpeechSeconds));
    for (const [i, part] of this.parts.entries()) {
      const reached = this.#checkpoints[i]!.filter((at) => at <= spoken).length;
      if (this.#settled.has(part) || reached <= (this.#passed.get(part) ?? 0)) continue;
      this.#passed.set(part, reached);
      const result = await this.#score(part, voices);
      this.#looked.set(part, result);
      if (endsEarly(result.outcome.decision)) this.#settled.set(part, result);
    }
    // A known fraudster makes the decision FRAUD, whatever the other parts would find.
    if ([...this.#settled.values()].some(({ outcome }) => outcome.decision === Decision.FRAUD)) return true;
    const settled = this.parts.every((part) => this.#settled.has(part) || part.candidates.count === 0);
    return settled && (await this.attacks.isEnough(analysis, looksAt(this.#allCheckpoints)));
  }

  /** One result for each part, in order; the results of the attack checks; and the voice that was judged. */
  async conclude(analysis: JointAnalysis): Promise<Conclusion> {
    const { voices, validity, isAgentRecognized } = await this.#callerVoices(analysis);
    const { results, attacks } = await this.#conclude(analysis, voices, validity);
    if (this.separation === null) return { results, attacks, validity, reported: analysis, separated: null };
    const reported = reportedVoice(analysis, results.find(({ voice }) => voice)?.voice ?? voices[0] ?? null);
    const otherSeconds = analysis.measures.netSpeechSeconds - reported.measures.netSpeechSeconds;
    return { results, attacks, validity, reported, separated: { otherSeconds, isAgentRecognized } };
  }

  /** For audio that could not be processed. */
  async concludeUnanalyzed(validity: AudioValidity): Promise<Conclusion> {
    return { ...(await this.#conclude(null, [], validity)), validity, reported: null, separated: null };
  }

  async #conclude(analysis: JointAnalysis | null, voices: readonly JointAnalysis[], validity: AudioValidity) {
    const results: PartResult[] = [];
    for (const part of this.parts) results.push(await this.#concludePart(part, voices, validity));
    // A conclusion that could not be stored is drawn again.
    if (!this.#isCounted) for (const [i, part] of this.parts.entries()) this.#count(part.candidates, results[i]!);
    this.#isCounted = true;
    return { results, attacks: await this.attacks.conclude(analysis, validity, looksAt(this.#allCheckpoints)) };
  }

  async #concludePart(part: Part, voices: readonly JointAnalysis[], validity: AudioValidity): Promise<PartResult> {
    if (part.candidates.count === 0) return unscored(Decision.FAILED, await part.candidates.whyNone(this.context.set));
    if (validity !== AudioValidity.AUDIO_OK)
      return { outcome: outcomeForValidity(validity), evidence: null, scored: [] };
    const settled = this.#settled.get(part);
    return settled && (await this.#isStillAllowed(settled)) ? settled : this.#score(part, voices);
  }

  /** Minutes may have passed since the look: a print that was erased, or whose consent was withdrawn, must not be in the answer. */
  async #isStillAllowed({ scored }: PartResult): Promise<boolean> {
    const ids = scored.map(({ print }) => print.profileId);
    const { deps, scopeId } = this.context;
    return (await deps.prints.get(scopeId, ids)).length === ids.length;
  }

  #callerVoices(analysis: JointAnalysis): Promise<CallerVoices> {
    return callerVoices(this.context, this.separation, analysis);
  }

  /** Skips a single person as the candidate: that is a verification, and the caller is most likely not an impostor. */
  #count({ kind, count, revisions }: Candidates, { outcome, scored }: PartResult): void {
    if (scored.length === 0 || (kind === "person" && count === 1) || this.separation) return;
    // Rates are counted for one model; prints of another model say nothing about it.
    const { fieldRates } = this.context.deps;
    if ([...revisions].some((revision) => revision !== fieldRates.revision)) return;
    const matched = endsEarly(outcome.decision) ? scored[0]! : null;
    fieldRates.count(kind === "person" ? "group" : "watchlist", scored, count, matched);
  }

  /** If several voices may be the caller's, takes the one with the strongest evidence. */
  async #score(part: Part, voices: readonly JointAnalysis[]): Promise<PartResult> {
    const results: PartResult[] = [];
    for (const voice of voices) results.push(await this.#scoreVoice(part, voice));
    const judged = results.filter((result): result is PartResult & { evidence: JudgedEvidence } => !!result.evidence);
    judged.sort((one, other) => strongestFirst(judge)(one.evidence, other.evidence));
    return judged[0] ?? results[0]!;
  }

  async #scoreVoice(part: Part, analysis: JointAnalysis): Promise<PartResult> {
    const { context } = this;
    const { candidates } = part;
    if (analysis.embedding === null) return unscored(Decision.UNCERTAIN, DecisionReason.AUDIO_TOO_SHORT);
    const scored = await unlessEngineFails(() => candidates.score(analysis), context.options.signal);
    if (scored === null) return unscored(Decision.FAILED, DecisionReason.INTERNAL_ERROR);
    if (scored.length === 0) return unscored(Decision.FAILED, DecisionReason.NO_SCORES);
    const looks = looksAt(this.#checkpoints[this.parts.indexOf(part)]!);
    const { score } = scored[0]!;
    const { targetRate } = part;
    const compared = candidates.count * voicesCompared(this.separation);
    const comparisons = { targetRate, candidates: compared, looks };
    const scores = scored.map((one) => one.score);
    /** The threshold for this list, given the rate for one comparison. */
    const thresholdOf = (one: Score, rate: number) => {
      const impostors = impostorsOnList(one, scores, candidates.count);
      return context.engine.threshold(rate, { ...one, impostors });
    };
    const evidence = judgedEvidence(score, comparisons, (rate) => thresholdOf(score, rate));
    const rate = rateOfOneComparison(targetRate, compared, looks);
    const judged = scored.map((one, i) => ({
      ...one,
      threshold: i === 0 ? evidence.threshold + halfWidthOf(evidence) : thresholdOf(one.score, rate),
      falseAcceptRate: targetRate,
    }));
    return { outcome: decide(candidates.kind, evidence), evidence, scored: judged, voice: analysis };
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
 * Compares stored audio. An audio model is used as it is if the only model needed made it; all other audio is processed
 * now and gets a new id.
 */
export async function analyzeAndCompare(
  context: OpenContext,
  source: AudioSource,
  request: { readonly channelSelector?: AudioChannelSelector | undefined; readonly ignoreCheckpoints: boolean },
  parts: readonly Part[],
  wanted: readonly AttackKind[] = [],
): Promise<{ analyzed: AnalyzedAudio; results: readonly PartResult[]; attacks: AttackResults }> {
  const { deps, engine } = context;
  const attacksIn = (media: MediaSegment | null, channel: number | null) =>
    new AttackChecks(context, wanted, () => storedAudio(deps, media!, channel));
  const mediaOf = ({ mediaSegmentId }: ProcessedAudio) => findMedia(context, mediaSegmentId, "gk_processed_audio_id");
  const isAnalyzed = ({ revision }: ProcessedAudio) =>
    revision === engine.model.revision && [...revisionsOf(parts)].every((needed) => needed === revision);
  const separation = await findSeparation(context, request.channelSelector, "channel_selector");
  const lacksRest = async (processed: ProcessedAudio) =>
    request.ignoreCheckpoints && (await endedAtCheckpoint(deps, processed));
  if (
    source.from === "processed" &&
    isAnalyzed(source.processed) &&
    !separation &&
    !(await lacksRest(source.processed))
  ) {
    const { processed } = source;
    const attacks = attacksIn(wanted.length > 0 ? await mediaOf(processed) : null, processed.channel);
    const comparison = new Comparison(context, parts, attacks, null, true);
    const concluded = isUnreadable(processed.validity)
      ? await comparison.concludeUnanalyzed(processed.validity)
      : await comparison.conclude(analysisOf(processed));
    const { validity, reported } = concluded;
    return {
      analyzed: { audio: describedAudio(processed), validity, analysis: reported, unstored: null },
      ...concluded,
    };
  }
  const media = source.from === "media" ? source.media : await mediaOf(source.processed);
  const channel = source.from === "media" ? selectChannel(media, request.channelSelector) : source.processed.channel;
  const recording = openRecording(deps, media);
  const comparison = new Comparison(
    context,
    parts,
    attacksIn(media, channel),
    recording && secondsOf(recording),
    request.ignoreCheckpoints,
    separation,
  );
  const { checkpoints, revisions } = comparison;
  const settings = { channel, checkpoints, revisions, separateVoices: separation !== null };
  const outcome = await analyzeRecording(context, recording, settings);
  const concluded = outcome.analysis
    ? await comparison.conclude(outcome.analysis)
    : await comparison.concludeUnanalyzed(outcome.failure);
  const { validity, reported, separated } = concluded;
  const processed = newProcessedAudio(context, media, channel, "check", validity, reported);
  const audio = describedAudio(processed);
  // After an engine failure nothing is stored, so that the audio can be processed again. Separated voices are not stored either: which one is
  // the caller's was decided for this comparison, and a later one must decide it again.
  const analyzed: AnalyzedAudio =
    validity === AudioValidity.INTERNAL_ERROR || separated
      ? { audio: { ...audio, processedAudioId: null, separated }, validity, analysis: reported, unstored: null }
      : { audio, validity, analysis: reported, unstored: processed };
  return { analyzed, ...concluded };
}

/** Whether a check stopped at a checkpoint and left out the rest of the recording, which is still stored. */
async function endedAtCheckpoint(
  deps: Dependencies,
  { scopeId, source, mediaSegmentId, measures }: ProcessedAudio,
): Promise<boolean> {
  const media = source === "check" ? await deps.store.media.get(scopeId, mediaSegmentId) : null;
  const recording = media && openRecording(deps, media);
  return recording !== null && Math.round(measures.grossSeconds * recording.rateHz) < recording.frames;
}

/** Stores the audio model, and the results that the session's decision is later fused from. */
export async function recordCheck(
  context: OpenContext,
  operation: string,
  analyzed: AnalyzedAudio,
  outcome: Outcome,
  figures: { readonly risk: number; readonly reliability: number } | null,
  parts: CheckedParts,
  profileId: Id | null,
): Promise<void> {
  const { deps, scopeId, session } = context;
  const { audio, unstored } = analyzed;
  // 0 is all channels mixed, which are not one speaker's.
  const flat: Record<string, number> = {
    ...(audio.channel && { channel: audio.channel }),
    ...(analyzed.isSecondParty && { secondParty: 1 }),
    ...((await isOfClaimed(deps, session, profileId)) && { claimed: 1 }),
  };
  for (const part of checkParts) {
    const checked = parts[part];
    if (checked?.outcome.decision === Decision.FAILED) flat[`${part}Failed`] = checked.outcome.reason;
    if (!checked?.evidence) continue;
    const { llr, threshold, reliability, halfWidth } = checked.evidence;
    flat[part] = llr;
    flat[`${part}Threshold`] = threshold;
    flat[`${part}Reliability`] = reliability;
    if (halfWidth !== undefined) flat[`${part}HalfWidth`] = halfWidth;
    if (checked.strongest) {
      flat[`${part}StretchStart`] = checked.strongest.startSeconds;
      flat[`${part}StretchEnd`] = checked.strongest.endSeconds;
    }
  }
  const check = {
    id: analyzed.checkId ?? deps.ids.next(),
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
  await deps.store.sessions.addCheck(check, unstored ?? undefined).catch((error: unknown) => {
    if (analyzed.checkId === undefined || (error as { code?: unknown }).code !== "exists") throw error;
  });
  // The result stands even if the print could not learn from the call.
  await learnFromCall(context, analyzed, outcome.decision, parts).catch(() => {});
}

/** Recorded with the check, because it cannot be found out after the print is erased. */
async function isOfClaimed(deps: Dependencies, { scopeId, claimedPersonId }: Session, id: Id | null): Promise<boolean> {
  if (claimedPersonId === "" || id === null) return false;
  const [profile] = await deps.store.profiles.getMany(scopeId, [id]);
  return profile?.owner.kind === "person" && profile.owner.externalId === claimedPersonId;
}

/** The print that a part clearly matched. */
function matchedBy(part: CheckedParts["authentication"]): Id | null {
  const matched = part && endsEarly(part.outcome.decision);
  return (matched && part.scored?.[0]?.print.profileId) || null;
}

/** The reverse of what `recordCheck` flattened. */
export function partsOfCheck(
  flat: Readonly<Record<string, number>>,
): Pick<SessionCheck, "channel" | "isSecondParty"> & Required<Pick<SessionCheck, "evidence" | "failures">> {
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
  return { channel: flat.channel ?? null, isSecondParty: flat.secondParty === 1, evidence, failures };
}
