// Voices that were embedded before: as the network and the kernels of this build hear them.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { VoiceCache } from "../dist/evaluate/voice-cache.js";

export function openVoiceCache(engine) {
  const kernels = createHash("sha256")
    .update(readFileSync(new URL("../dist/engine/vivavoce.wasm", import.meta.url)))
    .digest("hex");
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "vivavoce", "evaluate");
  return VoiceCache.open(join(folder, `${engine.model.revision.slice(0, 16)}-${kernels.slice(0, 16)}.jsonl`));
}
