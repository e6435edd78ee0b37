import { setFlagsFromString } from "node:v8";

/**
 * For a process that is a box and nothing else. Left alone, V8 lets the heap grow to several times what lives in it, which a thousand silent
 * calls are then charged with (`npm run bench:server -- --live`).
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=40");
}
