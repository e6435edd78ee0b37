import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".wasm": "application/wasm",
  ".vvm": "application/octet-stream",
};

/** Kernels are compiled in the page; nothing comes from, or goes to, anywhere else. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
  "media-src 'self' blob:; worker-src 'self' blob:; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/**
 * The files of a folder at the paths they have there, below `at`, `index.html` at its folder's; and files that lie `elsewhere`, by
 * path. The list is made once: a path that is not on it reaches no file.
 */
export function serveFolder(
  folder: string,
  at = "/",
  elsewhere: Readonly<Record<string, string>> = {},
): (request: Request) => Response | null {
  const files = new Map(Object.entries(elsewhere));
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const url = `${at}${name.split("\\").join("/")}`;
    files.set(url, path);
    if (url.endsWith("/index.html")) files.set(url.slice(0, -"index.html".length), path);
  }

  /** What shrinks, shrunk once. A model hardly does, and who shows progress needs its length. */
  const shrunk = new Map<string, Buffer>();
  function gzipped(path: string, bytes: Buffer): Buffer {
    const made = shrunk.get(path) ?? gzipSync(bytes);
    shrunk.set(path, made);
    return made;
  }

  return (request) => {
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    const { pathname } = new URL(request.url);
    const path = files.get(pathname);
    if (path === undefined) return null;
    const bytes = readFileSync(path);
    const tag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
    const type = TYPES[/\.\w+$/.exec(path)?.[0] ?? ""] ?? "application/octet-stream";
    const zip = type !== "application/octet-stream" && /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
    const headers = {
      "content-type": type,
      ...(zip ? { "content-encoding": "gzip" } : {}),
      vary: "accept-encoding, origin",
      // The build gives files in these folders an address that changes with their content.
      "cache-control": /^(assets|models)\//.test(pathname.slice(at.length))
        ? "public, max-age=31536000, immutable"
        : "no-cache",
      etag: tag,
      "content-security-policy": CONTENT_SECURITY_POLICY,
      // With both, a page may share one copy of the model among its workers.
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    };
    if (request.headers.get("if-none-match") === tag) return new Response(null, { status: 304, headers });
    const body = zip ? gzipped(path, bytes) : bytes;
    return new Response(request.method === "HEAD" ? null : new Uint8Array(body), {
      headers: { ...headers, "content-length": String(body.length) },
    });
  };
}
