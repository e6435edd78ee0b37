import type { Context } from "hono";
import { Hono } from "hono";
import { authenticated, clientOf } from "./client-authentication.js";
import { invalidRequest, NO_STORE, OAuthError } from "./errors.js";
import { type Form, readForm } from "./form.js";
import type { TransportOptions } from "./peer-address.js";
import { PLATFORM_SCOPE, RUNTIME_SCOPES } from "./scopes.js";
import type { TokenService } from "./service.js";
import { introspect, revoke } from "./token-status.js";
import { addressOf, answerErrors, type Env, onlyMethod } from "./transport.js";

/** Redeems an authorization code; the form has already been read. */
export type RedeemCode = (c: Context<Env>, form: Form) => Promise<Response>;

/** The runtime and tooling token endpoint, introspection, revocation, the published keys, and the metadata of RFC 8414. */
export function oauthRoutes(service: TokenService, options: TransportOptions & { redeemCode: RedeemCode }): Hono<Env> {
  const app = new Hono<Env>();
  app.onError(answerErrors(service.audit));

  app.post("/oauth2/token", async (c) => {
    const form = await readForm(c.req.raw);
    const grant = form.get("grant_type");
    if (grant === undefined) throw invalidRequest("grant_type is missing");
    if (grant === "authorization_code") return options.redeemCode(c, form);
    if (grant !== "client_credentials")
      throw new OAuthError("unsupported_grant_type", "grant_type must be client_credentials or authorization_code");
    const client = clientOf(c.req.header("Authorization"), form);
    const response = await service.clientCredentials({
      client,
      scope: form.get("scope") ?? null,
      address: addressOf(c, options),
    });
    return c.json(response, 200, NO_STORE);
  });
  app.all("/oauth2/token", onlyMethod("POST"));

  const asked = async (c: Context<Env>) => {
    const form = await readForm(c.req.raw);
    const client = clientOf(c.req.header("Authorization"), form);
    const known = await authenticated(service, client, addressOf(c, options));
    const token = form.get("token");
    if (token === undefined) throw invalidRequest("token is missing");
    return { known, token };
  };
  app.post("/oauth2/introspect", async (c) => {
    const { known, token } = await asked(c);
    return c.json(await introspect(service, known, token), 200, NO_STORE);
  });
  app.all("/oauth2/introspect", onlyMethod("POST"));
  app.post("/oauth2/revoke", async (c) => {
    const { known, token } = await asked(c);
    await revoke(service, known, token);
    return c.body(null, 200, NO_STORE);
  });
  app.all("/oauth2/revoke", onlyMethod("POST"));

  const jwks = async (c: Context<Env>): Promise<Response> =>
    c.json(await service.keyring.jwks(), 200, {
      "Cache-Control": "public, max-age=60",
      "Content-Type": "application/jwk-set+json",
    });
  app.get("/oauth2/jwks", jwks);
  app.get("/.well-known/jwks.json", jwks);

  app.get("/.well-known/oauth-authorization-server", (c) =>
    c.json({
      issuer: service.issuer,
      authorization_endpoint: `${service.issuer}/oauth2/authorize`,
      token_endpoint: `${service.issuer}/oauth2/token`,
      jwks_uri: `${service.issuer}/oauth2/jwks`,
      scopes_supported: [...RUNTIME_SCOPES, PLATFORM_SCOPE],
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: ["client_credentials", "authorization_code"],
      introspection_endpoint: `${service.issuer}/oauth2/introspect`,
      revocation_endpoint: `${service.issuer}/oauth2/revoke`,
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
      introspection_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
      revocation_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
    }),
  );
  return app;
}
