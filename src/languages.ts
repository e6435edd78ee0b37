/** The languages that the pages speak, and which of them is asked for. */
export const languageNames = ["en", "de", "es", "fr", "pt", "zh"] as const;
export type Language = (typeof languageNames)[number];

/** "de-AT" is spoken as "de"; English where none of them is spoken. */
export function languageFor(wanted: readonly string[]): Language {
  const tags = wanted.map((tag) => tag.toLowerCase().split("-")[0]);
  for (const tag of tags) {
    const spoken = languageNames.find((name) => name === tag);
    if (spoken) return spoken;
  }
  return "en";
}
