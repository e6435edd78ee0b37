/** Fetches the model once, reports progress, and caches it for the next visit. */
import { ModelLoadError } from "./failure.js";
import { strings } from "./strings.js";

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

/** `download` is aborted if nothing arrives any more. */
export async function loadModel(
  { url, bytes }: ModelLocation,
  progress: (have: number, all: number) => void,
  download: AbortController,
): Promise<Uint8Array> {
  const cache = await openShelf();
  const kept = await cache?.match(url);
  const { noAnswer, answered, incomplete } = strings.model.why;
  let pause: ReturnType<typeof setTimeout> | undefined;
  const arrives = () => {
    clearTimeout(pause);
    pause = setTimeout(() => download.abort(), longestPauseMs);
  };
  try {
    arrives();
    const response = kept ?? (await fetch(url, { signal: download.signal }).catch(() => null));
    if (!response) throw failed(noAnswer);
    if (!response.ok || !response.body) throw failed(answered(response.status));
    const model = await readAll(response.body, bytes, (have, all) => {
      arrives();
      progress(have, all);
    }).catch(() => null);
    if (model?.length !== bytes) {
      await cache?.delete(url);
      throw failed(incomplete);
    }
    if (cache && !kept) await keep(cache, url, model);
    return model;
  } finally {
    clearTimeout(pause);
  }
}

const failed = (why: string) => new ModelLoadError(strings.model.failed(why));

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

async function readAll(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  bytes: number,
  progress: (have: number, all: number) => void,
): Promise<Uint8Array> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let have = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value);
    have += value.length;
    progress(Math.min(have, bytes), bytes);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

async function keep(cache: Cache, url: string, model: Uint8Array): Promise<void> {
  try {
    for (const old of await cache.keys()) if (old.url !== url) await cache.delete(old);
    await cache.put(url, new Response(model as Uint8Array<ArrayBuffer>));
  } catch {
    // If the disk is full, only the next visit is affected: it has to download again.
  }
}
