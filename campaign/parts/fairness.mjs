/** With fewer conversations each, chance alone leaves somebody far behind: half of them are short, half are long. */
const LEAST_MEAN = 8;
const LEAST_SHARE = 0.25;

/** Who was starved, in words; `null` if nobody was. */
export function unfairness(conversations) {
  const mean = conversations.reduce((sum, count) => sum + count, 0) / conversations.length;
  const starved = conversations.filter((count) => count < LEAST_SHARE * mean).length;
  if (mean < LEAST_MEAN || starved === 0) return null;
  return `${starved} of ${conversations.length} callers had less than a quarter of the ${mean.toFixed(1)} conversations of the mean`;
}
