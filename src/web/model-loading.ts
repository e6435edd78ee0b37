/** Fetches the model once, reports progress, and caches it for the next visit. */
import { ModelDownload, readAll } from "./model-download.js";

export interface ModelLocation {
  readonly url: string;
  readonly bytes: number;
}

const shelf = "vivavoce-model";

/** The address of the model, from the page; it changes with the model. */
export function modelOfPage(): ModelLocation {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="vivavoce-model"]');
  if (!meta) throw new Error("the page does not name a model");
  return { url: new URL(meta.content, document.baseURI).href, bytes: Number(meta.dataset.bytes) };
}

/** A network that brings nothing for so long has gone, though the browser would wait for minutes. */
const longestPauseMs = 30_000;

let begun: ModelDownload | null = null;

/** `download` is aborted if nothing arrives any more. */
export async function loadModel(
  { url, bytes }: ModelLocation,
  progress: (have: number, all: number) => void,
  download: AbortController,
): Promise<Uint8Array> {
  const cache = await openShelf();
  const kept = await cache?.match(url);
  if (begun?.url !== url) begun = new ModelDownload(url, bytes);
  let pause: ReturnType<typeof setTimeout> | undefined;
  const arrives = (have: number) => {
    clearTimeout(pause);
    pause = setTimeout(() => download.abort(), longestPauseMs);
    if (have > 0) progress(Math.min(have, bytes), bytes);
  };
  try {
    arrives(0);
    const stored = kept && (await readAll(kept, arrives));
    if (stored?.length === bytes) return stored;
    const model = await begun.load(arrives, download.signal);
    begun = null;
    if (cache) await keep(cache, url, model);
    return model;
  } finally {
    clearTimeout(pause);
  }
}

/** Whether the next visit finds the model without a network. */
export async function isModelKept({ url }: ModelLocation): Promise<boolean> {
  return (await (await openShelf())?.match(url)) !== undefined;
}

/** `null` where there is no Cache Storage: pages that are not a secure context, and some private windows. They load the model at every visit. */
async function openShelf(): Promise<Cache | null> {
  try {
    return await caches.open(shelf);
  } catch {
    return null;
  }
}

async function keep(cache: Cache, url: string, model: Uint8Array<ArrayBuffer>): Promise<void> {
  try {
    for (const old of await cache.keys()) if (old.url !== url) await cache.delete(old);
    await cache.put(url, new Response(model));
  } catch {
    // If the disk is full, only the next visit is affected: it has to download again.
  }
}
