/** Signs in at the box itself: authorization code with PKCE. The token is kept only in this page's memory. */
import * as oauth from "oauth4webapi";
import { OPERATOR_PAGE } from "../../token/own-pages.js";
import { PLATFORM_SCOPE } from "../../token/scopes.js";
import { strings } from "./strings.js";

export interface SignedIn {
  readonly token: string;
  readonly at: number;
}

const client: oauth.Client = { client_id: OPERATOR_PAGE.clientId };
/** Session storage key for state that must survive the redirect to the sign-in page and back, in this tab only. */
const shelf = "vivavoce-sign-in";

interface Begun {
  readonly state: string;
  readonly verifier: string;
}

/** Like `fetch`, but if the box cannot be reached, the error is in the reader's language. */
export const answerOf = (...asked: Parameters<typeof fetch>): Promise<Response> =>
  fetch(...asked).catch(() => {
    throw new Error(strings.noAnswer);
  });

/** The box's OAuth metadata. It contains the address that issues tokens; a page opened under another address is redirected there. */
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

/** Never resolves: the browser is leaving the page, so nothing after it must run. */
const leaving = () => new Promise<never>(() => {});

let begun: Promise<never> | null = null;

/**
 * Leaves for the sign-in page. The view sends several requests at once, and when its session ends, each of them is refused:
 * a second sign-in would overwrite what the first must find when it comes back.
 */
export function beginSignIn(again = false): Promise<never> {
  begun ??= leaveToSignIn(again).catch((error: unknown) => {
    begun = null;
    throw error;
  });
  return begun;
}

/** `again` asks for the password even if the browser is signed in, so that another user can sign in. */
async function leaveToSignIn(again: boolean): Promise<never> {
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

/** Redeems the code in the address, or redirects to the sign-in page if there is none. */
export async function signIn(): Promise<SignedIn> {
  const answer = new URL(location.href);
  if (!answer.searchParams.has("code") && !answer.searchParams.has("error")) return beginSignIn();
  // A code can be used once, so it is removed from the address and the history.
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
    // A box on this machine may use http; the traffic does not leave the machine.
    { [oauth.allowInsecureRequests]: location.protocol === "http:" },
  );
  const { access_token } = await oauth.processAuthorizationCodeResponse(found, client, response);
  return { token: access_token, at: Date.now() };
}
