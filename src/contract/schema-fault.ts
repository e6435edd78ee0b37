import type * as z from "zod";

/** Parse with these options, so that `schemaFault` can say what was given. */
export const reportInput = { reportInput: true } as const;

/**
 * What is wrong with a value, in the words of our other errors: "must be at most 65535, got 99999". A string may be a secret, so only
 * its length or type is repeated, unless it had to be one of a list.
 */
export function schemaFault(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined
        ? "is missing"
        : `must be ${WORDS[issue.expected] ?? issue.expected}, got ${given(issue.input)}`;
    case "too_big":
      return limit(issue, issue.inclusive ? "at most" : "below", issue.maximum);
    case "too_small":
      if (issue.origin === "string" && issue.minimum === 1) return "must not be empty";
      return limit(issue, issue.inclusive ? "at least" : "above", issue.minimum);
    case "invalid_value":
      return `must be ${listed(issue.values)}, got ${given(issue.input, true)}`;
    case "invalid_union":
      return "options" in issue && Array.isArray(issue.options) ? `must be ${listed(issue.options)}` : issue.message;
    case "invalid_format":
      return FORMATS[issue.format] ?? issue.message;
    case "unrecognized_keys":
      return `unknown ${issue.keys.length === 1 ? "name" : "names"}: ${someOf(issue.keys)}`;
    default:
      return issue.message;
  }
}

const WORDS: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "a string",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

const FORMATS: Readonly<Record<string, string>> = {
  url: "must be an address such as https://voice.example.com",
  base64: "must be base64",
  datetime: "must be a time such as 2026-01-31T12:00:00Z",
};

type Limited = Extract<z.core.$ZodIssue, { code: "too_big" | "too_small" }>;

function limit({ origin, input, exact }: Limited, bounded: string, bound: number | bigint): string {
  const how = exact ? "exactly" : bounded;
  if (origin === "string") return `must have ${how} ${bound} characters, got ${(input as string).length}`;
  if (origin === "array") return `must have ${how} ${bound} values, got ${(input as unknown[]).length}`;
  return `must be ${how} ${bound}, got ${input}`;
}

const listed = (values: readonly unknown[]): string => {
  const words = values.map(String);
  const last = words.pop();
  return words.length === 0 ? String(last) : `${words.join(", ")} or ${last}`;
};

/** A sender chooses how many unknown names there are, and how long they are. */
const MOST_NAMES = 5;
const MOST_CHARACTERS = 60;

function someOf(names: readonly string[]): string {
  const shown = names
    .slice(0, MOST_NAMES)
    .map((name) => (name.length > MOST_CHARACTERS ? `${name.slice(0, MOST_CHARACTERS)}…` : name));
  const more = names.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

function given(value: unknown, text = false): string {
  if (typeof value === "string") return text ? JSON.stringify(value) : "a string";
  if (typeof value === "number" || typeof value === "boolean" || value === null || value === undefined)
    return String(value);
  return Array.isArray(value) ? "a list" : `an ${typeof value}`;
}
