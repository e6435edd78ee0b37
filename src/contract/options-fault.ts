import { typeName } from "../type-name.js";
import { nearest } from "./nearest.js";

/** The names of options: the compiler finds one that is missing. */
export type NamesOf<T> = Readonly<Record<keyof T, true>>;

/**
 * What is wrong with the options of a call, in words; `null` if nothing is. For callers without a type checker: an option with a wrong name
 * would have no effect. The keys of `known` are the names.
 */
export function optionsFault(
  options: unknown,
  known: object,
  place = "",
  hint = (name: string) => nearest(name, Object.keys(known)),
): string | null {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    return `${place || "options"} must be an object, got ${kindOf(options)}`;
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  return unknown === undefined ? null : `unknown option ${place && `${place}.`}${unknown}${hint(unknown)}`;
}

const kindOf = (value: unknown): string => (Array.isArray(value) ? "an array" : typeName(value));
