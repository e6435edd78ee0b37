/** A store that keeps records in tables. */
import { type Guard, refuseWhenClosed } from "../closed.js";
import type { Store } from "../port.js";
import type { RecordContext } from "./context.js";
import { createDocuments } from "./documents.js";
import { createGroups } from "./groups.js";
import { createJobs, type OtherPages } from "./jobs.js";
import { createOwners, createProfiles } from "./profiles.js";
import { createMedia, createProcessed } from "./recordings.js";
import { createEngagements, createSessions } from "./sessions.js";

export function createRecordStore(
  context: RecordContext,
  { others = null, ...guard }: Guard & { readonly others?: OtherPages | null } = {},
): Store {
  const { jobs, stop } = createJobs(context, others);
  let open = true;
  let closing: Promise<void> | null = null;
  const parts = {
    engagements: createEngagements(context),
    sessions: createSessions(context),
    media: createMedia(context),
    processed: createProcessed(context),
    owners: createOwners(context),
    profiles: createProfiles(context),
    groups: createGroups(context),
    jobs,
    documents: createDocuments(context),
  };
  return {
    ...refuseWhenClosed(parts, () => !open, guard),
    close() {
      closing ??= stop().then(() => {
        open = false;
        context.db.close();
      });
      return closing;
    },
  };
}
