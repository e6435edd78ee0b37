/** Names of resources that runtime services use. */
export type WordsetService = "platform.asr" | "platform.nlu";

/** The parts of a resource name. */
export type ResourceUrn =
  | { readonly kind: "recognition" | "interpretation"; readonly contextTag: string; readonly language: string }
  | { readonly kind: "dialog"; readonly contextTag: string }
  | {
      readonly kind: "wordset";
      readonly context: string;
      readonly name: string;
      readonly language: string;
      readonly service: WordsetService;
      /** For the wordset of one user; without it, the application's wordset. */
      readonly userId?: string;
    };

/** The error codes of a malformed resource name. */
export type UrnErrorCode =
  | "not-a-urn"
  | "foreign-namespace"
  | "unknown-resource"
  | "missing-part"
  | "extra-part"
  | "malformed-part"
  | "unknown-service"
  | "missing-language"
  | "malformed-language"
  | "unexpected-language"
  | "unknown-parameter";

/** The text is not a valid resource name; `code` says why. */
export class UrnError extends Error {
  override readonly name = "UrnError";

  constructor(
    readonly code: UrnErrorCode,
    /** Position in the text where the error begins. */
    readonly at: number,
    message: string,
  ) {
    super(message);
  }
}

const NAMESPACE = "urn:vendor-platform:";
const MODEL = "tag:model/";
const WORDSET = "tag:wordset:lang/";
/** Three-letter language, three-letter region: `eng-USA`. */
const LANGUAGE = /^[a-z]{3}-[A-Z]{3}$/;
const SERVICES: readonly string[] = ["platform.asr", "platform.nlu"] satisfies WordsetService[];
const MODEL_SERVICES: Record<string, "recognition" | "interpretation" | "dialog"> = {
  "platform.asr": "recognition",
  "platform.nlu": "interpretation",
  "platform.dialog": "dialog",
};

export const isLanguage = (text: string): boolean => LANGUAGE.test(text);

function escapePart(what: string, value: string): string {
  if (value === "") throw new UrnError("missing-part", 0, `the ${what} is empty`);
  try {
    return encodeURIComponent(value);
  } catch {
    throw new UrnError("malformed-part", 0, `the ${what} is not well-formed Unicode`);
  }
}

function checkLanguage(language: string, at = 0): string {
  if (!LANGUAGE.test(language))
    throw new UrnError("malformed-language", at, `the language must have the form eng-USA, got "${language}"`);
  return language;
}

/** The resource name as text. Throws `UrnError`. */
export function formatUrn(urn: ResourceUrn): string {
  switch (urn.kind) {
    case "recognition":
    case "interpretation": {
      const service = urn.kind === "recognition" ? "platform.asr" : "platform.nlu";
      return `${NAMESPACE}${MODEL}${escapePart("context tag", urn.contextTag)}/${service}?=language=${checkLanguage(urn.language)}`;
    }
    case "dialog":
      return `${NAMESPACE}${MODEL}${escapePart("context tag", urn.contextTag)}/platform.dialog`;
    case "wordset": {
      if (!SERVICES.includes(urn.service))
        throw new UrnError("unknown-service", 0, `the service must be ${SERVICES.join(" or ")}, got "${urn.service}"`);
      const path = `${escapePart("context", urn.context)}/${escapePart("wordset name", urn.name)}/${checkLanguage(urn.language)}/${urn.service}`;
      return `${NAMESPACE}${WORDSET}${path}${urn.userId === undefined ? "" : `?=user_id=${escapePart("user id", urn.userId)}`}`;
    }
  }
}

interface Part {
  readonly text: string;
  readonly at: number;
}

/** Splits `a/b/c`, which begins at `at`, and keeps the position of each part. */
function split(path: string, at: number): Part[] {
  let offset = at;
  return path.split("/").map((text) => {
    const part = { text, at: offset };
    offset += text.length + 1;
    return part;
  });
}

/** A part that must be there; `end` is where it would begin if it is not. */
function present(what: string, part: Part | undefined, end: number, code: UrnErrorCode = "missing-part"): Part {
  if (part === undefined || part.text === "") throw new UrnError(code, part?.at ?? end, `the ${what} is missing`);
  return part;
}

function unescapePart(what: string, given: Part | undefined, end: number): string {
  const part = present(what, given, end);
  const bad = part.text.search(/[^A-Za-z0-9\-._~!'()*%]/);
  if (bad >= 0)
    throw new UrnError("malformed-part", part.at + bad, `the ${what} has a character that must be percent-encoded`);
  try {
    return decodeURIComponent(part.text);
  } catch {
    throw new UrnError("malformed-part", part.at + part.text.indexOf("%"), `the ${what} has a broken percent-encoding`);
  }
}

function noMore(parts: readonly Part[], expected: number): void {
  const extra = parts[expected];
  if (extra) throw new UrnError("extra-part", extra.at, `unexpected part "${extra.text}" at the end`);
}

/** Reads a name that `formatUrn` wrote. Scheme and namespace are case-insensitive (RFC 8141), the rest is not. */
export function parseUrn(text: string): ResourceUrn {
  if (!/^urn:/i.test(text))
    throw new UrnError("not-a-urn", 0, `the text must begin with urn:, got "${text.slice(0, 40)}"`);
  if (text.slice(0, NAMESPACE.length).toLowerCase() !== NAMESPACE)
    throw new UrnError("foreign-namespace", 4, "the namespace must be vendor-platform");
  const rest = text.slice(NAMESPACE.length);
  const question = text.indexOf("?=");
  const pathEnd = question < 0 ? text.length : question;
  const query: Part | null = question < 0 ? null : { text: text.slice(question + 2), at: question + 2 };
  const partsAfter = (prefix: string): Part[] => {
    const from = NAMESPACE.length + prefix.length;
    return split(text.slice(from, pathEnd), from);
  };
  if (rest.startsWith(MODEL)) return parseModel(partsAfter(MODEL), query, pathEnd);
  if (rest.startsWith(WORDSET)) return parseWordset(partsAfter(WORDSET), query, pathEnd);
  throw new UrnError(
    "unknown-resource",
    NAMESPACE.length,
    "the resource must begin with tag:model/ or tag:wordset:lang/",
  );
}

/** The value of the only parameter allowed after `?=`. */
function parameter(name: string, query: Part): Part {
  if (!query.text.startsWith(`${name}=`))
    throw new UrnError("unknown-parameter", query.at, `only ${name} is allowed after ?=`);
  return { text: query.text.slice(name.length + 1), at: query.at + name.length + 1 };
}

function parseModel(parts: Part[], query: Part | null, end: number): ResourceUrn {
  const contextTag = unescapePart("context tag", parts[0], end);
  const service = present("service", parts[1], end);
  const kind = Object.hasOwn(MODEL_SERVICES, service.text) ? MODEL_SERVICES[service.text] : undefined;
  if (kind === undefined)
    throw new UrnError(
      "unknown-service",
      service.at,
      `the service must be one of ${Object.keys(MODEL_SERVICES).join(", ")}, got "${service.text}"`,
    );
  noMore(parts, 2);
  if (kind === "dialog") {
    if (query) throw new UrnError("unexpected-language", query.at, "a dialog resource must not have a language");
    return { kind, contextTag };
  }
  if (query === null) throw new UrnError("missing-language", end, "the language is missing");
  const language = parameter("language", query);
  return { kind, contextTag, language: checkLanguage(language.text, language.at) };
}

function parseWordset(parts: Part[], query: Part | null, end: number): ResourceUrn {
  const context = unescapePart("context", parts[0], end);
  const name = unescapePart("wordset name", parts[1], end);
  const language = present("language", parts[2], end, "missing-language");
  checkLanguage(language.text, language.at);
  const service = present("service", parts[3], end);
  if (!SERVICES.includes(service.text))
    throw new UrnError(
      "unknown-service",
      service.at,
      `the service must be ${SERVICES.join(" or ")}, got "${service.text}"`,
    );
  noMore(parts, 4);
  const wordset = {
    kind: "wordset",
    context,
    name,
    language: language.text,
    service: service.text as WordsetService,
  } as const;
  return query === null ? wordset : { ...wordset, userId: unescapePart("user id", parameter("user_id", query), end) };
}
