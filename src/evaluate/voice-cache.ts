import { appendFile, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { AttackScore, Measures } from "../engine/port.js";
import { makeFolders } from "../store/make-folders.js";

/** What an evaluation keeps of a recording. */
export interface CachedVoice {
  readonly measures: Measures;
  /** `null`: too little speech. */
  readonly embedding: Float32Array | null;
}

/** Of a recording in an attack check. */
export type CachedAttack = Pick<AttackScore, "llr" | "reliability" | "revision">;

/** The file must not be written. */
export class CacheError extends Error {
  override readonly name = "CacheError";
}

/** How every line begins; an interruption may have cut it. */
const lineStart = '{"key":';

/**
 * Embeddings by key (hash of the file, model revision, condition) and scores of attack checks, one JSON line each. They are appended as they are
 * computed, so an interrupted evaluation continues where it stopped; an incomplete last line is ignored.
 * Embeddings are biometric: only the owner of the file can read it.
 */
export class VoiceCache {
  readonly #voices = new Map<string, CachedVoice>();
  readonly #attacks = new Map<string, CachedAttack>();

  private constructor(private readonly path: string | null) {}

  static inMemory(): VoiceCache {
    return new VoiceCache(null);
  }

  static async open(path: string): Promise<VoiceCache> {
    const cache = new VoiceCache(path);
    await makeFolders(dirname(path), 0o700);
    const file = await open(path, "a+", 0o600);
    try {
      const { size } = await file.stat();
      let [isEmpty, isCache] = [true, false];
      // Line by line: a text of more than 512 MB cannot be held.
      for await (const line of file.readLines({ start: 0, autoClose: false })) {
        if (line === "") continue;
        isEmpty = false;
        isCache ||= line.startsWith(lineStart) || lineStart.startsWith(line);
        const entry = parseLine(line);
        if (entry && "attack" in entry) cache.#attacks.set(entry.key, entry.attack);
        else if (entry) cache.#voices.set(entry.key, entry.voice);
      }
      if (!isEmpty && !isCache) throw new CacheError(`${path}: this file exists and is not a cache of embeddings`);
      // An interruption may have cut the last line: the next one must not be joined to it.
      const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
      if (bytesRead > 0 && buffer.toString() !== "\n") await file.write("\n");
      return cache;
    } finally {
      await file.close();
    }
  }

  get(key: string): CachedVoice | undefined {
    return this.#voices.get(key);
  }

  async put(key: string, voice: CachedVoice): Promise<void> {
    this.#voices.set(key, voice);
    const embedding = voice.embedding === null ? null : Buffer.from(voice.embedding.slice().buffer).toString("base64");
    await this.#append({ key, measures: voice.measures, embedding });
  }

  attack(key: string): CachedAttack | undefined {
    return this.#attacks.get(key);
  }

  async putAttack(key: string, { llr, reliability, revision }: CachedAttack): Promise<void> {
    const attack = { llr, reliability, revision };
    this.#attacks.set(key, attack);
    await this.#append({ key, attack });
  }

  async #append(entry: object): Promise<void> {
    if (this.path !== null) await appendFile(this.path, `${JSON.stringify(entry)}\n`, { mode: 0o600 });
  }
}

function parseLine(line: string): { key: string; voice: CachedVoice } | { key: string; attack: CachedAttack } | null {
  try {
    const { key, measures, embedding, attack } = JSON.parse(line) as {
      key: string;
      measures: Measures;
      embedding: string | null;
      attack?: CachedAttack;
    };
    if (typeof key === "string" && typeof attack?.llr === "number") return { key, attack };
    if (typeof key !== "string" || typeof measures?.netSpeechSeconds !== "number") return null;
    if (embedding === null) return { key, voice: { measures, embedding } };
    const bytes = Buffer.from(embedding, "base64");
    if (bytes.length === 0 || bytes.length % 4 !== 0) return null;
    return { key, voice: { measures, embedding: new Float32Array(new Uint8Array(bytes).buffer) } };
  } catch {
    return null;
  }
}
