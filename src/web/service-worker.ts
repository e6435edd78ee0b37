/** Caches the page's own files, so that it opens without a network. The page itself caches the model. */

/** Inserted by the build: the addresses of the files relative to this script, and a cache name that changes with them. */
declare const FILES: readonly string[];
declare const VERSION: string;

const scope = globalThis as unknown as ServiceWorkerGlobalScope;
const shelf = `vivavoce-page-${VERSION}`;
/** A box serves other pages at this origin, and data that must not be cached, so this script handles only these files. */
const own = new Set(FILES.map((path) => new URL(path, scope.location.href).href));

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
      const old = (await caches.keys()).filter((name) => name.startsWith("vivavoce-page-") && name !== shelf);
      await Promise.all(old.map((name) => caches.delete(name)));
      await scope.clients.claim();
    })(),
  );
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || !own.has(origin + pathname)) return;
  if (request.mode === "navigate") event.respondWith(newest(request));
  else event.respondWith(kept(request));
});

/** A network or proxy that takes longer for the page's few kilobytes hardly works. */
const longestMs = 10_000;

/** The current page; or the cached one if there is no network, or the server behind it does not answer. */
async function newest(request: Request): Promise<Response> {
  const page = await caches.match(request, { ignoreSearch: true, ignoreVary: true });
  if (!page) return fetch(request);
  try {
    const response = await fetch(request, { signal: AbortSignal.timeout(longestMs) });
    return response.status < 500 ? response : page;
  } catch {
    return page;
  }
}

/**
 * All other files have addresses that change with their content. The box sends `vary: origin`; module scripts send an origin, but the
 * requests that filled the cache did not. `vary` can be ignored, because these files are the same for every origin.
 */
async function kept(request: Request): Promise<Response> {
  const cache = await caches.open(shelf);
  return (await cache.match(request, { ignoreVary: true })) ?? fetch(request);
}
