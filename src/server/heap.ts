import { setFlagsFromString } from "node:v8";

/**
 * For a process that is a box and nothing else. Left alone, V8 lets the heap grow to several times what lives in it, which a thousand silent
 * calls are then charged with (`npm run bench:server -- --live`). The second flag is for the threads that are started after it.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=40");
  setFlagsFromString("--max-semi-space-size=2");
}
