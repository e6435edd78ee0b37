import { isDamage } from "../store/damaged-profiles.js";
import { strings } from "./strings.js";

/** The voice model did not arrive; the message is for the person. */
export class ModelLoadError extends Error {
  override readonly name = "ModelLoadError";
}

/** What the person can do about an error. Its details are for the console. */
export function failureText(error: unknown, otherwise = strings.refusals.other): string {
  if (error instanceof ModelLoadError) return error.message;
  const { full, closed, unreadable } = strings.storage;
  const code = storeCodeOf(error);
  if (code === "disk-full") return full;
  if (code === "closed" || code === "newer-schema") return closed;
  if (code === "wrong-key" || code === "key-lost") return unreadable;
  if (code === "damaged") return strings.damaged;
  return otherwise;
}

/** The same for the start of the page: storage that cannot even be opened is blocked. */
export const startFailureText = (error: unknown): string =>
  storeCodeOf(error) === "unavailable" ? strings.storage.blocked : failureText(error, strings.model.notStarted);

/** Operations report an error of the store as the cause of theirs, whose code is a number. */
function storeCodeOf(error: unknown): string | null {
  for (let at = error; at instanceof Error; at = at.cause)
    if ("code" in at && typeof at.code === "string") return isDamage(at) ? "damaged" : at.code;
  return null;
}
