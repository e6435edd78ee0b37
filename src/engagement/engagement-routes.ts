import { Hono } from "hono";
import { clientOf } from "../token/client-authentication.js";
import { invalidRequest, NO_STORE, OAuthError } from "../token/errors.js";
import { readForm } from "../token/form.js";
import type { TransportOptions } from "../token/peer-address.js";
import type { TokenService } from "../token/service.js";
import { addressOf, answerErrors, type Env, onlyMethod } from "../token/transport.js";
import { bearerError } from "../token/verify.js";
import { businessUnitOf } from "./agents.js";

const TOKEN_PATH = "/oauth-server/oauth/token";
const AVAILABILITY_PATH = "/engagementAPI/v2/customer/agentAvailability";

/** The value of a query parameter that may be given once. */
function one(queries: string[] | undefined, name: string): string | undefined {
  if (queries && queries.length > 1) throw invalidRequest(`${name} must be given once`);
  return queries?.[0] === "" ? undefined : queries?.[0];
}

export function engagementRoutes(service: TokenService, options: TransportOptions = {}): Hono<Env> {
  const app = new Hono<Env>();
  app.onError(answerErrors(service.audit));

  app.post(TOKEN_PATH, async (c) => {
    const form = await readForm(c.req.raw);
    const grant = form.get("grant_type");
    if (grant === undefined) throw invalidRequest("grant_type is missing");
    if (grant !== "client_credentials")
      throw new OAuthError("unsupported_grant_type", "grant_type must be client_credentials");
    const client = clientOf(c.req.header("Authorization"), form);
    if (!form.has("client_id")) throw invalidRequest("client_id is missing");
    const response = await service.engagementToken({
      client,
      scope: form.get("scope") ?? null,
      address: addressOf(c, options),
    });
    return c.json(response, 200, NO_STORE);
  });
  app.all(TOKEN_PATH, onlyMethod("POST"));

  app.post(AVAILABILITY_PATH, async (c) => {
    const token = await service.engagement.authorize(c.req.header("Authorization"), "agent-availability");
    // Offline verification cannot tell that a registration is locked, so it is looked up each time.
    if (!(await service.registrations.active(token.clientId)))
      throw bearerError("invalid_token", "the registration is locked");
    const query = c.req.queries();
    const siteId = one(query.siteID, "siteID");
    const unit = one(query.businessUnitID, "businessUnitID");
    const output = one(query.output, "output") ?? "JSON";
    const group = one(query.agentGroupID, "agentGroupID");
    if (siteId === undefined) throw invalidRequest("siteID is missing");
    if (unit === undefined) throw invalidRequest("businessUnitID is missing");
    const businessUnitId = businessUnitOf(unit);
    if (output.toUpperCase() !== "JSON") throw invalidRequest(`output must be JSON, got "${output.slice(0, 64)}"`);
    const { sites } = token.claims as { sites?: unknown };
    if (!Array.isArray(sites) || !sites.includes(siteId))
      throw bearerError("access_denied", "the token does not include this site");
    return c.json(await service.agents.availability(siteId, businessUnitId, group), 200, NO_STORE);
  });
  app.all(AVAILABILITY_PATH, onlyMethod("POST"));
  return app;
}
