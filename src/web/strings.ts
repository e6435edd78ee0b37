/** Every word that the page says, in the first of the browser's languages that it speaks. */
import { de } from "./words/de.js";
import { en, type Words } from "./words/en.js";
import { es } from "./words/es.js";
import { fr } from "./words/fr.js";
import { pt } from "./words/pt.js";
import { zh } from "./words/zh.js";

export const languages: Readonly<Record<string, Words>> = { en, de, es, fr, pt, zh };

/** "de-AT" is spoken as "de"; English where none of them is spoken. */
export function languageFor(wanted: readonly string[]): string {
  const spoken = wanted.map((tag) => tag.toLowerCase().split("-")[0]!).find((tag) => Object.hasOwn(languages, tag));
  return spoken ?? "en";
}

/** Of the page: nobody reads it outside of one. */
export const language = typeof document === "undefined" ? "en" : languageFor(navigator.languages);

export const strings: Words = languages[language]!;

export type RefusalName = string;

export const refusal = (name: RefusalName): string => strings.refusals[name] ?? strings.refusals.other;
