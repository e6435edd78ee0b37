// Cached voices, by the network and kernels of this build.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { VoiceCache } from "../dist/evaluate/voice-cache.js";

/** The voice in a file under a condition, from a cache filled by bench/voices.mjs; `null` if there was no voice. */
export const heardIn = (cache, revision) => (path, condition) => {
  const file = createHash("sha256").update(readFileSync(path)).digest("hex");
  const found = cache.get([file, revision, condition].join(" "));
  return found?.embedding ? { ...found.measures, embedding: found.embedding } : null;
};

export function openVoiceCache(engine) {
  const kernels = createHash("sha256")
    .update(readFileSync(new URL("../dist/engine/vivavoce.wasm", import.meta.url)))
    .digest("hex");
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "vivavoce", "evaluate");
  return VoiceCache.open(join(folder, `${engine.model.revision.slice(0, 16)}-${kernels.slice(0, 16)}.jsonl`));
}
