/** Tables are read one page at a time, and a search reads a limited number of rows per page. */
import { setImmediate } from "node:timers/promises";
import { invalidRequest } from "../../token/errors.js";
import type { Page } from "./view.js";

export const MOST_ROWS = 100;

/** Rows that a search judges before others are served. */
const STEP = 25;

export function wholeNumber(
  name: string,
  text: string | undefined,
  otherwise: number,
  least: number,
  most: number,
): number {
  if (text === undefined || text === "") return otherwise;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most))
    throw invalidRequest(`${name} must be a whole number from ${least} to ${most}, got "${text}"`);
  return value;
}

export const limitOf = (text: string | undefined): number => wholeNumber("limit", text, 25, 1, MOST_ROWS);

/** One of `names`, or `null` if the parameter is absent. */
export function oneOf<Name extends string>(
  name: string,
  text: string | undefined,
  names: readonly Name[],
): Name | null {
  if (text === undefined || text === "") return null;
  const found = names.find((one) => one === text);
  if (!found) throw invalidRequest(`${name} must be one of ${names.join(", ")}, got "${text}"`);
  return found;
}

/** `found` has one row more than a page if there is a next page. */
export function page<Found extends { readonly id: string }, Row>(
  found: readonly Found[],
  limit: number,
  view: (one: Found) => Row,
): Page<Row> {
  const shown = found.slice(0, limit);
  return { rows: shown.map(view), next: found.length > limit ? shown.at(-1)!.id : null };
}

/**
 * Searches a list in steps until a page is full, the list ends or `most` rows were read. `next` continues where the
 * search stopped, so a page may have fewer than `limit` rows, or none, and still have a next one.
 */
export async function searched<Found extends { readonly id: string }, Row>(
  list: (from: string | null, limit: number) => Promise<Found[]>,
  from: string | null,
  limit: number,
  most: number,
  row: (one: Found) => Promise<Row | "end" | null> | Row | "end" | null,
): Promise<Page<Row>> {
  const rows: Row[] = [];
  let last = from;
  for (let looked = 0; looked < most; ) {
    // Without a filter, the first rows fill the page.
    const step = Math.min(looked === 0 ? limit + 1 : STEP, most - looked);
    const found = await list(last, step);
    const judged = await Promise.all(found.map(row));
    for (const [i, one] of judged.entries()) {
      if (one === "end") return { rows, next: null };
      last = found[i]!.id;
      if (one === null) continue;
      rows.push(one);
      const isLast = found.length < step && i === found.length - 1;
      if (rows.length === limit) return { rows, next: isLast ? null : last };
    }
    if (found.length < step) return { rows, next: null };
    looked += found.length;
    // Calls of others come first: a store in memory answers without a pause.
    await setImmediate();
  }
  return { rows, next: last };
}

/** Whether one of `texts` contains the search text. */
export function holds(search: string, ...texts: readonly string[]): boolean {
  const wanted = search.toLowerCase();
  return texts.some((text) => text.toLowerCase().includes(wanted));
}
