/** The languages of the web pages, and how one is chosen. */
export const languageNames = ["en", "de", "es", "fr", "pt", "zh"] as const;
export type Language = (typeof languageNames)[number];

/** "de-AT" selects "de"; the default is English. */
export function languageFor(wanted: readonly string[]): Language {
  const tags = wanted.map((tag) => tag.toLowerCase().split("-")[0]);
  for (const tag of tags) {
    const spoken = languageNames.find((name) => name === tag);
    if (spoken) return spoken;
  }
  return "en";
}
