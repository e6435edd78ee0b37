/** All text of the page, in the first of the browser's languages that is available. */
import type { Language } from "../languages.js";
import { language } from "./language.js";
import { de } from "./words/de.js";
import { en, type Words } from "./words/en.js";
import { es } from "./words/es.js";
import { fr } from "./words/fr.js";
import { numbers } from "./words/numbers.js";
import { pt } from "./words/pt.js";
import { zh } from "./words/zh.js";

export const languages: Readonly<Record<Language, Words>> = { en, de, es, fr, pt, zh };

export const strings: Words = languages[language];

/** As the language writes numbers: with one digit after the point, and with none. */
export const { decimal, whole } = numbers(language);

/** Shown where there is no value. */
export const none = "–";

/** Of a validity such as `AUDIO_TOO_SHORT`, or of an enrollment's `TOO_SHORT`. */
export const refusal = (name: string): string =>
  strings.refusals[name.replace(/^AUDIO_/, "")] ?? strings.refusals.other;
