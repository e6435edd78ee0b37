import { StoreError } from "./errors.js";

/** The same methods; they throw once the store is closed. */
export function refuseWhenClosed<T extends object>(part: T, isClosed: () => boolean): T {
  const guarded: Record<string, unknown> = {};
  for (const [name, method] of Object.entries(part)) {
    guarded[name] = (...values: unknown[]) => {
      if (!isClosed()) return method(...values);
      const error = new StoreError("closed", "the store is closed");
      return name === "prints" ? rejectingIterable(error) : Promise.reject(error);
    };
  }
  return guarded as T;
}

// biome-ignore lint/correctness/useYield: it always throws.
async function* rejectingIterable(error: Error): AsyncIterable<never> {
  throw error;
}
