/** Answers of the box, and what to tell the reader if there is none or if it is a refusal. */
import type { Refusal } from "../../token/refusals/en.js";
import { refusalText } from "../../token/refusals/refusal-text.js";
import { strings } from "./strings.js";

/** Longer than the box takes for any answer. Without a limit, the view would look live for minutes after the network has gone. */
export const longestMs = 30_000;

export interface Answer {
  readonly ok: boolean;
  readonly status: number;
  /** Undefined if there is none, or if an error of something in between (a proxy) is not JSON. */
  readonly body: unknown;
  /** How long the box wants to be left alone; 0 if it does not say. */
  readonly waitSeconds: number;
}

/** Asks the box. If no answer of the box arrives, the error is in the reader's language. */
export async function answerOf(path: string, request: RequestInit = {}): Promise<Answer> {
  try {
    const response = await fetch(path, { ...request, signal: AbortSignal.timeout(longestMs) });
    const { ok, status, headers } = response;
    const text = await response.text();
    const body = text === "" ? undefined : ok ? JSON.parse(text) : parsedOf(text);
    return { ok, status, body, waitSeconds: Number(headers.get("retry-after")) };
  } catch {
    throw new Error(strings.noAnswer);
  }
}

function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Errors that a user cannot cause are for the operator of the box, and stay in English. */
export function refusalOf({ status, body, waitSeconds }: Omit<Answer, "ok">): string {
  const { refusal, error_description } = (body ?? {}) as { refusal?: Refusal; error_description?: string };
  const known = refusal ?? (status === 401 ? "sessionEnded" : undefined);
  // A box that is newer than this page may send reasons that the page does not know.
  const text = known && strings.refusals[known];
  if (text) return refusalText(text, strings.locale, waitSeconds);
  return error_description ?? strings.answered(status);
}
