import { type Context, Hono } from "hono";
import { engagementRoutes } from "../engagement/engagement-routes.js";
import { clientOf } from "./client-authentication.js";
import { knownClient } from "./client-credentials.js";
import { errorResponse, OAuthError } from "./errors.js";
import type { Form } from "./form.js";
import { pageRoutes } from "./interactive/page-routes.js";
import { createAuthorizationFlow } from "./interactive/provider.js";
import { managementRoutes } from "./management-routes.js";
import { oauthRoutes, type RedeemCode } from "./oauth-routes.js";
import type { NodeBindings, TransportOptions } from "./peer-address.js";
import { PLATFORM_SCOPE } from "./scopes.js";
import type { TokenService } from "./service.js";
import { createToolingUser, type ToolingUser } from "./tooling-user.js";
import { addressOf, answerErrors, type Env } from "./transport.js";

/** What a box mounts at its root. */
export interface TokenApp {
  /** Serves every path of the service, interactive ones included; no raw node request is needed. */
  fetch(request: Request, bindings?: NodeBindings): Response | Promise<Response>;
  /** Whether a path belongs to the token service, for servers that serve other paths too. */
  owns(pathname: string): boolean;
  /** Checks `platform-api` tokens for other routes that accept them. */
  readonly toolingUser: ToolingUser;
}

const PREFIXES = ["/oauth2/", "/oauth-server/", "/engagementAPI/", "/management/v1/", "/profile/"];
const PATHS = [
  "/profile",
  "/sign-in",
  "/sign-out",
  "/.well-known/jwks.json",
  "/.well-known/oauth-authorization-server",
];

/** The token endpoints and pages, as an app to mount. */
export function createTokenApp(service: TokenService, options: TransportOptions = {}): TokenApp {
  const app = new Hono<Env>();
  const flow = createAuthorizationFlow(service);
  app.onError(answerErrors(service.audit));
  const toolingUser = createToolingUser(service);

  const redeem = (c: Context<Env>, form: Form, clientId: string, address: string) =>
    flow.redeem(c.req.raw, formOf(form, clientId), (jti) =>
      service.audit({ event: "token-issued", audience: "tooling", clientId, scope: PLATFORM_SCOPE, jti, address }),
    );

  const redeemCode: RedeemCode = async (c, form) => {
    const page = c.req.header("Authorization") === undefined ? service.ownPage(form.get("client_id") ?? "") : null;
    if (page) return redeem(c, form, page.clientId, addressOf(c, options));
    const client = clientOf(c.req.header("Authorization"), form);
    const address = addressOf(c, options);
    const { credential } = await knownClient(service, "tooling", client, address, service.credentials.authenticate);
    if (credential.kind !== "user")
      throw new OAuthError(
        "unauthorized_client",
        "this credential is for the grant client_credentials, not for authorization_code",
      );
    return redeem(c, form, client.clientId, address);
  };

  app.route("/", oauthRoutes(service, { ...options, redeemCode }));
  app.route("/", pageRoutes(service, flow, options));
  app.route("/management/v1", managementRoutes(service, { ...options, toolingUser }));
  app.route("/", engagementRoutes(service, options));

  app.notFound(() => errorResponse(new OAuthError("not_found", "this path does not exist")));

  return {
    toolingUser,
    fetch: (request, bindings = {}) => app.fetch(request, bindings),
    owns: (pathname) => PATHS.includes(pathname) || PREFIXES.some((prefix) => pathname.startsWith(prefix)),
  };
}

/** The form for the authorization code flow. The client is already authenticated, so its secret is not passed on. */
function formOf(form: Form, clientId: string): URLSearchParams {
  const fields = new Map([...form, ["client_id", clientId] as const]);
  fields.delete("client_secret");
  return new URLSearchParams([...fields]);
}
