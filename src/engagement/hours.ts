import { invalidRequest } from "../token/errors.js";

/** The names of days used in hours, in the order of `Date.getDay`. */
export const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;
/** One of `DAYS`. */
export type Day = (typeof DAYS)[number];

/** From and to in local time, `09:00` to `17:30`. `24:00` ends a day; an end at or before the start is on the next day. */
export type Window = readonly [from: string, to: string];

/** Hours of operation of one business unit. */
export interface Hours {
  /** IANA name: `Europe/Berlin`. */
  readonly timeZone: string;
  readonly weekly: Readonly<Partial<Record<Day, readonly Window[]>>>;
  /** Hours on a date (`2026-12-25`) that replace the weekly ones; an empty list means closed all day. */
  readonly exceptions: Readonly<Record<string, readonly Window[]>>;
}

const minutes = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));

function checkWindow(window: unknown): Window {
  const time = /^(?:[01]\d|2[0-3]):[0-5]\d$/;
  if (!Array.isArray(window) || window.length !== 2)
    throw invalidRequest('opening hours must be pairs such as ["09:00", "17:30"]');
  const [from, to] = window as [unknown, unknown];
  if (typeof from !== "string" || !time.test(from))
    throw invalidRequest(`an opening time must be 00:00 to 23:59, got ${JSON.stringify(from)}`);
  if (typeof to !== "string" || !(time.test(to) || to === "24:00"))
    throw invalidRequest(`a closing time must be 00:00 to 24:00, got ${JSON.stringify(to)}`);
  return [from, to];
}

const isDate = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().startsWith(text);

export function checkHours(hours: Hours): Hours {
  try {
    new Intl.DateTimeFormat("en", { timeZone: hours.timeZone });
  } catch {
    throw invalidRequest(`unknown time zone "${hours.timeZone}"; use a name such as Europe/Berlin`);
  }
  const weekly: Partial<Record<Day, readonly Window[]>> = {};
  for (const [day, windows] of Object.entries(hours.weekly)) {
    if (!(DAYS as readonly string[]).includes(day))
      throw invalidRequest(`unknown day "${day}"; use one of ${DAYS.join(", ")}`);
    weekly[day as Day] = (windows ?? []).map(checkWindow);
  }
  const exceptions: Record<string, readonly Window[]> = {};
  for (const [date, windows] of Object.entries(hours.exceptions ?? {})) {
    if (!isDate(date)) throw invalidRequest(`a date must look like 2026-12-25, got "${date}"`);
    exceptions[date] = windows.map(checkWindow);
  }
  return { timeZone: hours.timeZone, weekly, exceptions };
}

/** The local time in a time zone, daylight saving included. */
function localTime(timeZone: string, now: number): { date: string; minute: number } {
  const parts = new Intl.DateTimeFormat("en-CA", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  }).formatToParts(now);
  const part = (type: string): string => parts.find((entry) => entry.type === type)?.value ?? "";
  return {
    date: `${part("year")}-${part("month")}-${part("day")}`,
    minute: Number(part("hour")) * 60 + Number(part("minute")),
  };
}

const windowsOn = (hours: Hours, date: string): readonly Window[] =>
  (Object.hasOwn(hours.exceptions, date)
    ? hours.exceptions[date]
    : hours.weekly[DAYS[new Date(`${date}T00:00:00Z`).getUTCDay()] as Day]) ?? [];

const dayBefore = (date: string): string =>
  new Date(Date.parse(`${date}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);

/** Whether a business unit is open. Without hours it is always open. */
export function isOpen(hours: Hours | null, now: number): boolean {
  if (hours === null) return true;
  const { date, minute } = localTime(hours.timeZone, now);
  const today = windowsOn(hours, date).some(
    ([from, to]) => minute >= minutes(from) && (minute < minutes(to) || minutes(to) <= minutes(from)),
  );
  if (today) return true;
  return windowsOn(hours, dayBefore(date)).some(([from, to]) => minutes(to) <= minutes(from) && minute < minutes(to));
}
