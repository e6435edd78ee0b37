import { ModelLoadError } from "./failure.js";
import { strings } from "./strings.js";

type Bytes = Uint8Array<ArrayBuffer>;

/** A box sends larger files as a whole only rarely. */
const partBytes = 1 << 20;
/** At a time, so that the way to the server and back counts only once. */
const mostParts = 3;

/** A file that is loaded in parts. Those that arrived before a failure are not loaded again. */
export class ModelDownload {
  /** By the position of their first byte. */
  readonly #parts = new Map<number, Bytes>();

  constructor(
    readonly url: string,
    readonly bytes: number,
  ) {}

  /** Calls `arrives` with each piece. Rejects with what to tell the user. */
  async load(arrives: (have: number) => void, signal: AbortSignal): Promise<Bytes> {
    const starts = Array.from({ length: Math.ceil(this.bytes / partBytes) }, (_, i) => i * partBytes);
    const missing = starts.filter((from) => !this.#parts.has(from));
    const have = new Map([...this.#parts].map(([from, { length }]) => [from, length]));
    let whole: Bytes | null = null;
    const loadNext = async (): Promise<void> => {
      const from = missing.shift();
      if (from === undefined || whole !== null) return;
      const end = Math.min(from + partBytes, this.bytes);
      const response = await this.#get(`bytes=${from}-${end - 1}`, signal);
      const read = await readAll(response, (size) => {
        have.set(from, size);
        arrives([...have.values()].reduce((sum, one) => sum + one));
      });
      // Some servers know no parts and send everything.
      if (response.status !== 206) whole = read;
      else if (read?.length === end - from) this.#parts.set(from, read);
      else throw incomplete();
    };
    // If it turns out to be everything, nothing else is asked for.
    await loadNext();
    const loadRest = async () => {
      while (missing.length > 0 && whole === null) await loadNext();
    };
    await Promise.all(Array.from({ length: mostParts }, loadRest));
    const model = whole ?? (await joined(starts.map((from) => this.#parts.get(from)!)));
    if (model.length !== this.bytes) throw incomplete();
    return model;
  }

  async #get(range: string, signal: AbortSignal): Promise<Response> {
    const response = await fetch(this.url, { headers: { range }, signal }).catch(() => null);
    if (!response) throw failed(strings.model.why.noAnswer);
    if (!response.ok || !response.body) throw failed(strings.model.why.answered(response.status));
    return response;
  }
}

const failed = (why: string) => new ModelLoadError(strings.model.failed(why));
const incomplete = () => failed(strings.model.why.incomplete);

const joined = async (parts: Bytes[]): Promise<Bytes> => new Uint8Array(await new Blob(parts).arrayBuffer());

/** Calls `arrives` with the size of what has been read so far. */
export async function readAll({ body }: Response, arrives: (have: number) => void): Promise<Bytes> {
  const pieces: Bytes[] = [];
  let have = 0;
  const reader = body!.getReader() as ReadableStreamDefaultReader<Bytes>;
  for (;;) {
    const { done, value } = await reader.read().catch(() => Promise.reject(incomplete()));
    if (done) return joined(pieces);
    pieces.push(value);
    have += value.length;
    arrives(have);
  }
}
