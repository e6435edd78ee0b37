import { type Context, SessionType } from "../contract/index.js";
import { assertRunning, configurationSetOf, engagementOf, scopeOf, sessionOf } from "./context.js";
import type { Dependencies, Implementation } from "./dependencies.js";
import { createEngagement } from "./engagements.js";
import { invalid } from "./failures.js";
import { uniqueId } from "./messages.js";
import { assertName } from "./profiles.js";
import { expireAudio } from "./retention.js";

export const startSession: Implementation<"startSession"> = async (deps, request) => {
  const scopeId = scopeOf(request.context);
  const externalId = assertName(request.externalId, "external_id");
  const claimedPersonId = assertName(request.claimedPersonId, "claimed_person_id");
  if (SessionType[request.sessionType] === undefined)
    throw invalid("session_type", "unknown", `session_type must be 1 to 5, got ${request.sessionType}`);
  if (request.context!.configsetId !== "") configurationSetOf(deps, request.context);
  const given = request.context!.gkEngagementId?.value;
  if (given) await assertEngaged(deps, request.context);
  const engagementId = given || (await createEngagement(deps, scopeId, "", ""));
  const id = deps.ids.next();
  await deps.store.sessions.create({
    id,
    scopeId,
    engagementId,
    type: request.sessionType,
    externalId,
    claimedPersonId,
    startedAt: deps.clock.now(),
    stoppedAt: null,
  });
  // If the engagement was stopped at the same moment, nobody else would stop this session.
  if (given)
    await assertEngaged(deps, request.context).catch(async (error: unknown) => {
      await deps.store.sessions.stop(scopeId, id, deps.clock.now());
      throw error;
    });
  return { gkSessionId: uniqueId(id), gkEngagementId: uniqueId(engagementId) };
};

async function assertEngaged(deps: Dependencies, context: Context | undefined): Promise<void> {
  const { stoppedAt } = await engagementOf(deps, context);
  if (stoppedAt !== null)
    throw invalid("context.gk_engagement_id", "stopped", "the engagement has stopped; start a new one");
}

/** Stops the session; its audio is deleted according to the retention settings. */
export const stopSession: Implementation<"stopSession"> = async (deps, request) => {
  const session = await sessionOf(deps, request.context);
  assertRunning(session);
  const at = deps.clock.now();
  if (!(await deps.store.sessions.stop(session.scopeId, session.id, at))) assertRunning({ ...session, stoppedAt: at });
  await expireAudio(deps, session.scopeId, at);
  return { gkSessionId: uniqueId(session.id) };
};
