import type { Documents } from "./documents.js";

/** What users allowed applications and our own pages to do; stored by `oidc-provider`. Codes and tokens of a grant end with it. */
const GRANTS = "oidc.Grant";

export const grantStands = async (documents: Documents, grantId: string): Promise<boolean> =>
  (await documents.get(GRANTS, grantId)) !== null;

/** Ends the codes and tokens of one authorization. */
export const endGrant = (documents: Documents, grantId: string): Promise<boolean> => documents.delete(GRANTS, grantId);

/** Ends the grants of a user: all except `kept`, or only those of one client. A grant lives little more than an hour, so there are few. */
export async function endGrantsOf(
  documents: Documents,
  userId: string,
  { kept, clientId }: { readonly kept?: string | undefined; readonly clientId?: string },
): Promise<void> {
  const ended = (await documents.list(GRANTS)).filter(({ id, document }) => {
    const grant = document as { accountId?: string; clientId?: string };
    return id !== kept && grant.accountId === userId && (clientId === undefined || grant.clientId === clientId);
  });
  await Promise.all(ended.map(({ id }) => documents.delete(GRANTS, id)));
}
