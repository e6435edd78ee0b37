/**
 * Calls a caller's `onProgress`. What it throws must not change the result of the work that it watches: it is thrown outside the call, as an
 * error of an event listener is.
 */
export function reportProgress<T>(onProgress: ((progress: T) => void) | undefined, progress: T): void {
  try {
    onProgress?.(progress);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
