import { invalidRequest, OAuthError } from "./errors.js";

/** The contract's runtime scopes, and `bio` for the voiceprint service. */
export const RUNTIME_SCOPES = ["asr", "asr.wordset", "nlu", "nlu.wordset", "dlg", "tts", "log", "bio"] as const;
/** One of the runtime scopes. */
export type RuntimeScope = (typeof RUNTIME_SCOPES)[number];

/** Opens the tooling interface; only credentials of the profile page can have it. */
export const PLATFORM_SCOPE = "platform-api";

const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Splits a `scope` parameter (RFC 6749 §3.3). Repeated scopes count once. */
export function parseScope(text: string): string[] {
  const scopes = text.split(" ").filter((scope) => scope !== "");
  if (scopes.length === 0) throw invalidRequest("scope is missing");
  if (!scopes.every((scope) => SCOPE_TOKEN.test(scope)))
    throw new OAuthError("invalid_scope", "scope must be names of printable ASCII characters, separated by spaces");
  return [...new Set(scopes)];
}

export const isRuntimeScope = (scope: string): scope is RuntimeScope =>
  (RUNTIME_SCOPES as readonly string[]).includes(scope);
