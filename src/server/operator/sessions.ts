/** Sessions for the operator: search, list and details with checks and recordings. */
import { AudioValidity, Decision, DecisionReason, SessionType } from "../../contract/index.js";
import type { Operations } from "../../contract/operations.js";
import { partsOfCheck } from "../../processor/check.js";
import type { Check, Id, Session, Store } from "../../store/port.js";
import { defaultConfigurationSetId } from "../../voiceprint/configuration-set.js";
import { attackHalfWidth, halfWidthOf } from "../../voiceprint/decision.js";
import { checkParts } from "../../voiceprint/session-decision.js";
import { holds, searched } from "./page.js";
import type { DECISIONS } from "./search.js";
import type { AudioView, CheckView, DecisionView, Page, SessionDetail, SessionView } from "./view.js";

export interface SessionSearch {
  /** An id (of the session, of a profile in it, or the caller's own), a person, or a part of one; empty for all. */
  readonly text: string;
  readonly decision: (typeof DECISIONS)[number] | null;
  /** Milliseconds since 1970: started at `from` or later, and before `until`. */
  readonly from: number | null;
  readonly until: number | null;
}

/** The most that are read for one page: each decision is fused from its checks. */
const MOST_LOOKED_AT = 300;
const MOST_CHECKS = 100;
const MOST_AUDIO = 100;

export class Sessions {
  constructor(
    readonly store: Pick<Store, "sessions" | "media" | "processed" | "profiles">,
    readonly operations: Pick<Operations, "getSessionDecision">,
  ) {}

  async find(scope: Id, search: SessionSearch, before: Id | null, limit: number): Promise<Page<SessionView>> {
    const { text, decision, from, until } = search;
    const row = async (session: Session): Promise<SessionView | "end" | null> => {
      // A session that was started while the clock was ahead is listed first, by its id, though its start may have been corrected.
      if (from !== null && session.startedAt < from) return session.id < firstIdAt(from) ? "end" : null;
      if (until !== null && session.startedAt >= until) return null;
      const { view, profileIds } = await this.#decided(session);
      const names = [view.id, view.externalId, view.person, view.matchedPerson, ...profileIds];
      return (decision === null || view.decision === decision) && holds(text, ...names) ? view : null;
    };
    const exact = text === "" ? null : await this.store.sessions.get(scope, text);
    if (exact) return searched(async () => [exact], null, limit, MOST_LOOKED_AT, row);
    const start = before ?? (until === null ? null : firstIdAt(until));
    return searched((last, most) => this.store.sessions.list(scope, last, most), start, limit, MOST_LOOKED_AT, row);
  }

  async detail(scope: Id, id: Id): Promise<SessionDetail | null> {
    const { sessions, media, processed } = this.store;
    const session = await sessions.get(scope, id);
    if (!session) return null;
    const { view } = await this.#decided(session);
    const checks = await sessions.checks(scope, id);
    const kept = await media.ofSession(scope, id);
    const audioModels = await processed.ofSession(scope, id);
    const keptIds = new Set(kept.map((one) => one.id));
    const processedMedia = new Set(audioModels.map(({ mediaSegmentId }) => mediaSegmentId));
    const audio: AudioView[] = [
      ...audioModels.map((one) => ({
        id: one.id,
        at: one.createdAt,
        processedFor: one.source === "check" ? ("check" as const) : ("enrollment" as const),
        isKept: keptIds.has(one.mediaSegmentId),
        validity: AudioValidity[one.validity] ?? String(one.validity),
        grossSeconds: one.measures.grossSeconds,
        netSpeechSeconds: one.measures.netSpeechSeconds,
        snrDb: one.measures.snrDb,
        rateHz: one.mediaRateHz,
        channels: one.mediaChannels,
      })),
      ...kept
        .filter((one) => one.partOf === null && !processedMedia.has(one.id))
        .map((one) => ({
          id: one.id,
          at: one.createdAt,
          processedFor: null,
          isKept: true,
          validity: null,
          grossSeconds: null,
          netSpeechSeconds: null,
          snrDb: null,
          rateHz: one.rateHz,
          channels: one.channels,
        })),
    ];
    return {
      ...view,
      engagementId: session.engagementId,
      checks: checks.slice(-MOST_CHECKS).map(checkView),
      audio: audio.sort((one, other) => one.at - other.at).slice(0, MOST_AUDIO),
    };
  }

  /** With the decision that GetSessionDecision gives. */
  async #decided(session: Session): Promise<{ view: SessionView; profileIds: string[] }> {
    const { result } = await this.operations.getSessionDecision({
      context: {
        gkScopeId: { value: session.scopeId },
        gkEngagementId: { value: session.engagementId },
        gkSessionId: { value: session.id },
        configsetId: defaultConfigurationSetId,
      },
    });
    const { riskEngineResult, personId, matchedPersonId, checks } = result!;
    // A session that was used only for enrollment has not failed.
    const { decision, reason } =
      checks.length > 0 ? result! : { decision: Decision.UNSPECIFIED, reason: DecisionReason.UNSPECIFIED };
    const profileIds = checks.flatMap(({ gkVoiceprintProfileId }) => gkVoiceprintProfileId?.value ?? []);
    const view: SessionView = {
      id: session.id,
      type: SessionType[session.type] ?? String(session.type),
      externalId: session.externalId,
      startedAt: session.startedAt,
      stoppedAt: session.stoppedAt,
      person: personId || (profileIds.length > 0 ? await this.#personOf(session) : ""),
      matchedPerson: matchedPersonId,
      decision: Decision[decision] ?? String(decision),
      reason: DecisionReason[reason] ?? String(reason),
      risk: riskEngineResult?.risk ?? null,
      reliability: riskEngineResult?.reliability ?? null,
      checkCount: checks.length,
    };
    return { view, profileIds };
  }

  /** Who was to be compared, if the audio could not be: its sessions belong to this person too. As in a decision, the last one, and no second party. */
  async #personOf({ scopeId, id }: Session): Promise<string> {
    const checks = await this.store.sessions.checks(scopeId, id);
    const ids = checks.flatMap(({ profileId, evidence }) =>
      partsOfCheck(evidence).isSecondParty ? [] : (profileId ?? []),
    );
    const persons = (await this.store.profiles.getMany(scopeId, ids)).filter(({ owner }) => owner.kind === "person");
    const last = ids.findLast((one) => persons.some((person) => person.id === one));
    return persons.find((person) => person.id === last)?.owner.externalId ?? "";
  }
}

/** Ids are UUIDs of version 7: every id made before this time is smaller. */
function firstIdAt(at: number): string {
  const hex = Math.max(0, Math.floor(at)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

export function decisionView(check: Check): DecisionView {
  const { id, at, operation, risk, reliability, sessionId, matchedProfileIds } = check;
  // A fraudster comes after the person whom the caller claimed to be.
  const profileId = (check.decision === Decision.FRAUD && matchedProfileIds?.at(-1)) || check.profileId;
  const decision = Decision[check.decision] ?? String(check.decision);
  const reason = DecisionReason[check.reason] ?? String(check.reason);
  return { id, at, operation, decision, reason, risk, reliability, sessionId, profileId };
}

function checkView(check: Check): CheckView {
  const { evidence, failures } = partsOfCheck(check.evidence);
  const parts = checkParts.flatMap((name) => {
    const [judged, failed] = [evidence[name], failures[name]];
    if (!judged && failed === undefined) return [];
    const half =
      judged &&
      (name === "synthetic" || name === "playback" ? attackHalfWidth(judged.reliability) : halfWidthOf(judged));
    // Without any reliability, no ratio would be enough.
    const failure = half === Number.POSITIVE_INFINITY ? DecisionReason.LOW_RELIABILITY : failed;
    const [start, end] = [check.evidence[`${name}StretchStart`], check.evidence[`${name}StretchEnd`]];
    return [
      {
        name,
        ratio: judged?.llr ?? null,
        // As in the answer of the check: from here on it is a match or an attack, below it first comes a band without a decision.
        threshold: judged ? judged.threshold + half! : null,
        failure: failure === undefined ? null : (DecisionReason[failure] ?? String(failure)),
        strongest: start === undefined || end === undefined ? null : { startSeconds: start, endSeconds: end },
      },
    ];
  });
  return { ...decisionView(check), parts };
}
