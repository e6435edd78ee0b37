import { type Context, Hono } from "hono";
import { z } from "zod";
import { reportInput, schemaFault } from "../contract/schema-fault.js";
import { AGENT_STATES, businessUnitOf } from "../engagement/agents.js";
import type { Hours } from "../engagement/hours.js";
import { credentialBlocks } from "./config-file.js";
import { NO_STORE, OAuthError } from "./errors.js";
import { readJson } from "./form.js";
import { endGrant } from "./grants.js";
import { endSession, sessionOf, startSession } from "./interactive/session-cookie.js";
import { changeOwnPassword } from "./own-password.js";
import type { TransportOptions } from "./peer-address.js";
import { PLATFORM_SCOPE } from "./scopes.js";
import type { TokenService } from "./service.js";
import type { ToolingUser } from "./tooling-user.js";
import { addressOf, answerErrors, type Env, managed } from "./transport.js";
import type { User } from "./users.js";

type ManagementEnv = Env & { Variables: { user: User } };

const strings = z.array(z.string().max(256)).max(100);
const address = z.string().exactOptional();
const endpoints = z.strictObject({ asr: address, nlu: address, tts: address, dlg: address, bio: address });
const geography = z.strictObject({
  scopes: strings.exactOptional(),
  oauthServerUrl: z.string().exactOptional(),
  endpoints: endpoints.exactOptional(),
});
const application = geography.extend({
  name: z.string(),
  environment: z.string(),
  geography: z.string(),
  gkScopes: strings.exactOptional(),
});
const client = z.strictObject({
  name: z.string(),
  geography: z.string().exactOptional(),
  gkScopes: strings.exactOptional(),
});
const rename = z.strictObject({ name: z.string().exactOptional(), environment: z.string().exactOptional() });
const binding = z.strictObject({ gkScopes: strings });
const registration = z.strictObject({ name: z.string(), sites: strings, scopes: strings.exactOptional() });
const role = z.enum(["owner", "member"]);
const newUser = z.strictObject({ name: z.string(), role, password: z.string() });
const userChange = z.strictObject({
  role: role.exactOptional(),
  disabled: z.boolean().exactOptional(),
  password: z.string().exactOptional(),
});
const ownPassword = z.strictObject({ current: z.string(), password: z.string() });
const credential = z.strictObject({
  kind: z.enum(["service", "user"]),
  label: z.string(),
  redirectUris: strings.exactOptional(),
});
const agent = z.strictObject({ groups: strings.exactOptional(), state: z.enum(AGENT_STATES).exactOptional() });
const windows = z.array(z.tuple([z.string(), z.string()]));
const hours = z.strictObject({
  timeZone: z.string(),
  weekly: z.record(z.string(), windows),
  exceptions: z.record(z.string(), windows).default({}),
});
const rotation = z.strictObject({ revoke: z.boolean().exactOptional() });

async function body<T extends z.ZodType>(c: Context, schema: T): Promise<z.output<T>> {
  const result = schema.safeParse(await readJson(c.req.raw), reportInput);
  if (result.success) return result.data;
  const issue = result.error.issues[0] as z.core.$ZodIssue;
  const { path } = issue;
  throw new OAuthError(
    "invalid_request",
    `${path.join(".") || "the body"}: ${schemaFault(issue)}`,
    path[0] === "gkScopes" ? { refusal: "scopeIds" } : {},
  );
}

/** As JSON; without a value there is nothing to say, and the status is 204. */
const answer = (c: Context, value?: unknown, status: 200 | 201 = 200): Response =>
  value === undefined ? c.body(null, 204, NO_STORE) : c.json(value as object, status, NO_STORE);

/** The management interface, for `platform-api` tokens. It uses the current permissions of the token's user. */
export function managementRoutes(
  service: TokenService,
  options: TransportOptions & { readonly toolingUser: ToolingUser },
): Hono<ManagementEnv> {
  const { applications, users, credentials, registrations, agents, keyring } = service;
  const app = new Hono<ManagementEnv>();
  app.onError(answerErrors(service.audit));

  app.use(async (c, next) => {
    const user = await options.toolingUser(c.req.header("Authorization"));
    c.set("user", user);
    await next();
    if (c.req.method !== "GET") service.audit(managed(c, user.name));
  });

  app.get("/me", (c) => answer(c, c.get("user")));
  app.get("/me/credentials", async (c) => answer(c, await credentials.ofUser(c.get("user"))));
  app.post("/me/credentials", async (c) =>
    answer(c, await credentials.create(c.get("user"), await body(c, credential)), 201),
  );
  app.delete("/me/credentials/:clientId", async (c) =>
    answer(c, await credentials.delete(c.get("user"), c.req.param("clientId"))),
  );
  app.put("/me/password", async (c) => {
    const change = await body(c, ownPassword);
    const session = await sessionOf(c, service);
    const { claims } = await service.tooling.authorize(c.req.header("Authorization"), PLATFORM_SCOPE);
    // The page that changes the password keeps its token, and the browser stays signed in if it was.
    const grant = typeof claims.grant_id === "string" ? claims.grant_id : undefined;
    const changed = await changeOwnPassword(service, c.get("user"), change, addressOf(c, options), grant);
    if (session?.user.id === changed.id) await startSession(c, service, changed);
    return answer(c);
  });
  app.post("/me/sign-out", async (c) => {
    const token = await service.tooling.authorize(c.req.header("Authorization"), PLATFORM_SCOPE);
    const { grant_id: grantId } = token.claims;
    if (typeof grantId === "string") await endGrant(service.documents, grantId);
    else await service.revocations.revoke(token, token.expiresAt);
    await endSession(c, service);
    return answer(c);
  });
  app.all("/me", () => notFound());
  app.all("/me/*", () => notFound());

  // The routes below are for owners only.
  app.use(async (c, next) => {
    if (c.get("user").role !== "owner")
      throw new OAuthError("access_denied", "only owners may do this", { refusal: "ownersOnly" });
    await next();
  });

  app.get("/applications", async (c) => answer(c, await applications.list()));
  app.post("/applications", async (c) => answer(c, await applications.create(await body(c, application)), 201));
  app.get("/applications/:id", async (c) => answer(c, await applications.get(c.req.param("id"))));
  app.patch("/applications/:id", async (c) =>
    answer(c, await applications.rename(c.req.param("id"), await body(c, rename))),
  );
  app.delete("/applications/:id", async (c) => answer(c, await applications.delete(c.req.param("id"))));
  app.get("/applications/:id/geographies/:geography/config.json", async (c) =>
    answer(c, credentialBlocks(await applications.get(c.req.param("id")), c.req.param("geography"))),
  );
  app.put("/applications/:id/geographies/:geography", async (c) =>
    answer(c, await applications.putGeography(c.req.param("id"), c.req.param("geography"), await body(c, geography))),
  );
  app.post("/applications/:id/clients", async (c) =>
    answer(c, await applications.createClient(c.req.param("id"), await body(c, client)), 201),
  );
  app.delete("/applications/:id/clients/:clientId", async (c) =>
    answer(c, await applications.deleteClient(c.req.param("id"), c.req.param("clientId"))),
  );
  app.put("/applications/:id/clients/:clientId/scopes", async (c) => {
    const { gkScopes } = await body(c, binding);
    return answer(c, await applications.bindScopes(c.req.param("id"), c.req.param("clientId"), gkScopes));
  });
  app.post("/applications/:id/clients/:clientId/secret", async (c) => {
    const { id, clientId } = c.req.param();
    return answer(c, { clientId, clientSecret: await applications.regenerateSecret(id, clientId) }, 201);
  });

  app.get("/registrations", async (c) => answer(c, await registrations.list()));
  app.post("/registrations", async (c) => answer(c, await registrations.register(await body(c, registration)), 201));
  app.get("/registrations/:clientId", async (c) => answer(c, await registrations.get(c.req.param("clientId"))));
  app.post("/registrations/:clientId/lock", async (c) => answer(c, await registrations.lock(c.req.param("clientId"))));
  app.post("/registrations/:clientId/reregister", async (c) =>
    answer(c, await registrations.reregister(c.req.param("clientId")), 201),
  );

  app.get("/users", async (c) => answer(c, await users.list()));
  app.post("/users", async (c) => answer(c, await users.create(await body(c, newUser)), 201));
  app.patch("/users/:name", async (c) =>
    answer(c, await service.changeUser(c.req.param("name"), await body(c, userChange))),
  );
  app.delete("/users/:name", async (c) => answer(c, await service.deleteUser(c.req.param("name"))));

  const unitOf = (c: Context): [string, number] => {
    const { site = "", unit = "" } = c.req.param();
    return [site, businessUnitOf(unit)];
  };
  app.get("/business-units", async (c) => answer(c, await agents.list()));
  app.put("/sites/:site/business-units/:unit/agents/:agent", async (c) =>
    answer(c, await agents.put(...unitOf(c), { id: c.req.param("agent"), ...(await body(c, agent)) })),
  );
  app.delete("/sites/:site/business-units/:unit/agents/:agent", async (c) =>
    answer(c, await agents.remove(...unitOf(c), c.req.param("agent"))),
  );
  app.put("/sites/:site/business-units/:unit/hours", async (c) =>
    answer(c, await agents.setHours(...unitOf(c), (await body(c, hours)) as Hours)),
  );
  app.delete("/sites/:site/business-units/:unit/hours", async (c) =>
    answer(c, await agents.setHours(...unitOf(c), null)),
  );

  app.get("/keys", async (c) => answer(c, await keyring.list()));
  app.post("/keys/rotate", async (c) => answer(c, await keyring.rotate(await body(c, rotation)), 201));

  return app;
}

function notFound(): never {
  throw new OAuthError("not_found", "this path does not exist");
}
