/** The languages of the web pages, how one is chosen, and how names are shown in all of them. */
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

/** Without the invisible characters that turn the direction of text: with them, a name could show itself, or the question whether to erase it, backwards. */
export const readable = (name: string): string => name.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
