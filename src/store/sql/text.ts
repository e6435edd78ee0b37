/**
 * Text that PostgreSQL can store. It refuses U+0000, UTF-8 has no lone surrogates, and an index cannot hold long keys. Names come from callers
 * and may contain anything; a name that cannot be stored is simply not found.
 */
import { createHash } from "node:crypto";

const ESCAPED = /[\0\\]|\p{Surrogate}/gu;
const LONGEST_KEY = 256;
const DIGEST_PREFIX = "\\sha256:";

/** One to one: different texts stay different. Most texts stay unchanged. */
export function escapeText(text: string): string {
  return text.replace(ESCAPED, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export const textOrNull = (text: string | null | undefined): string | null => (text == null ? null : escapeText(text));

export function unescapeText(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\u([0-9a-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** The key of a record in its table. */
export const rowKey = (scopeId: string, id: string): [string, string] => [keyOf(scopeId), escapeText(id)];

/** The lookup key of a name: the name, or its digest if it is too long for an index. The full name is in the record's data. */
export function keyOf(name: string): string {
  const text = escapeText(name);
  return text.length <= LONGEST_KEY ? text : DIGEST_PREFIX + createHash("sha256").update(text).digest("hex");
}
