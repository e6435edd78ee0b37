/** What the webhook, and dialects with JSON, report of a response. */
import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { Decision, EnrollStatus, type ListenResponse, ListenResultSchema } from "../contract/index.js";

/** Names the session of a call, in the form of the contract's JSON. */
export interface SessionContext {
  readonly gkScopeId: { readonly value: string };
  readonly gkEngagementId: { readonly value: string };
  readonly gkSessionId: { readonly value: string };
  readonly configsetId: string;
}

export interface LineMessage {
  /** For requests about the session of the call, such as GetSessionDecision. */
  readonly context: SessionContext;
  readonly type: "checkpoint" | "result" | "dtmf";
  readonly party: string;
  readonly decision?: string;
  readonly enrollStatus?: string;
  readonly digit?: string;
  readonly isFinal?: boolean;
  readonly score?: number;
  /** The contract's result, as its JSON. */
  readonly result?: JsonValue;
}

/** A call that ends without its results. */
export interface FailedCall {
  /** Absent if no session could be opened. */
  readonly context?: SessionContext;
  readonly type: "failed";
  /** A status code of the contract, such as BUSY. */
  readonly status: string;
  readonly reason: string;
}

/** `null` for responses that only report the passing of time. */
export function lineMessageOf({ party, event }: ListenResponse, context: SessionContext): LineMessage | null {
  switch (event.case) {
    case "checkpoint": {
      const { decision, isFinal, biometricScore: score } = event.value;
      return {
        context,
        type: "checkpoint",
        party,
        decision: Decision[decision]!,
        isFinal,
        ...(score !== undefined && { score }),
      };
    }
    case "dtmf":
      return { context, type: "dtmf", party, digit: event.value.digit };
    case "result": {
      const { result } = event.value;
      const outcome =
        result.case === "enroll"
          ? { enrollStatus: EnrollStatus[result.value.enrollStatus]! }
          : result.case === undefined
            ? {}
            : { decision: Decision[result.value.decision]! };
      return { context, type: "result", party, ...outcome, result: toJson(ListenResultSchema, event.value) };
    }
    default:
      return null;
  }
}
