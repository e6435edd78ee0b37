/** The HTTP signature of an AudioHook connection (draft of RFC 9421, HMAC-SHA256 over named parts of the request). */
import { createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isSame } from "../port.js";

/** Parts that the signature must cover; otherwise it would not protect what we trust. */
const NEEDED = [
  "@request-target",
  "audiohook-session-id",
  "audiohook-organization-id",
  "audiohook-correlation-id",
  "x-api-key",
];
const CLOCK_SKEW_SECONDS = 10;

/** `null` if the request has a valid signature, else the reason. */
export function signatureFault(
  { target, headers }: { readonly target: string; readonly headers: IncomingHttpHeaders },
  secret: Uint8Array,
  apiKey: string,
  nowSeconds: number,
): string | null {
  const header = (name: string) => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
  if (header("x-api-key") !== apiKey) return "the API key is unknown";
  const [, label, parameters] = /^\s*([a-z][\w-]*)=(\(.*)$/.exec(header("signature-input") ?? "") ?? [];
  const [, list, rest] = /^\(([^)]*)\)(.*)$/.exec(parameters ?? "") ?? [];
  if (label === undefined || list === undefined) return "Signature-Input is missing or malformed";
  const names = [...list.matchAll(/"([^"]+)"/g)].map(([, name]) => name!);
  const missing = NEEDED.filter((name) => !names.includes(name));
  if (missing.length > 0) return `the signature does not cover ${missing.join(", ")}`;
  const number = (name: string) => Number(new RegExp(`;\\s*${name}=(\\d+)`).exec(rest ?? "")?.[1] ?? Number.NaN);
  if (!(number("created") <= nowSeconds + CLOCK_SKEW_SECONDS)) return "the signature was created in the future";
  if (!(number("expires") >= nowSeconds - CLOCK_SKEW_SECONDS)) return "the signature has expired";
  const lines = names.map((name) => {
    const value = name === "@request-target" ? target : name === "@authority" ? header("host") : header(name);
    return value === undefined ? null : `"${name}": ${value}`;
  });
  if (lines.includes(null)) return "a header that the signature covers is missing";
  const due = createHmac("sha256", secret)
    .update([...lines, `"@signature-params": ${parameters}`].join("\n"))
    .digest();
  const [, sent] = new RegExp(`(?:^|,)\\s*${label}=:([A-Za-z0-9+/=]*):`).exec(header("signature") ?? "") ?? [];
  return isSame(Buffer.from(sent ?? "", "base64"), due)
    ? null
    : "the signature does not match; check apiKey and clientSecret of the line";
}
