/**
 * What the view shows. This tab keeps it, so that neither a reload nor signing in again after an hour loses it. It may contain names of
 * people, so signing out forgets it.
 */
const shelf = "vivavoce-place";
const filterShelf = (table: string) => `vivavoce-filters-${table}`;

export interface Place {
  readonly part: string;
  readonly scope: string;
  /** The id of a profile or session that is to be opened there. */
  readonly opened?: string;
}

/** `#part/scope/id`: a new tab, or somebody else's, has nothing else to go by. */
export const addressOf = ({ part, scope, opened = "" }: Place): string =>
  `#${[part, scope, opened].map(encodeURIComponent).join("/")}`;

/** The place that the address names, or `null`. An address without a scope leaves the scope as it is. */
export function placeInAddress(parts: object): Place | null {
  const [part = "", scope, opened] = location.hash.slice(1).split("/").map(decoded);
  if (!Object.hasOwn(parts, part)) return null;
  return { part, scope: scope ?? keptPlace()?.scope ?? "", ...(opened === undefined ? {} : { opened }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const kept = (name: string): unknown => JSON.parse(sessionStorage.getItem(name) ?? "null");
const keep = (name: string, value: unknown): void => sessionStorage.setItem(name, JSON.stringify(value));

export const keepPlace = (place: Place): void => keep(shelf, place);
export const keptPlace = (): Place | null => kept(shelf) as Place | null;

/** Filters of a table as they were entered, by their names. */
export const keepFilters = (table: string, entered: Readonly<Record<string, string>>): void =>
  keep(filterShelf(table), entered);
export const keptFilters = (table: string): Readonly<Record<string, string>> =>
  (kept(filterShelf(table)) ?? {}) as Record<string, string>;

export const forgetPlace = (): void => sessionStorage.clear();
