import type { IncomingMessage } from "node:http";
import type { Context } from "hono";
import { decodeJwt } from "jose";
import type Provider from "oidc-provider";
import type { AdapterPayload, InteractionResults } from "oidc-provider";
import { LIFETIMES } from "../access-token.js";
import { collection } from "../documents.js";
import { errorResponse, invalidRequest, NO_STORE, OAuthError } from "../errors.js";
import { readText } from "../form.js";
import { PLATFORM_SCOPE } from "../scopes.js";
import type { TokenService } from "../service.js";
import type { Env } from "../transport.js";
import { answerOf, nodePair } from "./node-bridge.js";
import { errorPage, htmlHeaders, LIBRARY_PAGE_HEADERS } from "./pages.js";
import { createAdapterFactory } from "./provider-adapter.js";
import { wordsFor } from "./strings.js";

const INTERACTION_S = 600;
const CODE_S = 60;
const GRANT_S = LIFETIMES.tooling + INTERACTION_S;
const SESSION_COOKIE = "vivavoce_authorization";

/** The question a signed-in user is asked, or has answered. */
export interface Interaction {
  readonly uid: string;
  readonly prompt: "login" | "consent";
  readonly clientId: string;
  readonly redirectUri: string;
  readonly accountId: string | undefined;
}

/** The authorization code flow. `oidc-provider` checks requests, codes and PKCE; sign-in and consent are our own pages. */
export type AuthorizationFlow = ReturnType<typeof createAuthorizationFlow>;

type Library = typeof import("oidc-provider");

function signInPolicy({ errors, interactionPolicy }: Library) {
  const policy = interactionPolicy.base();
  const login = policy.get("login");
  login?.checks.clear();
  // Our own browser session knows who is signed in. The library asks every time, and our page answers at once if it can.
  login?.checks.add(
    new interactionPolicy.Check("sign_in", "the user must sign in first", "login_required", (ctx) => {
      // The library ignores unknown scopes; we refuse them.
      const { scope = "" } = ctx.oidc.params as { scope?: string };
      if (scope !== PLATFORM_SCOPE) throw new errors.InvalidScope(`scope must be ${PLATFORM_SCOPE}`, scope);
      return !ctx.oidc.result?.login;
    }),
  );
  return policy;
}

/**
 * Loaded only when a user signs in, because the library is large. On Node 20 it prints one line saying that it needs Node 22.
 * Everything we use is tested on Node 20, and the line would break a JSON log, so it is dropped; other output is passed on.
 */
async function loadLibrary(): Promise<Library> {
  const { warn } = console;
  console.warn = (...said: unknown[]) => {
    if (!String(said[0]).includes("oidc-provider WARNING: Unsupported runtime")) warn.apply(console, said);
  };
  try {
    return await import("oidc-provider");
  } finally {
    console.warn = warn;
  }
}

/** What the library throws if a sign-in has expired, or belongs to another browser. */
const EXPIRED = "SessionNotFound";

const NO_SUCH_CODE = "the code is wrong, has expired or was already used";

export const signInExpired = (): OAuthError =>
  invalidRequest("the sign-in has expired or was started in another browser", "signInExpired");

/** Errors by their request that we answer. The library answers them itself, and does not say what failed. */
type Failures = WeakMap<IncomingMessage, Error>;

async function createProvider(service: TokenService, failures: Failures): Promise<Provider> {
  // The library needs URL.parse, which the first releases of Node 20 lack.
  if (!("parse" in URL))
    throw new OAuthError("server_error", `sign-in needs a newer Node.js, with URL.parse, got ${process.version}`, {
      status: 501,
    });
  const library = await loadLibrary();
  const { issuer, audiences, keyring } = service;
  const jwks = await keyring.privateJwks();
  const algorithm = (await keyring.signer()).algorithm;
  const cookieKeys = collection<{ keys: string[] }>(service.documents, "oidc.cookie-keys");
  await cookieKeys.insert("current", { keys: [Buffer.from(service.random.bytes(32)).toString("base64url")] });

  const provider = new library.Provider(issuer, {
    adapter: createAdapterFactory(service, library.errors),
    jwks: jwks as never,
    clientDefaults: { id_token_signed_response_alg: algorithm as never },
    enabledJWA: { idTokenSigningAlgValues: [algorithm as never] },
    responseTypes: ["code"],
    scopes: [PLATFORM_SCOPE],
    claims: {},
    subjectTypes: ["public"],
    clientAuthMethods: ["none"],
    allowOmittingSingleRegisteredRedirectUri: false,
    enableHttpPostMethods: false,
    pkce: { required: () => true },
    routes: {
      authorization: "/oauth2/authorize",
      token: "/oauth2/token",
      jwks: "/oauth2/jwks",
      end_session: "/oauth2/session/end",
    },
    cookies: {
      keys: (await cookieKeys.get("current"))?.keys ?? [],
      names: { session: SESSION_COOKIE, interaction: "vivavoce_interaction", resume: "vivavoce_resume" },
      long: { httpOnly: true, sameSite: "lax", path: "/oauth2" },
      short: { httpOnly: true, sameSite: "lax" },
    },
    ttl: {
      AccessToken: LIFETIMES.tooling,
      AuthorizationCode: CODE_S,
      Grant: GRANT_S,
      Interaction: INTERACTION_S,
      Session: INTERACTION_S,
      IdToken: CODE_S,
    },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resourceOf(audiences.tooling),
        useGrantedResource: () => true,
        getResourceServerInfo: async (_ctx, resource) => {
          // Nobody could consent to another: the question would come again and again.
          if (resource !== resourceOf(audiences.tooling)) throw new library.errors.InvalidTarget();
          const { algorithm: alg, kid } = await keyring.signer();
          return {
            scope: PLATFORM_SCOPE,
            audience: audiences.tooling,
            accessTokenFormat: "jwt",
            accessTokenTTL: LIFETIMES.tooling,
            jwt: { sign: { alg: alg as never, kid } },
          };
        },
      },
    },
    interactions: {
      policy: signInPolicy(library),
      url: (_ctx, interaction) => `/oauth2/interaction/${interaction.uid}`,
    },
    expiresWithSession: () => false,
    // Consent covers one authorization; earlier consent is not reused.
    loadExistingGrant: async (ctx) => {
      const grantId = ctx.oidc.result?.consent?.grantId;
      return grantId ? ctx.oidc.provider.Grant.find(grantId) : undefined;
    },
    findAccount: async (ctx, sub) => {
      const user = await service.userOf(ctx.oidc.client?.clientId ?? "", sub);
      return user ? { accountId: sub, claims: () => ({ sub }) } : undefined;
    },
    extraTokenClaims: (_ctx, token) => ("grantId" in token ? { grant_id: token.grantId } : undefined),
    renderError: (ctx, out, error) => {
      if (error.name === EXPIRED) failures.set(ctx.req, signInExpired());
      ctx.type = "html";
      ctx.set(htmlHeaders());
      ctx.body = errorPage(wordsFor(ctx.get("Accept-Language")), {
        detail: String(out.error_description ?? out.error),
      });
    },
  });
  provider.on("server_error", ({ req }, error) => failures.set(req, error));
  return provider;
}

/** A resource indicator must be an absolute URI without a fragment; the token itself carries our audience. */
export const resourceOf = (audience: string): string => `urn:${audience}`;

export function createAuthorizationFlow(service: TokenService) {
  let current: { provider: Promise<Provider>; kids: string } | null = null;
  const failures: Failures = new WeakMap();
  const codes = collection<AdapterPayload>(service.documents, "oidc.AuthorizationCode");

  /** The library reads its keys only once, so a new key needs a new instance. All lasting state is in the store. */
  async function provider(): Promise<Provider> {
    const kids = (await service.keyring.jwks()).keys.map(({ kid }) => kid).join();
    if (current?.kids !== kids) current = { provider: createProvider(service, failures), kids };
    try {
      return await current.provider;
    } catch (error) {
      current = null;
      throw error;
    }
  }

  /** The library's answer; rejects with the error that it did not expect, such as one of the store. */
  async function libraryAnswer({ incoming, outgoing }: ReturnType<typeof nodePair>): Promise<Response> {
    for (const [name, value] of Object.entries(LIBRARY_PAGE_HEADERS)) outgoing.setHeader(name, value);
    const answer = await answerOf((await provider()).callback(), incoming, outgoing);
    const failure = failures.get(incoming);
    if (failure) throw failure;
    return answer;
  }

  async function details(request: Request) {
    const { incoming, outgoing } = nodePair(request, service.issuer);
    const library = await provider();
    return { library, incoming, outgoing, found: await library.interactionDetails(incoming, outgoing) };
  }

  /** Answers the question, and returns the address at which the authorization goes on. */
  async function answered(
    request: Request,
    answer: (library: Provider, clientId: string) => Promise<InteractionResults> | InteractionResults,
    /** Consent is added to the sign-in that it follows. A sign-in must not keep the consent of another user before it. */
    mergeWithLastSubmission = false,
  ): Promise<string> {
    const { library, incoming, outgoing, found } = await details(request);
    const result = await answer(library, String(found.params.client_id));
    return library.interactionResult(incoming, outgoing, result, { mergeWithLastSubmission });
  }

  const login = (accountId: string) => ({ login: { accountId, remember: false } });

  async function newGrant(library: Provider, clientId: string, userId: string) {
    const grant = new library.Grant({ accountId: userId, clientId });
    grant.addOIDCScope(PLATFORM_SCOPE);
    grant.addResourceScope(resourceOf(service.audiences.tooling), PLATFORM_SCOPE);
    return { consent: { grantId: await grant.save() } };
  }

  return {
    /** The library's own endpoints: authorize, resume and end of session. Only for somebody who has signed in. */
    async handle(c: Context<Env>): Promise<Response> {
      const pair = nodePair(c.req.raw, service.issuer, c.req.method === "POST" ? await readText(c.req.raw) : "");
      const { headers } = pair.incoming;
      if (c.req.path === "/oauth2/authorize" && headers.cookie) {
        // Our browser session says who is signed in; the library's own session lasts for one authorization only.
        headers.cookie = headers.cookie
          .split("; ")
          .filter((cookie) => !cookie.startsWith(SESSION_COOKIE))
          .join("; ");
      }
      return libraryAnswer(pair);
    },

    /** The token endpoint, for a client whose secret was already checked. */
    async redeem(request: Request, form: URLSearchParams, issued: (jti: string) => void): Promise<Response> {
      // Anybody may send codes to our own pages. The library takes many times as long to find out that there is no such code.
      const code = form.get("code");
      if (code !== null && !(await codes.get(code))) throw new OAuthError("invalid_grant", NO_SUCH_CODE);
      const pair = nodePair(request, service.issuer, form.toString());
      delete pair.incoming.headers.authorization;
      // The origin does not matter here: the code, the verifier and (except for our own pages) the secret are checked.
      delete pair.incoming.headers.origin;
      const answer = await libraryAnswer(pair);
      const body = (await answer.json()) as Record<string, unknown>;
      if (!answer.ok) {
        const known = [
          "invalid_request",
          "invalid_grant",
          "unauthorized_client",
          "invalid_scope",
          "invalid_target",
        ] as const;
        const refused = known.find((name) => name === body.error) ?? "invalid_grant";
        return errorResponse(new OAuthError(refused, String(body.error_description ?? NO_SUCH_CODE)));
      }
      const { access_token, expires_in, scope } = body;
      issued(decodeJwt(String(access_token)).jti ?? "");
      return Response.json({ access_token, expires_in, scope, token_type: "bearer" }, { headers: NO_STORE });
    },

    async interaction(request: Request): Promise<Interaction | null> {
      try {
        const { found } = await details(request);
        const { client_id: clientId, redirect_uri: redirectUri } = found.params as Record<string, string>;
        return {
          uid: found.uid,
          prompt: found.prompt.name === "login" ? "login" : "consent",
          clientId: clientId ?? "",
          redirectUri: redirectUri ?? "",
          accountId: found.session?.accountId,
        };
      } catch (error) {
        if (error instanceof Error && error.name === EXPIRED) return null;
        throw error;
      }
    },

    signedIn: (request: Request, userId: string) => answered(request, () => login(userId)),
    /** Sign-in and consent in one step, for our own pages: they need no consent. */
    signedInToOwnPage: (request: Request, userId: string) =>
      answered(request, async (library, clientId) => ({
        ...login(userId),
        ...(await newGrant(library, clientId, userId)),
      })),
    consented: (request: Request, userId: string) =>
      answered(request, (library, clientId) => newGrant(library, clientId, userId), true),
    denied: (request: Request, description: string) =>
      answered(request, () => ({ error: "access_denied", error_description: description })),
  };
}
