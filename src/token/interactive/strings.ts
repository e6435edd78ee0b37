/** The texts of sign-in, consent and profile, in the first of the browser's languages that is available. */
import { parseAccept } from "hono/utils/accept";
import { type Language, languageFor } from "../../languages.js";
import { de } from "./words/de.js";
import { en, type Words } from "./words/en.js";
import { es } from "./words/es.js";
import { fr } from "./words/fr.js";
import { pt } from "./words/pt.js";
import { zh } from "./words/zh.js";

export type { Words };

export const languages: Readonly<Record<Language, Words>> = { en, de, es, fr, pt, zh };

/** Far longer than what a browser sends; anybody may send thousands of languages. */
const LONGEST_HEADER = 500;

/** For an `Accept-Language` header. */
export function wordsFor(acceptLanguage: string | undefined): Words {
  const wanted = parseAccept((acceptLanguage ?? "").slice(0, LONGEST_HEADER)).filter(({ q }) => q > 0);
  return languages[languageFor(wanted.map(({ type }) => type))];
}
