/** All text of the operator view, in the first of the browser's languages that is available. */
import type { Language } from "../../languages.js";
import { language } from "../language.js";
import { de } from "./words/de.js";
import { en, type Words } from "./words/en.js";
import { es } from "./words/es.js";
import { fr } from "./words/fr.js";
import { pt } from "./words/pt.js";
import { zh } from "./words/zh.js";

export const languages: Readonly<Record<Language, Words>> = { en, de, es, fr, pt, zh };

/** For dates and times. */
const locale = { en: "en-GB", pt: "pt-BR" }[language as string] ?? language;

/** `none` is shown where there is no value. */
export const strings = { ...languages[language], locale, none: "–" };

/** The readable form of a name such as `VOICEPRINT_MATCH`. */
export const nameOf = (name: string): string => strings.names[name] ?? name;

/** A revision is a digest; its first 16 digits are enough to identify it. */
export const shortRevision = (revision: string): string => revision.slice(0, 16);
