import { SessionType } from "../contract/gen/vendor/biosec/v1/sessions_pb.js";
import { assertRunning, configurationSetOf, engagementOf, scopeOf, sessionOf } from "./context.js";
import type { Implementation } from "./dependencies.js";
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
  let engagementId = request.context!.gkEngagementId?.value;
  if (engagementId) {
    const engagement = await engagementOf(deps, request.context);
    if (engagement.stoppedAt !== null)
      throw invalid("context.gk_engagement_id", "stopped", "the engagement has stopped; start a new one");
  } else {
    engagementId = await createEngagement(deps, scopeId, "", "");
  }
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
  return { gkSessionId: uniqueId(id), gkEngagementId: uniqueId(engagementId) };
};

/** Stops the session; its audio is deleted according to the retention settings. */
export const stopSession: Implementation<"stopSession"> = async (deps, request) => {
  const session = await sessionOf(deps, request.context);
  assertRunning(session);
  const at = deps.clock.now();
  if (!(await deps.store.sessions.stop(session.scopeId, session.id, at))) assertRunning({ ...session, stoppedAt: at });
  await expireAudio(deps, session.scopeId, at);
  return { gkSessionId: uniqueId(session.id) };
};
