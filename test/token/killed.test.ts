/** What a box leaves behind that is killed between two writes. */
import { expect, it } from "vitest";
import { createMemoryStore } from "../../src/store/memory.js";
import type { Documents } from "../../src/token/documents.js";
import { createTokenService } from "../../src/token/service.js";
import { createBox, createRuntimeClient, ISSUER } from "./box.js";

/** Documents of a process that is killed right after it has written to this collection. */
function killedAfter(documents: Documents, collection: string): Documents {
  let isKilled = false;
  const living =
    <Rest extends unknown[], T>(write: (collection: string, ...rest: Rest) => Promise<T>) =>
    async (written: string, ...rest: Rest): Promise<T> => {
      if (isKilled) throw new Error("killed");
      const done = await write(written, ...rest);
      isKilled = written === collection;
      return done;
    };
  return {
    ...documents,
    put: living(documents.put),
    insert: living(documents.insert),
    update: living(documents.update),
    delete: living(documents.delete),
  };
}

it.each<[string, (killed: ReturnType<typeof createTokenService>["applications"], of: Of) => Promise<unknown>]>([
  ["an application is deleted", (applications, { applicationId }) => applications.delete(applicationId)],
  ["a client is deleted", (applications, of) => applications.deleteClient(of.applicationId, of.clientId)],
  ["a scope is taken away", (applications, of) => applications.bindScopes(of.applicationId, of.clientId, [])],
])("killed when %s: the tokens end all the same", async (_, change) => {
  const { documents } = createMemoryStore();
  const box = createBox({ documents, startAt: Date.now() });
  const { application, clientId, secret } = await createRuntimeClient(box);
  await box.service.applications.createClient(application.id, { name: "other" });
  const client = { clientId, secret };
  const { access_token } = await box.service.clientCredentials({ client, scope: "bio", address: "127.0.0.1" });
  await box.service.runtime.verify(access_token);

  const clock = { now: box.now };
  const killed = createTokenService({
    documents: killedAfter(documents, "token.applications"),
    issuer: ISSUER,
    clock,
  });
  await expect(change(killed.applications, { applicationId: application.id, clientId })).rejects.toThrow("killed");

  const restarted = createTokenService({ documents, issuer: ISSUER, clock });
  await expect(restarted.runtime.verify(access_token)).rejects.toThrow("the token was revoked");
});

interface Of {
  readonly applicationId: string;
  readonly clientId: string;
}

it("killed when a password is set: what the old one allowed ends all the same", async () => {
  const { documents } = createMemoryStore();
  const { users } = createBox({ documents }).service;
  const { id: accountId } = await users.create({ name: "olga", role: "owner", password: "a long password" });
  await documents.put("oidc.Grant", "grant", { accountId });
  const killed = createTokenService({ documents: killedAfter(documents, "token.users"), issuer: ISSUER });
  await killed.users.change("olga", { password: "another long password" }).catch(() => {});
  expect(await users.authenticate("olga", "another long password")).not.toBeNull();
  expect(await documents.get("oidc.Grant", "grant")).toBeNull();
});
