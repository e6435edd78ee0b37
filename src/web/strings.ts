/** All text of the page, in the first of the browser's languages that is available. */
import type { Language } from "../languages.js";
import { language } from "./language.js";
import { de } from "./words/de.js";
import { en, type Words } from "./words/en.js";
import { es } from "./words/es.js";
import { fr } from "./words/fr.js";
import { pt } from "./words/pt.js";
import { zh } from "./words/zh.js";

export const languages: Readonly<Record<Language, Words>> = { en, de, es, fr, pt, zh };

export const strings: Words = languages[language];

/** Shown where there is no value. */
export const none = "–";

export const refusal = (name: string): string => strings.refusals[name] ?? strings.refusals.other;
