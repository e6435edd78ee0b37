/** Results that cross threads. Comlink keeps only the message of an error; here the code crosses too. */
import { EngineError, type EngineErrorCode, NotSupportedError } from "./engine-error.js";

export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: EngineErrorCode | null; readonly message: string };

export function outcomeOf<T>(work: () => T): Outcome<T> {
  try {
    return { ok: true, value: work() };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { ok: false, code: error instanceof EngineError ? error.code : null, message };
  }
}

export function unwrapped<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  const { code, message } = outcome;
  if (code === null) throw new Error(message);
  throw code === "NOT_SUPPORTED" ? new NotSupportedError(message) : new EngineError(code, message);
}
