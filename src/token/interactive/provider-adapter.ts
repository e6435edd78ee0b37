import type { Adapter, AdapterFactory, AdapterPayload, errors as LibraryErrors } from "oidc-provider";
import { collection } from "../documents.js";
import { PLATFORM_SCOPE } from "../scopes.js";
import type { TokenService } from "../service.js";

interface GrantMembers {
  readonly members: readonly { readonly model: string; readonly id: string }[];
}

/**
 * What the library keeps (sessions, codes, grants), in the store's documents; clients are the profile credentials and our own pages.
 * `grantSeconds` is how long a grant lives.
 */
export function createAdapterFactory(
  options: Pick<TokenService, "documents" | "clock" | "credentials" | "issuer" | "ownPage">,
  errors: typeof LibraryErrors,
  grantSeconds: number,
): AdapterFactory {
  const { documents, clock, credentials, issuer } = options;
  const membersOf = collection<GrantMembers>(documents, "oidc.grant-members");
  const idByUid = collection<string>(documents, "oidc.session-uid");
  const entries = (model: string) => collection<AdapterPayload>(documents, `oidc.${model}`);

  const stored = (model: string): Adapter => {
    const all = entries(model);
    return {
      async upsert(id, payload, expiresIn) {
        const expiresAt = expiresIn ? clock.now() + expiresIn * 1000 : null;
        if (payload.uid && model === "Session") await idByUid.put(payload.uid, id, expiresAt);
        if (payload.grantId) {
          // What is there keeps its expiry; made here, an entry has one: a grant's members go with it at the latest.
          await membersOf.insert(payload.grantId, { members: [] }, clock.now() + grantSeconds * 1000);
          await membersOf.update(payload.grantId, (before) => ({
            members: [...(before?.members ?? []).filter((other) => other.id !== id), { model, id }],
          }));
        }
        await all.put(id, payload, expiresAt);
      },
      find: async (id) => (await all.get(id)) ?? undefined,
      async findByUid(uid) {
        const id = await idByUid.get(uid);
        return id === null ? undefined : ((await all.get(id)) ?? undefined);
      },
      findByUserCode: async () => undefined,
      async consume(id) {
        let first = false;
        await all.update(id, (payload) => {
          first = payload !== null && !payload.consumed;
          return first ? { ...payload, consumed: Math.floor(clock.now() / 1000) } : undefined;
        });
        // Two requests with one code at the same moment: the library looked before either had written.
        if (!first) throw new errors.InvalidGrant("the code was used already");
      },
      async destroy(id) {
        await all.delete(id);
      },
      async revokeByGrantId(grantId) {
        const grant = await membersOf.get(grantId);
        await Promise.all((grant?.members ?? []).map(({ model: of, id }) => entries(of).delete(id)));
        await membersOf.delete(grantId);
      },
    };
  };

  const clients: Adapter = {
    ...stored("Client"),
    async find(id) {
      const page = options.ownPage(id);
      if (page) return client(page.clientId, page.clientId, [issuer + page.path]);
      const credential = await credentials.get(id);
      return credential?.kind === "user"
        ? client(credential.clientId, credential.label, credential.redirectUris)
        : undefined;
    },
  };

  return (model) => (model === "Client" ? clients : stored(model));
}

const client = (clientId: string, name: string, redirectUris: readonly string[]): AdapterPayload => ({
  client_id: clientId,
  client_name: name,
  redirect_uris: [...redirectUris],
  grant_types: ["authorization_code"],
  response_types: ["code"],
  scope: PLATFORM_SCOPE,
  // Our token endpoint has checked the secret, where there is one, before the library sees the request.
  token_endpoint_auth_method: "none",
});
