import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStore } from "../../src/store/open.js";
import { createTokenService, type TokenService } from "../../src/token/service.js";
import { type PostgresServer, startPostgres } from "../store/postgres-server.js";

const ISSUER = "https://box.example";
const open = async (location: string, sealed: { keys?: string; masterKey?: Uint8Array } = {}) => {
  const store = await openStore(location, sealed);
  return {
    store,
    service: createTokenService({ documents: store.documents, issuer: ISSUER, passwordCost: { n: 1024, r: 8, p: 1 } }),
  };
};

const tokenFor = (service: TokenService, clientId: string, secret: string) =>
  service.clientCredentials({ client: { clientId, secret }, scope: "bio", address: "192.0.2.1" });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-token-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("embedded: secrets, keys, users and registrations outlive the process", { timeout: 180_000 }, async () => {
  const location = join(folder, "store");
  const first = await open(location);
  const application = await first.service.applications.create({
    name: "Bank",
    environment: "dev",
    geography: "eu",
    gkScopes: ["s1"],
  });
  const clientId = application.clients[0]!.id;
  const secret = await first.service.applications.regenerateSecret(application.id, clientId);
  const { access_token: token } = await tokenFor(first.service, clientId, secret);
  await first.service.users.create({ name: "olga", role: "owner", password: "correct horse battery" });
  const registered = await first.service.registrations.register({ name: "Shop", sites: ["306"] });
  await first.service.agents.put("306", 1, { id: "ann", state: "online" });
  await first.store.close();

  const second = await open(location);
  try {
    await second.service.runtime.verify(token, "bio");
    await tokenFor(second.service, clientId, secret);
    expect(await second.service.users.authenticate("olga", "correct horse battery")).toMatchObject({ role: "owner" });
    expect(
      await second.service.registrations.authenticate(registered.registration.clientId, registered.secret),
    ).not.toBeNull();
    expect(await second.service.agents.availability("306", 1)).toEqual({
      availability: true,
      inHOP: true,
      status: "online",
    });
  } finally {
    await second.store.close();
  }
});

describe("PostgreSQL", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  test("replicas share one key ring, see each other's locks, and keep the last client", async () => {
    const url = await server.createDatabase();
    const sealed = { keys: await server.createDatabase(), masterKey: new Uint8Array(32).fill(7) };
    const a = await open(url, sealed);
    const b = await open(url, sealed);
    try {
      const signers = await Promise.all([a, b, a, b].map(({ service }) => service.keyring.signer()));
      expect(new Set(signers.map(({ kid }) => kid)).size).toBe(1);

      const application = await a.service.applications.create({
        name: "Bank",
        environment: "dev",
        geography: "eu",
        gkScopes: ["s1"],
      });
      const other = await b.service.applications.createClient(application.id, { name: "other" });
      const clientId = application.clients[0]!.id;
      const secret = await a.service.applications.regenerateSecret(application.id, clientId);
      await a.service.runtime.verify((await tokenFor(b.service, clientId, secret)).access_token, "bio");
      const next = await b.service.applications.regenerateSecret(application.id, clientId);
      await expect(tokenFor(a.service, clientId, secret)).rejects.toMatchObject({ code: "invalid_client" });
      await tokenFor(a.service, clientId, next);

      const { registration } = await a.service.registrations.register({ name: "Shop", sites: ["306"] });
      await b.service.registrations.lock(registration.clientId);
      expect(await a.service.registrations.active(registration.clientId)).toBeNull();

      const results = await Promise.allSettled([
        a.service.applications.deleteClient(application.id, clientId),
        b.service.applications.deleteClient(application.id, other.id),
      ]);
      expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect((await a.service.applications.get(application.id)).clients).toHaveLength(1);
    } finally {
      await a.store.close();
      await b.store.close();
    }
  });
});
