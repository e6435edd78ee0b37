const MOST_CAUSES = 5;

/** An error and what caused it: the outermost says what failed, the innermost why. */
function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = [];
  for (let at = error; at !== undefined && at !== null && causes.length < MOST_CAUSES; at = (at as Error).cause)
    causes.push(at);
  return causes;
}

/** The stack of an error and of its causes. */
export const stackOf = (error: unknown): string =>
  causesOf(error)
    .map((at) => (at instanceof Error ? (at.stack ?? at.message) : String(at)))
    .join("\ncaused by: ");

/** The messages of an error and of its causes. Node's error for a host with several addresses has a code only. */
export const messagesOf = (error: unknown): string =>
  causesOf(error)
    .map((at) => (at instanceof Error ? at.message || ((at as { code?: string }).code ?? at.name) : String(at)))
    .join(": ");
