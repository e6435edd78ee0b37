/** Caches the page's own files, so that it opens without a network. The page itself caches the model. */

/** Inserted by the build: the addresses of the files relative to this script, and a cache name that changes with them. */
declare const FILES: readonly string[];
declare const VERSION: string;

const scope = globalThis as unknown as ServiceWorkerGlobalScope;
const shelf = `vivavoce-page-${VERSION}`;
/** A box serves other pages at this origin, and data that must not be cached, so this script handles only these files. */
const page = new URL("./", scope.location.href).href;
const assets = new URL("assets/", page).href;

scope.addEventListener("install", (event) => {
  event.waitUntil(
    (async () => {
      const cache = await caches.open(shelf);
      await cache.addAll(FILES.map((path) => new Request(path, { cache: "reload" })));
      await scope.skipWaiting();
    })(),
  );
});

scope.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      const others = (await caches.keys()).filter((name) => name.startsWith("vivavoce-page-") && name !== shelf);
      // A tab that was opened before this upgrade still needs the files of its version, which the server has no more.
      await Promise.all(others.slice(0, -1).map((name) => caches.delete(name)));
      await scope.clients.claim();
    })(),
  );
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET") return;
  if (request.mode === "navigate" && origin + pathname === page) event.respondWith(newest(request));
  else if (request.url.startsWith(assets)) event.respondWith(kept(request));
});

/** A network or proxy that takes longer for the page's few kilobytes hardly works. */
const longestMs = 10_000;

/** The current page; or the cached one if there is no network, or the server behind it does not answer. */
async function newest(request: Request): Promise<Response> {
  const cache = await caches.open(shelf);
  const known = await cache.match(request, { ignoreSearch: true, ignoreVary: true });
  if (!known) return fetch(request);
  try {
    const response = await fetch(request, { signal: AbortSignal.timeout(longestMs) });
    return response.status < 500 ? response : known;
  } catch {
    return known;
  }
}

/**
 * All other files have addresses that change with their content. The box sends `vary: origin`; module scripts send an origin, but the
 * requests that filled the cache did not. `vary` can be ignored, because these files are the same for every origin.
 */
async function kept(request: Request): Promise<Response> {
  return (await caches.match(request, { ignoreVary: true })) ?? fetch(request);
}
