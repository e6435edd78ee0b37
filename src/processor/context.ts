/** Looks up a request's context: the ids must exist in the scope, belong together, and not be stopped. */
import type { Context } from "../contract/index.js";
import type { Engine } from "../engine/port.js";
import type { Engagement, Session } from "../store/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import type { Dependencies, OperationOptions } from "./dependencies.js";
import { invalid, notInScope } from "./failures.js";

/** What the steps of an operation work with. */
export interface CallScope {
  readonly deps: Dependencies;
  readonly options: OperationOptions;
  readonly scopeId: string;
}

/** The same for an operation in a running session. */
export interface OpenContext extends CallScope {
  readonly session: Session;
  readonly set: ConfigurationSet;
  /** The engine of the model that the scope's new prints use. */
  readonly engine: Engine;
}

export const scopeOf = (context: Context | undefined): string => context!.gkScopeId!.value;

export async function openContext(
  deps: Dependencies,
  context: Context | undefined,
  options: OperationOptions,
): Promise<OpenContext> {
  const set = configurationSetOf(deps, context);
  const session = await sessionOf(deps, context);
  assertRunning(session);
  return { deps, options, scopeId: session.scopeId, session, set, engine: deps.models.of(session.scopeId) };
}

export function configurationSetOf(deps: Dependencies, context: Context | undefined): ConfigurationSet {
  const set = deps.configurationSets.get(context!.configsetId);
  if (!set) throw invalid("context.configset_id", "unknown", `there is no configuration set "${context!.configsetId}"`);
  return set;
}

/** The session, running or stopped. */
export async function sessionOf(deps: Dependencies, context: Context | undefined): Promise<Session> {
  const session = await deps.store.sessions.get(scopeOf(context), context!.gkSessionId!.value);
  if (!session) throw notInScope("context.gk_session_id", "session", context!.gkSessionId!.value);
  const engagementId = context!.gkEngagementId?.value;
  if (engagementId && session.engagementId !== engagementId)
    throw invalid("context.gk_engagement_id", "mismatch", "the session belongs to another engagement");
  return session;
}

export function assertRunning(session: Session): void {
  if (session.stoppedAt !== null)
    throw invalid("context.gk_session_id", "stopped", "the session has already stopped; start a new one");
}

/** For slow operations: audio stored after its session stopped would never be deleted with it. */
export async function assertStillRunning(deps: Dependencies, { scopeId, id }: Session): Promise<void> {
  const session = await deps.store.sessions.get(scopeId, id);
  if (session) assertRunning(session);
}

export async function engagementOf(deps: Dependencies, context: Context | undefined): Promise<Engagement> {
  const engagement = await deps.store.engagements.get(scopeOf(context), context!.gkEngagementId!.value);
  if (!engagement) throw notInScope("context.gk_engagement_id", "engagement", context!.gkEngagementId!.value);
  return engagement;
}

/** Engagement and session are optional here, but if given they must exist. */
export async function checkOptionalContext(deps: Dependencies, context: Context | undefined): Promise<string> {
  if (context!.configsetId !== "") configurationSetOf(deps, context);
  if (context!.gkSessionId?.value) await sessionOf(deps, context);
  else if (context!.gkEngagementId?.value) await engagementOf(deps, context);
  return scopeOf(context);
}
