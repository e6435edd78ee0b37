const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "this is a folder, not a file",
  ENOTDIR: "expected a folder here, found a file",
  // Only folders are made without looking first.
  EEXIST: "expected a folder here, found a file",
  EROFS: "the file system is read-only",
};

/** Why a path cannot be used, in words; `null` where the error is of another kind. */
export function fileFault(error: unknown): string | null {
  const { code } = error as NodeJS.ErrnoException;
  return (code !== undefined && WORDS[code]) || null;
}

/** The same, or what the error says itself. */
export const reasonOf = (error: unknown): string =>
  fileFault(error) ?? (error instanceof Error ? error.message : String(error));
