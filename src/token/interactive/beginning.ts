import { invalidRequest } from "../errors.js";
import { PLATFORM_SCOPE } from "../scopes.js";
import type { TokenService } from "../service.js";
import { resourceOf } from "./provider.js";
import { findClient } from "./provider-adapter.js";

/** An authorization request of a client that exists, for one of its addresses. */
export interface Beginning {
  readonly clientId: string;
  readonly clientName: string;
  readonly redirectUri: string;
  /** The client asks for the password, even if the user is signed in. */
  readonly signInAgain: boolean;
  /** Where the browser takes the error to the client, if the request has one. */
  readonly refusal: string | null;
}

type Fault = readonly [error: string, description: string];

const S256_CHALLENGE = /^[\w-]{43}$/;
const UNSUPPORTED = ["request", "request_uri", "registration"];
const PROMPTS = ["none", "login", "consent"];

/**
 * Checks the request before anybody has signed in. The library would do it too, but anybody may send one: the library takes several times
 * as long, and it stores what it accepts.
 */
export async function beginningOf(service: TokenService, search: string): Promise<Beginning> {
  const query = new URLSearchParams(search);
  const clientId = query.get("client_id");
  if (!clientId) throw invalidRequest("the client_id is missing");
  const client = await findClient(service, clientId);
  if (!client) throw invalidRequest("the client_id is unknown");
  const redirectUri = query.get("redirect_uri") ?? "";
  if (!client.redirect_uris?.includes(redirectUri))
    throw invalidRequest("the redirect_uri must be one of the client's redirect addresses, exactly");
  const fault = faultOf(service, query);
  return {
    clientId,
    clientName: client.client_name ?? "",
    redirectUri,
    signInAgain: promptsOf(query).includes("login"),
    refusal: fault && refusalAt(redirectUri, fault, query.get("state"), service.issuer),
  };
}

const promptsOf = (query: URLSearchParams): string[] => (query.get("prompt") ?? "").split(" ").filter(Boolean);

function faultOf({ audiences }: TokenService, query: URLSearchParams): Fault | null {
  // RFC 8707: a request may name several resources. Nobody could consent to another than ours.
  if (query.getAll("resource").some((resource) => resource !== resourceOf(audiences.tooling)))
    return ["invalid_target", `resource must be ${resourceOf(audiences.tooling)}`];
  const names = [...query.keys()].filter((name) => name !== "resource");
  if (new Set(names).size < names.length) return ["invalid_request", "each parameter must be given once"];
  const unsupported = UNSUPPORTED.find((name) => query.has(name));
  if (unsupported) return [`${unsupported}_not_supported`, `the parameter ${unsupported} is not supported`];
  const type = query.get("response_type");
  if (type === null) return ["invalid_request", "the response_type is missing"];
  if (type !== "code") return ["unsupported_response_type", "response_type must be code"];
  if (query.get("scope") !== PLATFORM_SCOPE) return ["invalid_scope", `scope must be ${PLATFORM_SCOPE}`];
  if (query.get("code_challenge_method") !== "S256") return ["invalid_request", "code_challenge_method must be S256"];
  if (!S256_CHALLENGE.test(query.get("code_challenge") ?? ""))
    return ["invalid_request", "code_challenge must be a SHA-256 hash in base64url"];
  const prompts = promptsOf(query);
  if (prompts.some((prompt) => !PROMPTS.includes(prompt)) || (prompts.includes("none") && prompts.length > 1))
    return ["invalid_request", "prompt must be none, or login or consent or both"];
  // We always ask, or look who is signed in: nobody may be signed in by a page that they do not see.
  if (prompts.includes("none")) return ["login_required", "the user must sign in first"];
  return null;
}

function refusalAt(redirectUri: string, [error, description]: Fault, state: string | null, iss: string): string {
  const url = new URL(redirectUri);
  const answer = { error, error_description: description, ...(state !== null && { state }), iss };
  for (const [name, value] of Object.entries(answer)) url.searchParams.append(name, value);
  return url.href;
}

/** Where the request goes on when somebody has signed in for it: it does not ask for the password again. */
export function signedInTo(search: string): string {
  const query = new URLSearchParams(search);
  const prompts = promptsOf(query).filter((prompt) => prompt !== "login");
  if (prompts.length > 0) query.set("prompt", prompts.join(" "));
  else query.delete("prompt");
  return `/oauth2/authorize?${query}`;
}
