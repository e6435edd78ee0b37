const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EISDIR: "this is a folder, not a file",
  ENOTDIR: "expected a folder here, found a file",
  // Only folders are created without a check.
  EEXIST: "expected a folder here, found a file",
  ELOOP: "its symbolic links form a loop",
  ENAMETOOLONG: "the name is too long",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full; free some space and start again",
  EDQUOT: "the disk quota of this user is used up; free some space and start again",
  EMFILE: "too many open files; raise the limit (ulimit -n)",
};

/** Why a path cannot be used; `null` for other kinds of errors. */
export function fileFault(error: unknown): string | null {
  const { code } = error as NodeJS.ErrnoException;
  return (code !== undefined && WORDS[code]) || null;
}

const NO_SPACE: ReadonlySet<string | undefined> = new Set(["ENOSPC", "EDQUOT"]);

/** A full disk is not a mistake of the user: the same works when there is space again. */
export const isOutOfSpace = (error: unknown): boolean => NO_SPACE.has((error as NodeJS.ErrnoException).code);

/** Why a path cannot be used, or the message of the error. */
export const reasonOf = (error: unknown): string => fileFault(error) ?? (error as Error).message;
