/** Which prints of a watchlist can be scored. */

export interface WatchedPrint {
  /** `null` when the profile has no template. */
  readonly revision: string | null;
}

export interface WatchlistConsistency<T> {
  readonly compatible: number;
  readonly incompatible: number;
  /** The incompatible prints, at most `limit` of them. */
  readonly listed: readonly T[];
}

export function watchlistConsistency<T extends WatchedPrint>(
  prints: readonly T[],
  canBeScored: (revision: string) => boolean,
  limit: number,
): WatchlistConsistency<T> {
  const incompatible = prints.filter(({ revision }) => revision === null || !canBeScored(revision));
  return {
    compatible: prints.length - incompatible.length,
    incompatible: incompatible.length,
    listed: incompatible.slice(0, limit),
  };
}
