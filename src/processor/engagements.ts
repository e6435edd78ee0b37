import type { Id } from "../store/port.js";
import { configurationSetOf, engagementOf, scopeOf } from "./context.js";
import type { Dependencies, Implementation } from "./dependencies.js";
import { invalid } from "./failures.js";
import { uniqueId } from "./messages.js";
import { assertName } from "./profiles.js";
import { expireAudio } from "./retention.js";

export const startEngagement: Implementation<"startEngagement"> = async (deps, request) => {
  if (request.customData.length > deps.limits.customData)
    throw invalid(
      "custom_data",
      "too_long",
      `custom_data must have at most ${deps.limits.customData} characters, got ${request.customData.length}`,
    );
  if (request.context!.configsetId !== "") configurationSetOf(deps, request.context);
  const id = await createEngagement(deps, scopeOf(request.context), request.externalId, request.customData);
  return { gkEngagementId: uniqueId(id) };
};

export async function createEngagement(
  deps: Dependencies,
  scopeId: Id,
  externalId: string,
  customData: string,
): Promise<Id> {
  const id = deps.ids.next();
  await deps.store.engagements.create({
    id,
    scopeId,
    externalId: assertName(externalId, "external_id"),
    customData,
    startedAt: deps.clock.now(),
    stoppedAt: null,
  });
  return id;
}

/** Stops the engagement and its open sessions. */
export const stopEngagement: Implementation<"stopEngagement"> = async (deps, request) => {
  const { id, scopeId } = await engagementOf(deps, request.context);
  const at = deps.clock.now();
  // Sessions are stopped before the engagement, so that the call can be repeated if it fails midway.
  await stopSessions(deps, scopeId, id, at);
  if (!(await deps.store.engagements.stop(scopeId, id, at)))
    throw invalid("context.gk_engagement_id", "stopped", "the engagement has already stopped");
  // Also stop sessions that were started in the meantime.
  await stopSessions(deps, scopeId, id, at);
  return { gkEngagementId: uniqueId(id) };
};

async function stopSessions(deps: Dependencies, scopeId: Id, engagementId: Id, at: number): Promise<void> {
  const { sessions } = deps.store;
  const open = (await sessions.ofEngagement(scopeId, engagementId)).filter((session) => session.stoppedAt === null);
  for (const session of open) await sessions.stop(scopeId, session.id, at);
  if (open.length > 0) await expireAudio(deps, scopeId, at);
}
