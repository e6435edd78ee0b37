/** Keeps the page's own files, so that it opens without a network. The model is kept by the page itself. */

/** Written in by the build: the files' addresses relative to this script, and a name that changes with them. */
declare const FILES: readonly string[];
declare const VERSION: string;

const scope = globalThis as unknown as ServiceWorkerGlobalScope;
const shelf = `vivavoce-page-${VERSION}`;
/** A box has other pages at this address, and data that must not be kept: they are none of this script's business. */
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

/** The page itself as it is now, or as it was when there is no network. */
async function newest(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (error) {
    const page = await caches.match(request, { ignoreSearch: true, ignoreVary: true });
    if (page) return page;
    throw error;
  }
}

/**
 * Everything else has an address that changes with its content. A box says that answers vary with `origin`, which module scripts send
 * and the requests that filled the cache did not; these files are the same for every origin.
 */
async function kept(request: Request): Promise<Response> {
  const cache = await caches.open(shelf);
  return (await cache.match(request, { ignoreVary: true })) ?? fetch(request);
}
