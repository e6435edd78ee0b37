import { createHash } from "node:crypto";
import { type Context, Hono } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { stackOf } from "../../contract/error-causes.js";
import { CallRates } from "../call-rates.js";
import { throttled } from "../client-credentials.js";
import type { CredentialKind } from "../credentials.js";
import { invalidRequest, OAuthError } from "../errors.js";
import { type Form, readForm } from "../form.js";
import { endGrantsOf } from "../grants.js";
import { OPERATOR_PAGE } from "../own-pages.js";
import { changeOwnPassword } from "../own-password.js";
import type { TransportOptions } from "../peer-address.js";
import type { TokenService } from "../service.js";
import { type BrowserSession, sameText } from "../sessions.js";
import { networkOf } from "../throttle.js";
import { addressOf, type Env, serverFailed } from "../transport.js";
import { normalName, type User } from "../users.js";
import { type Beginning, beginningOf, signedInTo } from "./beginning.js";
import {
  consentPage,
  type EnteredCredential,
  errorPage,
  htmlHeaders,
  profilePage,
  signInPage,
  type Trouble,
} from "./pages.js";
import { type AuthorizationFlow, type Interaction, signInExpired } from "./provider.js";
import { cookieOptions, endSession, sessionOf, startSession } from "./session-cookie.js";
import { type Words, wordsFor } from "./strings.js";

/** An authorization that begins is stored for ten minutes. */
const SIGN_INS_PER_SECOND = 1;
const SIGN_INS_AT_ONCE = 60;
const LONGEST_QUERY = 4000;

/** Ties the sign-in form to a browser that has no session yet. */
const FORM_COOKIE = "vivavoce_form";
/** Which of our own pages began the last sign-in of this browser. */
const PAGE_COOKIE = "vivavoce_page";

/** With its question mark, if there is one. */
const queryOf = (c: Context): string => new URL(c.req.url).search;

const wordsOf = (c: Context): Words => wordsFor(c.req.header("Accept-Language"));
const troubleOf = ({ refusal, message: detail, headers }: OAuthError): Trouble =>
  refusal ? { refusal, waitSeconds: Number(headers["Retry-After"] ?? 0) } : { detail };

/** The page of the form that was sent, if one was. */
const formOf = (c: Context): { href: string; text: string } | undefined => {
  const { method, path } = c.req;
  if (method !== "POST") return undefined;
  const href = /^\/(sign-in|oauth2\/interaction\/)/.test(path) ? path + queryOf(c) : "/profile";
  return { href, text: wordsOf(c).error.again };
};

/** Sign-in, consent and profile: plain forms, no script. */
export function pageRoutes(service: TokenService, flow: AuthorizationFlow, options: TransportOptions): Hono<Env> {
  const app = new Hono<Env>();
  const begun = new CallRates(SIGN_INS_PER_SECOND, SIGN_INS_AT_ONCE, () => service.clock.now() / 1000);

  app.onError((error, c) => {
    if (error instanceof OAuthError) {
      const { status, headers, refusal } = error;
      // A sign-in that has ended has no form any more.
      const onward = refusal === "signInExpired" ? pageThatBegan(c) : formOf(c);
      return show(c, errorPage(wordsOf(c), troubleOf(error), onward), { status, headers: { ...headers } });
    }
    service.audit({ event: "failure", stack: stackOf(error) });
    const { status, headers } = serverFailed(error);
    return show(c, errorPage(wordsOf(c), "failed", formOf(c)), { status, headers: { ...headers } });
  });

  const show = (
    c: Context,
    body: string,
    { status = 200, headers = {}, formTargets = [] as string[] } = {},
  ): Response => c.body(body, status as 200, { ...htmlHeaders(formTargets), ...headers });

  /** Only our own pages: a link to an address that others chose could lead anywhere. */
  const pageThatBegan = (c: Context): { href: string; text: string } | undefined => {
    const page = service.ownPage(getCookie(c, PAGE_COOKIE) ?? "");
    return page ? { href: page.path, text: wordsOf(c).profile.operatorView } : undefined;
  };

  function signInToken(c: Context): string {
    let cookie = getCookie(c, FORM_COOKIE);
    if (!cookie || cookie.length < 20) {
      cookie = Buffer.from(service.random.bytes(32)).toString("base64url");
      setCookie(c, FORM_COOKIE, cookie, { ...cookieOptions(service), sameSite: "Strict" });
    }
    return createHash("sha256").update(cookie).digest("base64url");
  }

  /** A form is accepted only from our own page in the same browser. */
  function checkForm(c: Context, form: Form, formToken: string): void {
    const origin = c.req.header("Origin");
    const site = c.req.header("Sec-Fetch-Site");
    const own = origin === undefined || origin === service.issuer || origin === new URL(c.req.url).origin;
    const foreign = !own || (site !== undefined && site !== "same-origin");
    if (foreign || !sameText(form.get("form_token") ?? "", formToken))
      throw new OAuthError("access_denied", "the form has expired", { refusal: "formExpired" });
  }

  /** Returns the name as it was entered if it or the password is wrong. */
  async function signIn(c: Context<Env>): Promise<{ user: User } | { refusedName: string }> {
    const form = await readForm(c.req.raw);
    checkForm(c, form, signInToken(c));
    const refusedName = form.get("name") ?? "";
    const name = normalName(refusedName);
    const address = addressOf(c, options);
    const user = await throttled(
      service.throttle,
      `user ${name}`,
      address,
      () => service.users.authenticate(name, form.get("password") ?? ""),
      { countFirst: true },
    );
    if (!user) {
      service.audit({ event: "sign-in-refused", user: (await service.users.find(name))?.name ?? null, address });
      return { refusedName };
    }
    await startSession(c, service, user);
    service.audit({ event: "sign-in", user: user.name, address });
    return { user };
  }

  /**
   * The library is only for somebody who has signed in: anybody may send requests, and it takes several times as long to refuse them as the
   * rest of the box.
   */
  async function signedIn(c: Context): Promise<BrowserSession> {
    const session = await sessionOf(c, service);
    if (!session) throw new OAuthError("access_denied", "the session has ended", { refusal: "sessionEnded" });
    return session;
  }

  async function signedInForm(c: Context): Promise<{ session: BrowserSession; form: Form }> {
    const session = await signedIn(c);
    const form = await readForm(c.req.raw);
    checkForm(c, form, session.formToken);
    return { session, form };
  }

  function checkBeginning(c: Context<Env>): void {
    const waitS = begun.take(networkOf(addressOf(c, options)));
    if (waitS !== null)
      throw new OAuthError(
        "temporarily_unavailable",
        "too many sign-ins were begun from this address; try again later",
        {
          headers: { "Retry-After": String(Math.ceil(waitS)) },
          refusal: "tooManySignIns",
        },
      );
  }

  // Authorization: sign-in, then consent.

  app.on("GET", ["/oauth2/authorize", "/oauth2/authorize/:uid"], async (c) => {
    const mode = c.req.query("response_mode");
    if (mode !== undefined && mode !== "query")
      throw invalidRequest(`response_mode must be query, got ${mode.slice(0, 40)}`);
    if (c.req.param("uid") !== undefined) {
      // As by the back button after a sign-in.
      if (!(await sessionOf(c, service))) throw signInExpired();
      return flow.handle(c);
    }
    const query = queryOf(c);
    if (query.length > LONGEST_QUERY)
      throw invalidRequest(`the query must have at most ${LONGEST_QUERY} characters, got ${query.length}`);
    const { clientId, refusal, signInAgain } = await beginningOf(service, query);
    if (refusal !== null) return c.redirect(refusal, 303);
    if (signInAgain || !(await sessionOf(c, service))) return c.redirect(`/sign-in${query}`, 303);
    checkBeginning(c);
    c.res = await flow.handle(c);
    setCookie(c, PAGE_COOKIE, service.ownPage(clientId)?.clientId ?? "", cookieOptions(service));
    return c.res;
  });
  app.post("/oauth2/session/end/confirm", async (c) => {
    await signedIn(c);
    return flow.handle(c);
  });

  /** `ownerId`: the user to whom the credential belongs; `null` for our own pages, which any user may use. */
  async function interactionOf(c: Context): Promise<Interaction & { clientName: string; ownerId: string | null }> {
    const interaction = await flow.interaction(c.req.raw);
    const page = interaction && service.ownPage(interaction.clientId);
    const credential = interaction && !page ? await service.credentials.get(interaction.clientId) : null;
    const found = interaction !== null && interaction.uid === c.req.param("uid");
    if (found && page) return { ...interaction, clientName: wordsOf(c).operatorView, ownerId: null };
    if (!found || !credential) throw signInExpired();
    return { ...interaction, clientName: credential.label, ownerId: credential.userId };
  }

  /** A credential has the permissions of its own user only: if somebody else signs in, the client gets `access_denied`. */
  const afterSignIn = (c: Context, { ownerId }: { ownerId: string | null }, user: User): Promise<string> => {
    if (ownerId === null) return flow.signedInToOwnPage(c.req.raw, user.id);
    return user.id === ownerId
      ? flow.signedIn(c.req.raw, user.id)
      : flow.denied(c.req.raw, "the credential belongs to another user");
  };

  app.get("/oauth2/interaction/:uid", async (c) => {
    const { user, formToken } = await signedIn(c);
    const interaction = await interactionOf(c);
    if (interaction.prompt === "login") return c.redirect(await afterSignIn(c, interaction, user), 303);
    // Somebody else has signed in meanwhile.
    if (user.id !== interaction.accountId) return c.redirect(await flow.denied(c.req.raw, "the user signed out"), 303);
    const { uid, clientName, redirectUri } = interaction;
    const page = { action: `/oauth2/interaction/${uid}`, formToken, user, clientName, redirectUri };
    return show(c, consentPage(wordsOf(c), page), { formTargets: [new URL(redirectUri).origin] });
  });

  app.post("/oauth2/interaction/:uid", async (c) => {
    const { session, form } = await signedInForm(c);
    const interaction = await interactionOf(c);
    const allowed =
      form.get("action") === "allow" &&
      session.user.id === interaction.accountId &&
      session.user.id === interaction.ownerId;
    return c.redirect(
      await (allowed ? flow.consented(c.req.raw, session.user.id) : flow.denied(c.req.raw, "the user denied access")),
      303,
    );
  });

  // Profile: a user's own credentials.

  /** Whose sign-in the page is for; `null` if for none, or for a request that would be refused. */
  async function begunHere(c: Context): Promise<Beginning | null> {
    try {
      const beginning = await beginningOf(service, queryOf(c));
      return beginning.refusal === null ? beginning : null;
    } catch (error) {
      if (error instanceof OAuthError) return null;
      throw error;
    }
  }

  function signInForm(c: Context, beginning: Beginning | null, refusedName?: string): Response {
    const clientName =
      beginning && (service.ownPage(beginning.clientId) ? wordsOf(c).operatorView : beginning.clientName);
    const page = {
      action: beginning ? `/sign-in${queryOf(c)}` : "/sign-in",
      formToken: signInToken(c),
      ...(clientName !== null && { clientName }),
      ...(refusedName !== undefined && { refusedName }),
    };
    return show(c, signInPage(wordsOf(c), page), {
      status: refusedName === undefined ? 200 : 401,
      formTargets: beginning ? [new URL(service.issuer).origin, new URL(beginning.redirectUri).origin] : [],
    });
  }

  app.get("/sign-in", async (c) => signInForm(c, await begunHere(c)));

  app.post("/sign-in", async (c) => {
    const entered = await signIn(c);
    const beginning = await begunHere(c);
    if ("refusedName" in entered) return signInForm(c, beginning, entered.refusedName);
    return c.redirect(beginning ? signedInTo(queryOf(c)) : "/profile", 303);
  });

  app.post("/sign-out", async (c) => {
    const { session } = await signedInForm(c);
    await endSession(c, service);
    // An open view must not go on. The user's views in other browsers get a new token from the session there, without asking.
    await endGrantsOf(service.documents, session.user.id, { clientId: OPERATOR_PAGE.clientId });
    return c.redirect("/sign-in", 303);
  });

  async function profile(
    c: Context,
    { user, formToken }: BrowserSession,
    extra: {
      created?: { clientId: string; secret: string };
      isChanged?: boolean;
      trouble?: Trouble;
      entered?: EnteredCredential;
      status?: number;
      headers?: Record<string, string>;
    } = {},
  ): Promise<Response> {
    const { status = 200, headers = {}, ...shown } = extra;
    const operator = user.role === "owner" ? service.ownPage(OPERATOR_PAGE.clientId) : null;
    const credentials = await service.credentials.ofUser(user);
    const operatorPath = operator ? { operatorPath: operator.path } : {};
    return show(c, profilePage(wordsOf(c), { user, formToken, credentials, ...operatorPath, ...shown }), {
      status,
      headers,
    });
  }

  app.get("/profile", async (c) => {
    const session = await sessionOf(c, service);
    return session ? profile(c, session) : c.redirect("/sign-in", 303);
  });

  /** Shows a refusal on the page that contains the form. */
  async function orTrouble(
    c: Context,
    session: BrowserSession,
    work: () => Promise<Response>,
    kept: { entered?: EnteredCredential } = {},
  ): Promise<Response> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof OAuthError) || error.status >= 500) throw error;
      const { status, headers } = error;
      return profile(c, session, { trouble: troubleOf(error), status, headers: { ...headers }, ...kept });
    }
  }

  app.post("/profile/credentials", async (c) => {
    const { session, form } = await signedInForm(c);
    const entered: EnteredCredential = {
      label: form.get("label") ?? "",
      kind: form.get("kind") ?? "",
      redirectUris: form.get("redirect_uris") ?? "",
    };
    const create = async () => {
      const { credential, secret } = await service.credentials.create(session.user, {
        kind: entered.kind as CredentialKind,
        label: entered.label,
        redirectUris: entered.redirectUris.split(/\s+/).filter((uri) => uri !== ""),
      });
      return profile(c, session, { created: { clientId: credential.clientId, secret }, status: 201 });
    };
    return orTrouble(c, session, create, { entered });
  });

  app.post("/profile/password", async (c) => {
    const { session, form } = await signedInForm(c);
    const [current, password] = [form.get("current") ?? "", form.get("password") ?? ""];
    return orTrouble(c, session, async () => {
      if (password !== (form.get("repeated") ?? "")) throw invalidRequest("the passwords differ", "passwordsDiffer");
      const user = await changeOwnPassword(service, session.user, { current, password }, addressOf(c, options));
      const renewed = await startSession(c, service, user);
      return profile(c, renewed, { isChanged: true });
    });
  });

  app.post("/profile/credentials/delete", async (c) => {
    const { session, form } = await signedInForm(c);
    await service.credentials.delete(session.user, form.get("client_id") ?? "");
    return c.redirect("/profile", 303);
  });

  return app;
}
