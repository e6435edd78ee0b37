/** The audio of a check, and the results of its parts. */
import type { AudioValidity } from "../contract/index.js";
import type { AttackScore } from "../engine/port.js";
import type { Id, ProcessedAudio } from "../store/port.js";
import type { JudgedEvidence, Outcome } from "../voiceprint/decision.js";
import type { CheckPart } from "../voiceprint/session-decision.js";
import type { ScoredPrint } from "./candidates.js";
import type { JointAnalysis } from "./joint-analysis.js";
import type { DescribedAudio } from "./messages.js";

export interface PartResult {
  readonly outcome: Outcome;
  /** `null` when nothing was scored. */
  readonly evidence: JudgedEvidence | null;
  /** Best first. */
  readonly scored: readonly JudgedPrint[];
  /** The voice that was scored. */
  readonly voice?: JointAnalysis;
}

/** A score with the threshold that applies in its call. */
export interface JudgedPrint extends ScoredPrint {
  /** The lowest ratio that counts as a match. */
  readonly threshold: number;
  /** The target rate of the call that the threshold was derived from. */
  readonly falseAcceptRate: number;
}

/** Audio as a check processed it. */
export interface AnalyzedAudio {
  readonly audio: DescribedAudio;
  /** The id of a check that may be stored already: an earlier attempt got no answer. */
  readonly checkId?: Id;
  /** Of the second party of a live call, in a channel of its own. */
  readonly isSecondParty?: boolean;
  readonly validity: AudioValidity;
  /** `null` when the audio could not be decoded, or the engine failed. */
  readonly analysis: JointAnalysis | null;
  /** The audio model, if it is not stored yet. It is then stored in one write together with the check. */
  readonly unstored: ProcessedAudio | null;
}

/** The parts of a check that were requested. */
export type CheckedParts = {
  readonly [part in CheckPart]?:
    | {
        readonly outcome: Outcome;
        readonly evidence: JudgedEvidence | null | undefined;
        /** For an attack check: the stretch that sounds most like an attack. */
        readonly strongest?: AttackScore["strongest"];
        /** Best first; absent for checks that compare no prints. */
        readonly scored?: readonly ScoredPrint[];
      }
    | null
    | undefined;
};
