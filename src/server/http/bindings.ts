import { type DescField, type DescMethod, getOption } from "@bufbuild/protobuf";
import { http } from "../../contract/gen/google/api/annotations_pb.js";
import type { HttpRule } from "../../contract/gen/google/api/http_pb.js";

/** A part of a path: a fixed word, or a field of the request. */
export type PathSegment = { readonly literal: string } | { readonly variable: string };

/** The HTTP binding of a method, from `google.api.http`. */
export interface HttpBinding {
  readonly method: DescMethod;
  readonly verb: string;
  readonly path: string;
  readonly segments: readonly PathSegment[];
  /** The whole message (`*`), one of its fields, or none: then the query has the remaining fields. */
  readonly body: "*" | { readonly field: DescField } | null;
}

/** The bindings of these methods. A method without one is an error in the contract. */
export function httpBindings(methods: readonly DescMethod[]): HttpBinding[] {
  return methods.flatMap((method) => {
    // Bidirectional streams use WebSocket.
    if (method.methodKind === "bidi_streaming") return [];
    const rule = getOption(method, http);
    return [rule, ...rule.additionalBindings].map((one) => bindingOf(method, one));
  });
}

function bindingOf(method: DescMethod, rule: HttpRule): HttpBinding {
  const { pattern } = rule;
  if (pattern.case === undefined || pattern.case === "custom")
    throw new TypeError(`${method.name} has no HTTP binding with a verb`);
  const path = pattern.value;
  return { method, verb: pattern.case.toUpperCase(), path, segments: parsePath(path), body: bodyOf(method, rule.body) };
}

function bodyOf(method: DescMethod, body: string): HttpBinding["body"] {
  if (body === "") return null;
  if (body === "*") return "*";
  const field = method.input.fields.find((one) => one.name === body);
  if (!field)
    throw new TypeError(
      `${method.name}: the HTTP binding names "${body}" as the body, which is not a field of the request`,
    );
  return { field };
}

export function parsePath(path: string): PathSegment[] {
  return path
    .replace(/^\//, "")
    .split("/")
    .map((segment) => {
      const variable = /^\{([\w.]+)\}$/.exec(segment)?.[1];
      if (variable !== undefined) return { variable };
      if (/[{}*]/.test(segment)) throw new TypeError(`${path}: only whole segments may be variables`);
      return { literal: segment };
    });
}

export interface BindingMatch {
  readonly binding: HttpBinding;
  /** Values of the path's variables, decoded, by dotted field name. */
  readonly variables: ReadonlyMap<string, string>;
}

export type MatchResult = BindingMatch | { readonly otherVerbs: readonly string[] } | "malformed" | null;

/** Finds the binding of a request. If several match, fixed words take precedence over variables, from left to right. */
export function bindingMatcher(bindings: readonly HttpBinding[]): (verb: string, path: string) => MatchResult {
  const byLength = new Map<number, HttpBinding[]>();
  for (const binding of bindings) {
    const list = byLength.get(binding.segments.length) ?? [];
    list.push(binding);
    byLength.set(binding.segments.length, list);
  }
  for (const list of byLength.values()) list.sort(wordsFirst);
  const longest = Math.max(...byLength.keys());

  return (verb, path) => {
    // A path may have thousands of words: no more are read than the longest binding has.
    let words = path.replace(/^\//, "").split("/", longest + 1);
    const ofLength = byLength.get(words.length);
    if (!ofLength) return null;
    try {
      words = words.map(decodeURIComponent);
    } catch {
      return "malformed";
    }
    const fitting = ofLength.filter((binding) =>
      binding.segments.every((segment, i) => ("literal" in segment ? segment.literal === words[i] : words[i] !== "")),
    );
    if (fitting.length === 0) return null;
    const binding = fitting.find((one) => one.verb === verb);
    if (!binding) return { otherVerbs: [...new Set(fitting.map((one) => one.verb))] };
    const variables = new Map<string, string>();
    binding.segments.forEach((segment, i) => {
      if ("variable" in segment) variables.set(segment.variable, words[i]!);
    });
    return { binding, variables };
  };
}

function wordsFirst(a: HttpBinding, b: HttpBinding): number {
  for (let i = 0; i < a.segments.length; i++) {
    const difference = Number("variable" in a.segments[i]!) - Number("variable" in b.segments[i]!);
    if (difference !== 0) return difference;
  }
  return 0;
}
