import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AnalyzeAudioRequest,
  type AnalyzeAudioResultSchema,
  AudioValidity,
  Decision,
  DecisionReason,
} from "../contract/index.js";
import type { Id } from "../store/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import { generalDecision, type Outcome } from "../voiceprint/decision.js";
import { outcomeForValidity } from "../voiceprint/quality-gate.js";
import { fuseRisks, riskFigures } from "../voiceprint/risk.js";
import { risksOf } from "../voiceprint/session-decision.js";
import type { AnalyzedAudio, PartResult } from "./analyzed-audio.js";
import { type AttackResults, wantedAttacks } from "./attacks.js";
import {
  type Candidates,
  candidatesByGroup,
  candidatesOf,
  eachOnce,
  leftOutStatus,
  numberScored,
  profilesToCompare,
} from "./candidates.js";
import { analyzeAndCompare, authenticationPart, fraudPart, type Part, recordCheck } from "./check.js";
import { numberOfMatches, partRisk, scoreOf, voiceprintResult } from "./check-result.js";
import { type CallScope, type OpenContext, openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { audioDetails, calibrationModel, idIfAny, ifKnown, printDetails, riskResult, uniqueId } from "./messages.js";
import { findAudio } from "./recorded-audio.js";

export interface AnalysisTargets {
  readonly persons: Candidates | null;
  /** Set if the call asks about one person only. */
  readonly onePerson: Id | null;
  readonly fraudsters: Candidates | null;
}

export const partsOf = ({ persons, fraudsters }: AnalysisTargets, set: ConfigurationSet): Part[] => [
  ...(persons ? [authenticationPart(persons, set)] : []),
  ...(fraudsters ? [fraudPart(fraudsters, set)] : []),
];

/** Runs several checks on the audio at once: who speaks, is it a known fraudster, is it an attack. */
export const analyzeAudio: Implementation<"analyzeAudio"> = async (deps, request, options) => {
  const context = await openContext(deps, request.context, options);
  const wanted = wantedAttacks(context.engine, request);
  const source = await findAudio(context, request.audio);
  const targets = await analysisTargets(context, request);
  const parts = partsOf(targets, context.set);
  const { analyzed, results, attacks } = await analyzeAndCompare(context, source, request, parts, wanted);
  const result = await concludeAnalysis(context, "AnalyzeAudio", targets, analyzed, results, attacks);
  return { result, ...leftOutStatus(parts.flatMap(({ candidates }) => candidates.leftOut)) };
};

/** Fuses the parts into one result, and keeps it for the session's decision. */
export async function concludeAnalysis(
  context: OpenContext,
  operation: string,
  { persons, onePerson, fraudsters }: AnalysisTargets,
  analyzed: AnalyzedAudio,
  results: readonly PartResult[],
  { synthetic, playback }: AttackResults,
): Promise<MessageInitShape<typeof AnalyzeAudioResultSchema>> {
  const authentication = persons && results[0]!;
  const fraud = fraudsters && results.at(-1)!;
  const risk = fuseRisks(
    risksOf({
      authentication: authentication?.evidence ?? undefined,
      fraud: fraud?.evidence ?? undefined,
      synthetic: synthetic?.evidence,
      playback: playback?.evidence,
    }),
  );
  const figures = risk && riskFigures(risk);
  const attacks = [synthetic, playback].filter((part) => part !== undefined);
  const outcome =
    generalDecision(
      {
        authentication: authentication?.outcome,
        fraud: fraud?.outcome,
        attacks: attacks.map((part) => part.outcome),
      },
      figures?.risk ?? null,
    ) ?? withoutChecks(analyzed.validity);
  const topPerson = authentication?.scored[0];
  const topFraudster = fraud?.scored[0];
  const { model } = context.engine;
  await recordCheck(
    context,
    operation,
    analyzed,
    outcome,
    figures,
    { authentication, fraud, synthetic, playback },
    topPerson?.print.profileId ?? topFraudster?.print.profileId ?? onePerson,
  );
  return {
    gkMediaSegmentId: idIfAny(analyzed.audio.mediaSegmentId),
    gkProcessedAudioId: idIfAny(analyzed.audio.processedAudioId),
    decision: outcome.decision,
    reason: outcome.reason,
    voiceClassScore: ifKnown(analyzed.analysis?.voiceClass),
    riskEngineGlobalResult: riskResult(risk),
    validity: analyzed.validity,
    authenticationResult: authentication
      ? {
          topPersonVoiceprintDetails: topPerson && printDetails(topPerson.print),
          authenticationScore: scoreOf(topPerson),
          ...authentication.outcome,
          numberOfPersonsPrints: numberScored(persons!, authentication.scored),
          riskEngineResult: riskResult(partRisk("person", authentication)),
          numberOfMatches: numberOfMatches(authentication.scored),
        }
      : undefined,
    fraudDetectionResult: fraud
      ? {
          topFraudsterVoiceprintDetails: topFraudster && printDetails(topFraudster.print),
          fraudDetectionScore: scoreOf(topFraudster),
          ...fraud.outcome,
          numberOfFraudstersPrints: numberScored(fraudsters!, fraud.scored),
          riskEngineResult: riskResult(partRisk("fraudster", fraud)),
          numberOfMatches: numberOfMatches(fraud.scored),
        }
      : undefined,
    syntheticSpeechResult: synthetic?.message,
    channelPlaybackResult: playback?.message,
    gkCalibrationModelRevisionId: uniqueId(model.revision),
    audioDetails: audioDetails(analyzed.audio),
    voiceprintResults: [...(authentication?.scored ?? []), ...(fraud?.scored ?? [])].map(voiceprintResult),
    calibrationModelDetails: calibrationModel(model),
  };
}

/** Profile ids may be of persons or of fraudsters: each is compared in the part of its kind. A part without targets is `null`. */
export async function analysisTargets(
  context: CallScope,
  request: Pick<AnalyzeAudioRequest, "gkVoiceprintProfileIds" | "group" | "watchlist">,
): Promise<AnalysisTargets> {
  const { gkVoiceprintProfileIds: list, group, watchlist } = request;
  const given = list ? await profilesToCompare(context, list, "gk_voiceprint_profile_ids") : [];
  const of = async (kind: "person" | "fraudster", target: typeof group, field: string) => {
    const ids = given.filter((found) => found.kind === kind);
    if (target) return candidatesByGroup(context, kind, target, field, ids);
    return ids.length > 0 ? candidatesOf(context, kind, ids) : null;
  };
  const [person, ...others] = eachOnce(given.filter(({ kind }) => kind === "person"));
  return {
    persons: await of("person", group, "group"),
    onePerson: person && !group && others.length === 0 ? person.profileId : null,
    fraudsters: await of("fraudster", watchlist, "watchlist"),
  };
}

/** For a request that asks only about audio quality. */
const withoutChecks = (validity: AudioValidity): Outcome =>
  validity === AudioValidity.AUDIO_OK
    ? { decision: Decision.UNSPECIFIED, reason: DecisionReason.AUDIO_OK }
    : outcomeForValidity(validity);
