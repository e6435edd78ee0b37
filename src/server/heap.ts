import { setFlagsFromString } from "node:v8";

/**
 * For a process that only runs a box. By default V8 lets the heap grow to several times its live size, which a thousand
 * silent calls would pay for (`npm run bench:server -- --live`). The second flag applies to threads started later.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--heap-growing-percent=40");
  setFlagsFromString("--max-semi-space-size=2");
}
