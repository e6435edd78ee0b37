/**
 * Exported voiceprints sealed with a passphrase, as one JSON text with its own parameters. PBKDF2 derives the key, AES-256-GCM encrypts and
 * also authenticates the header. Both are from WebCrypto, in Node and in browsers (there only on https and localhost).
 */
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import * as z from "zod";
import { reportInput, schemaFault } from "./contract/schema-fault.js";
import { KEY_BYTES, randomBytes, webAead } from "./store/seal/aead.js";

/** Why sealing or opening failed. The message is written for the person who gave the passphrase or text. */
export class SealedExportError extends Error {
  override readonly name = "SealedExportError";
  constructor(
    /** The value that cannot be used. */
    readonly field: "passphrase" | "sealed",
    message: string,
  ) {
    super(message);
  }
}

const format = "vivavoce-sealed-export";
const version = 1;

/** OWASP's recommendation for HMAC-SHA-256 (2023). */
const iterations = 600_000;
/** Limits on what a file may ask for: too few iterations do not protect, too many would block this machine. */
const fewestIterations = 100_000;
const mostIterations = 10_000_000;
const SALT_BYTES = 16;
const shortestPassphrase = 8;

const base64 = z.base64().transform((text) => base64Decode(text));

const envelopeSchema = z.strictObject({
  format: z.literal(format),
  version: z.literal(version),
  kdf: z.strictObject({
    name: z.literal("PBKDF2"),
    hash: z.literal("SHA-256"),
    iterations: z.number().int().min(fewestIterations).max(mostIterations),
    salt: base64,
  }),
  cipher: z.literal("AES-256-GCM"),
  sealed: base64,
});

interface Kdf {
  readonly salt: Uint8Array;
  readonly iterations: number;
}

export async function seal(value: unknown, passphrase: string): Promise<string> {
  assertPassphrase(passphrase);
  const kdf = { salt: randomBytes(SALT_BYTES), iterations };
  const head = headOf(kdf);
  const plain = new TextEncoder().encode(JSON.stringify(value));
  const sealed = await webAead.seal(await keyOf(passphrase, kdf), plain, contextOf(head));
  return JSON.stringify({ ...head, sealed: base64Encode(sealed) }, null, 2);
}

export async function open(text: string, passphrase: string): Promise<unknown> {
  const { kdf, sealed } = parse(text);
  assertPassphrase(passphrase);
  const plain = await webAead.open(await keyOf(passphrase, kdf), sealed, contextOf(headOf(kdf)));
  if (!plain)
    throw new SealedExportError("passphrase", "the passphrase is wrong, or the file was changed after it was sealed");
  return JSON.parse(new TextDecoder().decode(plain));
}

const headOf = ({ salt, iterations }: Kdf) => ({
  format,
  version,
  kdf: { name: "PBKDF2", hash: "SHA-256", iterations, salt: base64Encode(salt) },
  cipher: "AES-256-GCM",
});

const contextOf = (head: ReturnType<typeof headOf>): Uint8Array => new TextEncoder().encode(JSON.stringify(head));

async function keyOf(passphrase: string, { salt, iterations }: Kdf) {
  // The same passphrase typed on another keyboard may consist of different code points that look the same.
  const bytes = new TextEncoder().encode(passphrase.normalize("NFKC"));
  const secret = await crypto.subtle.importKey("raw", bytes, "PBKDF2", false, ["deriveBits"]);
  const algorithm = { name: "PBKDF2", hash: "SHA-256", salt: new Uint8Array(salt), iterations };
  return webAead.importKey(new Uint8Array(await crypto.subtle.deriveBits(algorithm, secret, 8 * KEY_BYTES)));
}

function assertPassphrase(passphrase: string): void {
  if (passphrase.length >= shortestPassphrase) return;
  throw new SealedExportError(
    "passphrase",
    `the passphrase must have at least ${shortestPassphrase} characters, got ${passphrase.length}`,
  );
}

function parse(text: string): z.output<typeof envelopeSchema> {
  let value: { readonly format?: unknown; readonly version?: unknown } | null = null;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (value?.format !== format) throw new SealedExportError("sealed", "this is not a sealed export of voiceprints");
  if (value.version !== version)
    throw new SealedExportError("sealed", `expected a sealed export of version ${version}, got ${value.version}`);
  const parsed = envelopeSchema.safeParse(value, reportInput);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  const at = issue.path.join(".") || "the file";
  throw new SealedExportError("sealed", `the sealed export is damaged: ${at}: ${schemaFault(issue)}`);
}
