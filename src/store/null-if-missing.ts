/** For `catch`: a file that is not there is `null`, everything else is an error. */
export function nullIfMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
  throw error;
}
