/** A live call: each party's audio goes to its task, and events of the tasks are sent back as they happen. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { joined } from "../../audio/joined.js";
import { secondsOf } from "../../contract/duration.js";
import {
  IdentifyResultSchema,
  type ListenParty,
  type ListenRequest,
  type ListenResponseSchema,
  type ListenStart,
  VerifyResultSchema,
} from "../../contract/index.js";
import type { LiveOptions } from "../../contract/operations.js";
import type { PartResult } from "../analyzed-audio.js";
import { findSeparation, refuseSeparation } from "../caller-voice.js";
import { assertKind, candidatesByTarget, candidatesOf, findOneProfile, leftOutStatus } from "../candidates.js";
import { authenticationPart, type Part } from "../check.js";
import { partRisk } from "../check-result.js";
import { type OpenContext, openContext } from "../context.js";
import type { Dependencies, OperationOptions } from "../dependencies.js";
import { invalid } from "../failures.js";
import type { LeftOut } from "../galleries.js";
import { concludeIdentification } from "../identify.js";
import { duration, ifKnown, riskResult } from "../messages.js";
import { findProfileToChange } from "../profiles.js";
import { concludeVerification } from "../verify.js";
import { DtmfDetector, isDtmfDigit } from "./dtmf.js";
import { LiveAudio, liveFormat } from "./live-audio.js";
import {
  analysisPlan,
  type CheckPlan,
  type LiveCheck,
  type LiveSource,
  liveOperation,
  openLiveCheck,
} from "./live-check.js";
import { LiveEnrollment } from "./live-enrollment.js";
import type { LiveEvent, LiveResult, LiveTask, ReportEvent } from "./live-task.js";
import { LostAudio } from "./lost-audio.js";

/** The other one of two channels; 0 is both mixed. */
const otherOf: Readonly<Record<number, number>> = { 1: 2, 2: 1 };

type Response = MessageInitShape<typeof ListenResponseSchema>;

/**
 * Packets of a call are small. They are processed in batches, so that a hundred calls do not cross threads every 20 ms. Batches are longer
 * while no result is possible yet: a checkpoint of 2 s of speech cannot be reached before 2 s have arrived.
 */
const shortestBatchSeconds = 0.04;
const longestBatchSeconds = 0.5;
const shortestProgressSeconds = 0.1;
/** How often to look for speech, however rarely the caller wants progress. */
const longestUnmeasuredSeconds = 1;

export async function* listen(
  deps: Dependencies,
  start: ListenStart,
  requests: AsyncIterable<ListenRequest>,
  options: LiveOptions,
): AsyncGenerator<Response> {
  const call = await LiveCall.open(deps, start, options);
  try {
    yield { event: { case: "started", value: {} }, ...leftOutStatus(call.leftOut) };
    for await (const request of requests) {
      options.signal?.throwIfAborted();
      await call.take(request);
      yield* call.waitingResponses();
      if (call.isDone) return;
      if (request.content.case === "end" || call.silentSeconds > (options.silenceSeconds ?? Infinity)) break;
    }
    await call.finish();
    yield* call.waitingResponses();
  } finally {
    await call.close();
  }
}

interface OpenParty {
  readonly name: string;
  readonly channel: number;
  readonly task: LiveTask;
  readonly keys: DtmfDetector;
  readonly lost: LostAudio;
  waiting: Float32Array[];
  waitingSamples: number;
  analyzedSamples: number;
  reportedSamples: number;
  measuredSamples: number;
  netSpeechSeconds: number;
  /** The samples up to the last measurement that found speech. */
  spokenSamples: number;
  result: LiveResult | null;
}

class LiveCall {
  readonly #events: Response[] = [];
  #lostSamples = 0;

  private constructor(
    private readonly audio: LiveAudio,
    private readonly rateHz: number,
    private readonly progressSamples: number,
    private readonly parties: OpenParty[],
  ) {}

  static async open(deps: Dependencies, start: ListenStart, options: OperationOptions): Promise<LiveCall> {
    const format = liveFormat(start);
    checkParties(start.parties, format.channels);
    const context = await openContext(deps, start.context, options);
    const parties: OpenParty[] = [];
    // Of audio with one channel there is nothing to select.
    const channelOf = ({ channelSelector }: ListenParty) =>
      format.channels === 1 ? 0 : (channelSelector?.channel ?? 0);
    const progress = start.progressInterval ? secondsOf(start.progressInterval) : 1;
    if (!(progress > 0))
      throw invalid(
        "start.progress_interval",
        "out_of_range",
        `progress_interval must be longer than 0 s, got ${progress} s`,
      );
    const call = new LiveCall(
      new LiveAudio(deps.readRecording, format),
      format.rateHz,
      Math.round(Math.max(shortestProgressSeconds, progress) * format.rateHz),
      parties,
    );
    try {
      for (const [index, party] of start.parties.entries()) {
        const channel = channelOf(party);
        const field = `start.parties[${index}]`;
        const selector = `${field}.channel_selector`;
        if (party.task.case === "enroll") refuseSeparation(party.channelSelector, selector);
        const source = {
          rateHz: format.rateHz,
          channels: format.channels,
          channel: format.channels === 1 ? null : channel,
          separation: await findSeparation(context, party.channelSelector, selector),
          // Only if each has a channel: otherwise both parties may be the same person.
          isSecondParty: index > 0 && channelOf(start.parties[0]!) === otherOf[channel],
        };
        const report: ReportEvent = (event) => call.#report(party.name, event);
        parties.push({
          name: party.name,
          channel,
          task: await openTask(context, start, party, field, source, report),
          keys: new DtmfDetector(format.rateHz),
          lost: new LostAudio(format.rateHz),
          waiting: [],
          waitingSamples: 0,
          analyzedSamples: 0,
          reportedSamples: 0,
          measuredSamples: 0,
          netSpeechSeconds: 0,
          spokenSamples: 0,
          result: null,
        });
      }
    } catch (error) {
      await call.close();
      throw error;
    }
    return call;
  }

  get leftOut(): LeftOut[] {
    return this.parties.flatMap(({ task }) => task.leftOut ?? []);
  }

  get isDone(): boolean {
    return this.parties.every((party) => party.result !== null);
  }

  /** How long no party without a result has spoken, as far as was measured. */
  get silentSeconds(): number {
    const silent = this.#open().map(({ measuredSamples, spokenSamples }) => measuredSamples - spokenSamples);
    return Math.min(...silent) / this.rateHz;
  }

  /** Events since the last call. */
  *waitingResponses(): Generator<Response> {
    yield* this.#events.splice(0);
  }

  async take({ content }: ListenRequest): Promise<void> {
    switch (content.case) {
      case "audio":
        return this.#analyzeAudio(content.value);
      case "lostSamples": {
        if (!(content.value >= 0))
          throw invalid("lost_samples", "out_of_range", `lost_samples must be at least 0, got ${content.value}`);
        this.#lostSamples += content.value;
        return this.#analyze(this.#open().map(({ lost }) => lost.fill(content.value)));
      }
      case "dtmf": {
        if (!isDtmfDigit(content.value))
          throw invalid("dtmf", "malformed", `dtmf must be one of 0 to 9, *, # and A to D, got "${content.value}"`);
        // A party that has its result hears no more; one that has none has heard all.
        const { analyzedSamples, waitingSamples } = this.#open()[0]!;
        const at = duration((analyzedSamples + waitingSamples) / this.rateHz);
        return this.#report("", { case: "dtmf", value: { digit: content.value, at, inBand: false } });
      }
      case "end":
        return;
      case "start":
        throw invalid("start", "repeated", "start may only be in the first message");
      default:
        throw invalid("content", "missing", "exactly one of audio, lost_samples, dtmf or end must be set");
    }
  }

  async finish(): Promise<void> {
    for (const party of this.#open()) {
      if (party.waitingSamples > 0) await this.#push(party);
      if (party.result === null) this.#result(party, await party.task.finish());
    }
  }

  async close(): Promise<void> {
    for (const party of this.parties) {
      for (const samples of party.waiting) samples.fill(0);
      party.lost.wipe();
      party.waiting = [];
      await party.task.close();
    }
  }

  #open(): OpenParty[] {
    return this.parties.filter((party) => party.result === null);
  }

  #analyzeAudio(bytes: Uint8Array): Promise<void> {
    const parties = this.#open();
    const channels = this.audio.samples(
      bytes,
      parties.map(({ channel }) => channel),
    );
    for (const [i, { lost }] of parties.entries()) lost.keep(channels[i]!);
    return this.#analyze(channels);
  }

  async #analyze(channels: readonly Float32Array[]): Promise<void> {
    for (const [i, party] of this.#open().entries()) {
      const samples = channels[i]!;
      for (const { digit, atSeconds } of party.keys.push(samples))
        this.#report(party.name, { case: "dtmf", value: { digit, at: duration(atSeconds), inBand: true } });
      party.waiting.push(samples);
      party.waitingSamples += samples.length;
      if (party.waitingSamples >= this.#batchSamples(party)) await this.#push(party);
    }
  }

  /** How many samples to process together without delaying a result or a progress event. */
  #batchSamples({ task, analyzedSamples, reportedSamples }: OpenParty): number {
    const untilProgress = this.progressSamples - (analyzedSamples - reportedSamples);
    const calm = Math.min(task.calmSeconds, longestBatchSeconds) * this.rateHz;
    return Math.max(shortestBatchSeconds * this.rateHz, Math.min(calm, untilProgress));
  }

  async #push(party: OpenParty): Promise<void> {
    const samples = joined(party.waiting);
    party.waiting = [];
    party.analyzedSamples += party.waitingSamples;
    party.waitingSamples = 0;
    const result = await party.task.push(samples);
    if (result !== null) return this.#result(party, result);
    const isDue = party.analyzedSamples - party.reportedSamples >= this.progressSamples;
    if (!isDue && party.analyzedSamples - party.measuredSamples < longestUnmeasuredSeconds * this.rateHz) return;
    party.measuredSamples = party.analyzedSamples;
    const { netSpeechSeconds, snrDb, speechLevelDb } = await party.task.measures();
    if (netSpeechSeconds !== party.netSpeechSeconds) party.spokenSamples = party.analyzedSamples;
    party.netSpeechSeconds = netSpeechSeconds;
    if (!isDue) return;
    party.reportedSamples = party.analyzedSamples;
    this.#report(party.name, {
      case: "progress",
      value: {
        grossAudio: duration(party.analyzedSamples / this.rateHz),
        netAudio: duration(netSpeechSeconds),
        lostAudio: duration(this.#lostSamples / this.rateHz),
        snrDb: ifKnown(snrDb),
        speechLevel: ifKnown(speechLevelDb),
        biometricScore: ifKnown(party.task.score),
      },
    });
  }

  #result(party: OpenParty, result: LiveResult): void {
    party.result = result;
    const lostAudio = duration(this.#lostSamples / this.rateHz);
    this.#report(party.name, { case: "result", value: { result, lostAudio } });
  }

  #report(party: string, event: LiveEvent): void {
    this.#events.push({ party, event });
  }
}

function checkParties(parties: readonly ListenParty[], channels: number): void {
  if (parties.length > 2)
    throw invalid("start.parties", "too_many", `a call must have one or two parties, got ${parties.length}`);
  const names = new Set(parties.map(({ name }) => name));
  if (names.size < parties.length)
    throw invalid("start.parties", "ambiguous", "two parties must have two different names");
  if (channels === 1) return;
  for (const [i, { channelSelector }] of parties.entries()) {
    const channel = channelSelector?.channel ?? 0;
    if (channel < 0 || channel > channels)
      throw invalid(
        `start.parties[${i}].channel_selector.channel`,
        "out_of_range",
        `channel must be 0 to ${channels}, got ${channel}`,
      );
  }
}

async function openTask(
  context: OpenContext,
  start: ListenStart,
  { task, ignoreCheckpoints }: ListenParty,
  field: string,
  source: LiveSource,
  report: ReportEvent,
): Promise<LiveTask> {
  const { deps, scopeId, set } = context;
  const onLook = (netSpeechSeconds: number, result: PartResult, part: Part, isFinal: boolean) =>
    report({ case: "checkpoint", value: checkpointOf(netSpeechSeconds, result, part, isFinal) });
  const check = async <Result>(plan: CheckPlan<Result>, asResult: (result: Result) => LiveResult) =>
    checkTask(
      await openLiveCheck(context, { ...plan, onLook }, source),
      asResult,
      plan.parts.flatMap(({ candidates }) => candidates.leftOut),
    );
  switch (task.case) {
    case "verify": {
      const path = `${field}.verify.gk_voiceprint_profile_id`;
      const profile = await findOneProfile(context, task.value.gkVoiceprintProfileId!.value, path);
      assertKind(profile, "person", path);
      return check(
        {
          parts: [authenticationPart(candidatesOf(context, "person", [profile]), set)],
          attacks: [],
          ignoreCheckpoints,
          conclude: async (analyzed, [result]) =>
            create(VerifyResultSchema, await concludeVerification(context, liveOperation, profile, analyzed, result!)),
        },
        (value) => ({ case: "verify", value }),
      );
    }
    case "identify": {
      const candidates = await candidatesByTarget(context, "person", task.value.target);
      return check(
        {
          parts: [authenticationPart(candidates, set)],
          attacks: [],
          ignoreCheckpoints,
          conclude: async (analyzed, [result]) =>
            create(IdentifyResultSchema, await concludeIdentification(context, liveOperation, analyzed, result!)),
        },
        (value) => ({ case: "identify", value }),
      );
    }
    case "analyze":
      return check(await analysisPlan(context, { ...task.value, ignoreCheckpoints }), (value) => ({
        case: "analyze",
        value,
      }));
    case "enroll": {
      const profileId = task.value.gkVoiceprintProfileId!;
      await findProfileToChange(deps, scopeId, profileId);
      return new LiveEnrollment(context, { context: start.context!, profileId }, source.rateHz, report);
    }
    default:
      throw invalid(`${field}.task`, "missing", "exactly one of verify, identify, analyze or enroll must be set");
  }
}

/** A check as a task; `asResult` converts its result. */
const checkTask = <Result>(
  check: LiveCheck<Result>,
  asResult: (result: Result) => LiveResult,
  leftOut: readonly LeftOut[],
): LiveTask => ({
  leftOut,
  get score() {
    return check.score;
  },
  get calmSeconds() {
    return check.calmSeconds;
  },
  async push(samples) {
    const { result } = await check.push(samples);
    return result && asResult(result);
  },
  finish: async () => asResult(await check.finish()),
  close: () => check.close(),
  measures: () => check.measures(),
});

const checkpointOf = (netSpeechSeconds: number, result: PartResult, { candidates }: Part, isFinal: boolean) => ({
  netAudio: duration(netSpeechSeconds),
  decision: result.outcome.decision,
  reason: result.outcome.reason,
  biometricScore: ifKnown(result.scored[0]?.score.raw),
  riskEngineResult: riskResult(partRisk(candidates.kind, result)),
  isFinal,
});
