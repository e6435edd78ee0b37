import type { Documents } from "./documents.js";

/** What users allowed applications and pages of ours; `oidc-provider` keeps it. A code or a token of a grant ends with the grant. */
export const GRANTS = "oidc.Grant";

export const grantStands = async (documents: Documents, grantId: string): Promise<boolean> =>
  (await documents.get(GRANTS, grantId)) !== null;

/** All that a user gave, but one. A grant lives for little more than an hour: there are few. */
export async function endGrantsOf(documents: Documents, userId: string, kept: string | null): Promise<void> {
  const ended = (await documents.list(GRANTS)).filter(
    ({ id, document }) => id !== kept && (document as { accountId?: string }).accountId === userId,
  );
  await Promise.all(ended.map(({ id }) => documents.delete(GRANTS, id)));
}
