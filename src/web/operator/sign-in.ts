/** Signs in at the box itself: authorization code with PKCE. The token lives in this page's memory and nowhere else. */
import * as oauth from "oauth4webapi";
import { OPERATOR_PAGE } from "../../token/own-pages.js";
import { PLATFORM_SCOPE } from "../../token/scopes.js";
import { strings } from "./strings.js";

export interface SignedIn {
  readonly token: string;
  readonly at: number;
}

const client: oauth.Client = { client_id: OPERATOR_PAGE.clientId };
/** What has to outlive the way to the sign-in page and back, in this tab alone. */
const shelf = "vivavoce-sign-in";

interface Begun {
  readonly state: string;
  readonly verifier: string;
}

/** As `fetch`; a box that cannot be reached is told in the reader's language. */
export const answerOf = (...asked: Parameters<typeof fetch>): Promise<Response> =>
  fetch(...asked).catch(() => {
    throw new Error(strings.noAnswer);
  });

/** The box's own description. It knows the address under which it issues tokens; a page at another one goes there. */
async function server(): Promise<oauth.AuthorizationServer> {
  const response = await answerOf("/.well-known/oauth-authorization-server");
  if (!response.ok) throw new Error(strings.answered(response.status));
  const found = (await response.json()) as oauth.AuthorizationServer;
  if (found.issuer !== location.origin) {
    location.replace(found.issuer + OPERATOR_PAGE.path);
    return leaving();
  }
  return found;
}

/** The page is on its way elsewhere: what waits for it waits until it is gone. */
const leaving = () => new Promise<never>(() => {});

/** `again`: the password is asked for though the browser is signed in, so that somebody else can. */
export async function beginSignIn(again = false): Promise<never> {
  const { authorization_endpoint } = await server();
  const begun: Begun = { state: oauth.generateRandomState(), verifier: oauth.generateRandomCodeVerifier() };
  sessionStorage.setItem(shelf, JSON.stringify(begun));
  const url = new URL(authorization_endpoint!);
  url.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: location.origin + OPERATOR_PAGE.path,
    response_type: "code",
    scope: PLATFORM_SCOPE,
    state: begun.state,
    code_challenge: await oauth.calculatePKCECodeChallenge(begun.verifier),
    code_challenge_method: "S256",
    ...(again ? { prompt: "login" } : {}),
  }).toString();
  location.replace(url);
  return leaving();
}

/** Redeems the code that the address carries, or goes to the sign-in page when it carries none. */
export async function signIn(): Promise<SignedIn> {
  const answer = new URL(location.href);
  if (!answer.searchParams.has("code") && !answer.searchParams.has("error")) return beginSignIn();
  // A code is good once: it does not stay in the address, nor in the history.
  history.replaceState(null, "", OPERATOR_PAGE.path);
  const begun = JSON.parse(sessionStorage.getItem(shelf) ?? "null") as Begun | null;
  sessionStorage.removeItem(shelf);
  if (!begun) throw new Error(strings.refusals.signInExpired);
  const found = await server();
  const parameters = oauth.validateAuthResponse(found, client, answer, begun.state);
  const response = await oauth.authorizationCodeGrantRequest(
    found,
    client,
    oauth.None(),
    parameters,
    location.origin + OPERATOR_PAGE.path,
    begun.verifier,
    // A box on this machine speaks http; a browser keeps that on the machine.
    { [oauth.allowInsecureRequests]: location.protocol === "http:" },
  );
  const { access_token } = await oauth.processAuthorizationCodeResponse(found, client, response);
  return { token: access_token, at: Date.now() };
}
