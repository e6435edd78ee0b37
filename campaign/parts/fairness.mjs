/** With fewer conversations each, chance alone leaves somebody far behind: half of them are short, half are long. */
const LEAST_MEAN = 8;
const LEAST_SHARE = 0.25;
/** Scopes take turns, so the few callers of a small scope have more conversations each than the many of a large one. */
const LEAST_SHARE_OF_SMALL = 0.75;

export const meanOf = (conversations) => conversations.reduce((sum, count) => sum + count, 0) / conversations.length;

/** What `unfairness` cannot say after so few conversations, in words; `null` if it judged everything. */
export function unjudgedFairness({ large, small }) {
  const tooFew = Object.entries({ large, small }).filter(([, conversations]) => !(meanOf(conversations) >= LEAST_MEAN));
  if (tooFew.length === 0) return null;
  const means = tooFew.map(([scope, conversations]) => `${meanOf(conversations).toFixed(1)} in the ${scope} scope`);
  return `fairness needs ${LEAST_MEAN} conversations of a caller, there were ${means.join(" and ")}: run longer or with fewer callers`;
}

/** Which callers of a scope were starved beside the others, and whether a small scope was beside a large one, in words. */
export function unfairness({ large, small }) {
  const found = [];
  for (const conversations of [large, small]) {
    const mean = meanOf(conversations);
    const starved = conversations.filter((count) => count < LEAST_SHARE * mean).length;
    if (mean >= LEAST_MEAN && starved > 0)
      found.push(
        `${starved} of ${conversations.length} callers had less than a quarter of the mean, ${mean.toFixed(1)}`,
      );
  }
  const [many, few] = [meanOf(large), meanOf(small)];
  if (many >= LEAST_MEAN && few < LEAST_SHARE_OF_SMALL * many)
    found.push(
      `${few.toFixed(1)} conversations of a caller of the small scope, ${many.toFixed(1)} of one of the large`,
    );
  return found;
}
