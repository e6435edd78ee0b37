/** What a check has heard, and what came of each of its parts. */
import type { AudioValidity } from "../contract/gen/vendor/biosec/v1/common_pb.js";
import type { AttackScore } from "../engine/port.js";
import type { ProcessedAudio } from "../store/port.js";
import type { JudgedEvidence, Outcome } from "../voiceprint/decision.js";
import type { CheckPart } from "../voiceprint/session-decision.js";
import type { ScoredPrint } from "./candidates.js";
import type { JointAnalysis } from "./joint-hearing.js";
import type { DescribedAudio } from "./messages.js";

export interface PartResult {
  readonly outcome: Outcome;
  /** `null` when nothing was scored. */
  readonly evidence: JudgedEvidence | null;
  /** Best first. */
  readonly scored: readonly JudgedPrint[];
  /** That was scored. */
  readonly voice?: JointAnalysis;
}

/** A score beside what it has to reach in its call. */
export interface JudgedPrint extends ScoredPrint {
  /** The ratio from which on it is a match. */
  readonly threshold: number;
  /** The target of the call that the threshold keeps. */
  readonly falseAcceptRate: number;
}

/** Audio, as a check has heard it. */
export interface HeardAudio {
  readonly audio: DescribedAudio;
  readonly validity: AudioValidity;
  /** `null` when the audio could not be decoded, or the engine failed. */
  readonly analysis: JointAnalysis | null;
  /** What was heard, where it is not stored yet: it is, in one write with the check. */
  readonly unstored: ProcessedAudio | null;
}

/** The parts of a check, as far as they were asked for. */
export type CheckedParts = {
  readonly [part in CheckPart]?:
    | {
        readonly outcome: Outcome;
        readonly evidence: JudgedEvidence | null | undefined;
        /** Of an attack check: where it sounds most like one. */
        readonly strongest?: AttackScore["strongest"];
        /** Best first; absent where nothing is compared with prints. */
        readonly scored?: readonly ScoredPrint[];
      }
    | null
    | undefined;
};
