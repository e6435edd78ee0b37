/**
 * Text that PostgreSQL can hold. It refuses U+0000, UTF-8 has no lone surrogates, and an index holds no long keys; names come from callers
 * and may be anything, and what is asked for and cannot be there is simply not found.
 */
import { createHash } from "node:crypto";

const NEEDS_ESCAPE = /[\0\\]|\p{Surrogate}/u;
const ESCAPED = /[\0\\]|\p{Surrogate}/gu;
const LONGEST_KEY = 256;
const DIGEST_PREFIX = "\\sha256:";

/** One to one: different texts stay different. Most texts stay as they are. */
export function escapeText(text: string): string {
  if (!NEEDS_ESCAPE.test(text)) return text;
  return text.replace(ESCAPED, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function unescapeText(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\u([0-9a-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** What a name is looked up by: itself, or its digest when it is too long for an index. The name itself lies in the record's data. */
export function keyOf(name: string): string {
  const text = escapeText(name);
  return text.length <= LONGEST_KEY ? text : DIGEST_PREFIX + createHash("sha256").update(text).digest("hex");
}
