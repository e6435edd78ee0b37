import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { CallRates } from "../../token/call-rates.js";

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

/** The page compiles the kernels; it loads nothing from elsewhere and sends nothing elsewhere. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
  "media-src 'self' blob:; worker-src 'self' blob:; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/**
 * Serves the files of a folder below `at`, with `index.html` at the folder's own path, and files from `elsewhere` by
 * path. The list is made once, and no other path reaches a file. `edit` may change the content of a file.
 */
export function serveFolder(
  folder: string,
  at = "/",
  elsewhere: Readonly<Record<string, string>> = {},
  edit: (path: string, bytes: Buffer) => Buffer = (_, bytes) => bytes,
): (request: Request) => Response | null {
  const files = new Map(Object.entries(elsewhere));
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const url = `${at}${name.split("\\").join("/")}`;
    files.set(url, path);
    if (url.endsWith("/index.html")) files.set(url.slice(0, -"index.html".length), path);
  }

  const loaded = new Map<string, LoadedFile>();

  return (request) => {
    if (request.method !== "GET" && request.method !== "HEAD") return null;
    const { pathname } = new URL(request.url);
    const path = files.get(pathname);
    if (path === undefined) return null;
    const file = loaded.get(path) ?? loadFile(edit(path, readFileSync(path)));
    loaded.set(path, file);
    const type = TYPES[/\.\w+$/.exec(path)?.[0] ?? ""] ?? "application/octet-stream";
    return file.answer(request, type, {
      // The build puts a content hash into the names of files in these folders.
      "cache-control": /^(assets|models)\//.test(pathname.slice(at.length))
        ? "public, max-age=31536000, immutable"
        : "no-cache",
      "content-security-policy": CONTENT_SECURITY_POLICY,
      // With both headers, a page may share one copy of the model between its workers.
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
  };
}

export type LoadedFile = ReturnType<typeof loadFile>;

/** Not `gzip;q=0`, which refuses it. */
const ACCEPTS_GZIP = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i;

/**
 * To send 1 MB takes about half a millisecond, and anybody may ask. Larger files are sent in parts as often as somebody asks,
 * and as a whole 60 times and then once a second: the page loads its model in parts (`src/web/model-download.ts`).
 */
const LARGEST_PART = 1 << 20;
const WHOLE_AT_ONCE = 60;
const WHOLE_PER_SECOND = 1;

/** The only part that a request asks for; `null` for none or several, which a server may ignore (RFC 9110 §14.2). */
function partOf(request: Request, tag: string, length: number): { from: number; end: number } | null {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.get("range") ?? "") ?? [];
  const known = request.headers.get("if-range");
  if (request.method !== "GET" || first + last === "" || (known !== null && known !== tag)) return null;
  if (first === "") return { from: Math.max(0, length - Number(last)), end: length };
  const end = last === "" ? length : Math.min(length, Number(last) + 1);
  return last !== "" && Number(last) < Number(first) ? null : { from: Number(first), end };
}

/** Hashed and compressed once, because anybody may request it as often as they like. */
export function loadFile(bytes: Buffer) {
  const whole = new CallRates(WHOLE_PER_SECOND, WHOLE_AT_ONCE);
  const tag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
  let shrunk: Buffer | null = null;
  return {
    /**
     * The answer to a GET or HEAD: the bytes, or the part that is asked for, compressed if the client accepts that; 304 if the
     * client has them; 429 if too many clients want a large file as a whole.
     */
    answer(request: Request, type: string, extra: Record<string, string>): Response {
      // A model hardly compresses, and progress bars need its length.
      const zip =
        type !== "application/octet-stream" && ACCEPTS_GZIP.test(request.headers.get("accept-encoding") ?? "");
      const headers = {
        "content-type": type,
        ...(zip ? { "content-encoding": "gzip" } : {}),
        vary: "accept-encoding, origin",
        etag: tag,
        ...extra,
      };
      // A proxy that compresses marks the tag as weak (`W/"…"`).
      if (request.headers.get("if-none-match")?.includes(tag)) return new Response(null, { status: 304, headers });
      if (zip) shrunk ??= gzipSync(bytes);
      const all = zip ? shrunk! : bytes;
      const part = zip ? null : partOf(request, tag, all.length);
      if (part && part.from >= part.end)
        return new Response(null, { status: 416, headers: { ...headers, "content-range": `bytes */${all.length}` } });
      const { from, end } = part ?? { from: 0, end: all.length };
      const waitS = end - from > LARGEST_PART && request.method === "GET" ? whole.take("all") : null;
      if (waitS !== null)
        return new Response(`too many clients load this file as a whole; load it in parts of ${LARGEST_PART} bytes\n`, {
          status: 429,
          headers: {
            "content-type": "text/plain",
            "retry-after": String(Math.ceil(waitS)),
            "cache-control": "no-store",
          },
        });
      return new Response(request.method === "HEAD" ? null : inChunks(all.subarray(from, end)), {
        status: part ? 206 : 200,
        headers: {
          ...headers,
          ...(part ? { "content-range": `bytes ${from}-${end - 1}/${all.length}` } : {}),
          ...(zip ? {} : { "accept-ranges": "bytes" }),
          "content-length": String(end - from),
        },
      });
    },
  };
}

/** Smaller ones take more CPU time for a model; over TLS, a client that does not read holds one chunk. */
const CHUNK_BYTES = 262_144;

/**
 * Views of the single copy, each passed on after the previous one was taken: a client that does not read costs no
 * memory.
 */
function inChunks(bytes: Buffer): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(at, at + CHUNK_BYTES));
        at += CHUNK_BYTES;
        if (at >= bytes.length) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
