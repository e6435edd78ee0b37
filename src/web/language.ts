import { type Language, languageFor } from "../languages.js";

/** Language of the page. Outside of a page, where nothing shows text, it is English. */
export const language: Language = typeof document === "undefined" ? "en" : languageFor(navigator.languages);
