import { type Language, languageFor } from "../languages.js";

/** Of the page: nobody reads it outside of one. */
export const language: Language = typeof document === "undefined" ? "en" : languageFor(navigator.languages);
