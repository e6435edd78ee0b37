import type { Documents } from "./documents.js";

/** What users allowed applications and our own pages to do; stored by `oidc-provider`. Codes and tokens of a grant end with it. */
const GRANTS = "oidc.Grant";

export const grantStands = async (documents: Documents, grantId: string): Promise<boolean> =>
  (await documents.get(GRANTS, grantId)) !== null;

/** Ends the codes and tokens of one authorization. */
export const endGrant = (documents: Documents, grantId: string): Promise<boolean> => documents.delete(GRANTS, grantId);

/** Ends all grants of a user except `kept`. A grant lives little more than an hour, so there are few. */
export async function endGrantsOf(documents: Documents, userId: string, kept: string | null): Promise<void> {
  const ended = (await documents.list(GRANTS)).filter(
    ({ id, document }) => id !== kept && (document as { accountId?: string }).accountId === userId,
  );
  await Promise.all(ended.map(({ id }) => documents.delete(GRANTS, id)));
}
