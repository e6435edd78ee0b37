/** Signs in at the box itself: authorization code with PKCE. The token is kept only in this page's memory. */
import * as oauth from "oauth4webapi";
import { OPERATOR_PAGE } from "../../token/own-pages.js";
import { PLATFORM_SCOPE } from "../../token/scopes.js";
import { answerOf, longestMs, refusalOf } from "./answer.js";
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

/** Names of this machine. */
const isLoopback = (host: string) => /^(localhost|\[::1\]|127(\.\d{1,3}){3})$/.test(host);

/** The box's OAuth metadata. It contains the address that issues tokens; a page opened under another address is redirected there. */
async function server(): Promise<oauth.AuthorizationServer> {
  const { ok, status, body } = await answerOf("/.well-known/oauth-authorization-server");
  if (!ok) throw new Error(strings.answered(status));
  const found = body as oauth.AuthorizationServer;
  if (found.issuer !== location.origin) {
    // On another machine, the address would lead to that machine.
    if (isLoopback(new URL(found.issuer).hostname) && !isLoopback(location.hostname))
      throw new Error(strings.signIn.elsewhere(found.issuer));
    location.replace(found.issuer + OPERATOR_PAGE.path + location.hash);
    return leaving();
  }
  // Browsers allow the digests of a sign-in only there.
  if (!isSecureContext) throw new Error(strings.signIn.insecure);
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
  const parameters = parametersOf(found, answer, begun);
  const asked = oauth.authorizationCodeGrantRequest(
    found,
    client,
    oauth.None(),
    parameters,
    location.origin + OPERATOR_PAGE.path,
    begun.verifier,
    {
      // A box on this machine may use http; the traffic does not leave the machine.
      [oauth.allowInsecureRequests]: location.protocol === "http:",
      signal: AbortSignal.timeout(longestMs),
    },
  );
  const response = await asked.catch(() => {
    throw new Error(strings.noAnswer);
  });
  const { ok, status, headers } = response;
  // The code was used before, or has expired.
  if (status === 400) throw new Error(strings.refusals.signInExpired);
  if (!ok) {
    const body = await response.json().catch(() => undefined);
    throw new Error(refusalOf({ status, body, waitSeconds: Number(headers.get("retry-after")) }));
  }
  const { access_token } = await oauth.processAuthorizationCodeResponse(found, client, response);
  return { token: access_token, at: Date.now() };
}

function parametersOf(found: oauth.AuthorizationServer, answer: URL, { state }: Begun): URLSearchParams {
  try {
    return oauth.validateAuthResponse(found, client, answer, state);
  } catch (error) {
    // Either the box says why it refused, or the answer belongs to another sign-in.
    throw error instanceof oauth.AuthorizationResponseError ? error : new Error(strings.refusals.signInExpired);
  }
}
