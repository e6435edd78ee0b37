const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was closed",
  UND_ERR_SOCKET: "the connection was closed",
  ENOTFOUND: "unknown host",
  EAI_AGAIN: "unknown host",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ETIMEDOUT: "no answer",
  UND_ERR_CONNECT_TIMEOUT: "no answer",
};

/** What `fetch` says when there was no answer at all, by runtime: Node, Chromium, Firefox, WebKit. */
const NO_ANSWER = /^(fetch failed|Failed to fetch|NetworkError when .*|Load failed)$/;

/** Why a server gave no answer; `null` for other errors. The reason is in a cause of the error. */
export function connectionFault(error: unknown): string | null {
  let failed = false;
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as Error & { code?: unknown };
    if (typeof code === "string" && WORDS[code]) return WORDS[code];
    failed ||= at instanceof TypeError && NO_ANSWER.test(at.message);
    if (failed && !(at.cause instanceof Error)) return NO_ANSWER.test(at.message) ? "no answer" : at.message;
  }
  return null;
}
