import { StoreError } from "./errors.js";

/** The same parts of a store; their methods throw once it is closed. */
export function refuseWhenClosed<Parts extends object>(parts: Parts, isClosed: () => boolean): Parts {
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, guarded(part, isClosed)])) as Parts;
}

function guarded(part: object, isClosed: () => boolean): object {
  const methods = Object.entries(part).map(([name, method]) => [
    name,
    (...values: unknown[]) => {
      if (!isClosed()) return method(...values);
      const error = new StoreError("closed", "the store is closed");
      return name === "prints" ? rejectingIterable(error) : Promise.reject(error);
    },
  ]);
  return Object.fromEntries(methods);
}

// biome-ignore lint/correctness/useYield: it always throws.
async function* rejectingIterable(error: Error): AsyncIterable<never> {
  throw error;
}
