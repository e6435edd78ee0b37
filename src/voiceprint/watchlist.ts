/** Which prints of a watchlist the present model can score. */

export interface WatchedPrint {
  /** `null` when the profile has no template. */
  readonly revision: string | null;
}

export interface WatchlistConsistency<T> {
  readonly compatible: number;
  readonly incompatible: number;
  /** At most `limit` of the incompatible ones. */
  readonly listed: readonly T[];
}

export function watchlistConsistency<T extends WatchedPrint>(
  prints: readonly T[],
  revision: string,
  limit: number,
): WatchlistConsistency<T> {
  const incompatible = prints.filter((print) => print.revision !== revision);
  return {
    compatible: prints.length - incompatible.length,
    incompatible: incompatible.length,
    listed: incompatible.slice(0, limit),
  };
}
