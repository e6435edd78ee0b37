const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "this is a folder, not a file",
  ENOTDIR: "expected a folder here, found a file",
  // Only folders are created without a check.
  EEXIST: "expected a folder here, found a file",
  EROFS: "the file system is read-only",
};

/** Why a path cannot be used; `null` for other kinds of errors. */
export function fileFault(error: unknown): string | null {
  const { code } = error as NodeJS.ErrnoException;
  return (code !== undefined && WORDS[code]) || null;
}

/** The same, or the message of the error. */
export const reasonOf = (error: unknown): string =>
  fileFault(error) ?? (error instanceof Error ? error.message : String(error));
