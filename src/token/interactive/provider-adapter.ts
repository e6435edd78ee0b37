import type { Adapter, AdapterFactory, AdapterPayload, errors as LibraryErrors } from "oidc-provider";
import { epochSeconds } from "../clock.js";
import { collection } from "../documents.js";
import { PLATFORM_SCOPE } from "../scopes.js";
import type { TokenService } from "../service.js";

/** Keeps the library's sessions, codes and grants in the store's documents. Clients are the profile credentials and our own pages. */
export function createAdapterFactory(
  options: Pick<TokenService, "documents" | "clock" | "credentials" | "issuer" | "ownPage">,
  errors: typeof LibraryErrors,
): AdapterFactory {
  const { documents, clock } = options;
  const idByUid = collection<string>(documents, "oidc.session-uid");

  const stored = (model: string): Adapter => {
    const all = collection<AdapterPayload>(documents, `oidc.${model}`);
    return {
      async upsert(id, payload, expiresIn) {
        const expiresAt = expiresIn ? clock.now() + expiresIn * 1000 : null;
        // Only sessions have one.
        if (payload.uid) await idByUid.put(payload.uid, id, expiresAt);
        await all.put(id, payload, expiresAt);
      },
      find: async (id) => (await all.get(id)) ?? undefined,
      async findByUid(uid) {
        const id = await idByUid.get(uid);
        return (id && (await all.get(id))) || undefined;
      },
      findByUserCode: async () => undefined,
      async consume(id) {
        await all.update(id, (payload) => {
          // Two requests may redeem one code at the same moment: the library checks before either has written.
          if (!payload || payload.consumed) throw new errors.InvalidGrant("the code was already used");
          return { ...payload, consumed: epochSeconds(clock) };
        });
      },
      async destroy(id) {
        await all.delete(id);
      },
      // The library also deletes the grant itself, and without it neither its code nor its token is valid.
      revokeByGrantId: async () => {},
    };
  };

  const clients: Adapter = {
    ...stored("Client"),
    find: (id) => findClient(options, id),
  };

  return (model) => (model === "Client" ? clients : stored(model));
}

export async function findClient(
  { ownPage, credentials, issuer }: Pick<TokenService, "credentials" | "issuer" | "ownPage">,
  id: string,
): Promise<AdapterPayload | undefined> {
  const page = ownPage(id);
  if (page) return client(page.clientId, page.clientId, [issuer + page.path]);
  const credential = await credentials.get(id);
  return credential?.kind === "user"
    ? client(credential.clientId, credential.label, credential.redirectUris)
    : undefined;
}

const client = (clientId: string, name: string, redirectUris: readonly string[]): AdapterPayload => ({
  client_id: clientId,
  client_name: name,
  redirect_uris: [...redirectUris],
  grant_types: ["authorization_code"],
  response_types: ["code"],
  scope: PLATFORM_SCOPE,
  // Our token endpoint has already checked the secret, if there is one.
  token_endpoint_auth_method: "none",
});
