import { EngineError } from "./engine-error.js";

/** Whether this memory was moved to another thread, and is empty here. Node 20 has no `buffer.detached`, but no runtime makes a view of it. */
export function isMoved(buffer: ArrayBufferLike): boolean {
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

export const movedSamples = (): EngineError =>
  new EngineError(
    "BAD_SAMPLES",
    "the samples were moved to another thread by an earlier call; pass that call a slice()",
  );
