const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "a folder, not a file",
  ENOTDIR: "a file is where a folder should be",
  // Only folders are made without looking first.
  EEXIST: "a file is where a folder should be",
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
