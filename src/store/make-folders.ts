import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Creates the folder and those above it. Node's own way (`recursive`) never returns for a folder in `/proc`. */
export async function makeFolders(path: string, mode = 0o777): Promise<void> {
  const folder = resolve(path);
  if ((await stat(folder).catch(() => null))?.isDirectory()) return;
  const above = dirname(folder);
  if (above !== folder) await makeFolders(above, mode);
  try {
    await mkdir(folder, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // The folder above exists, but its file system, such as /proc, refuses new folders.
    if (code === "ENOENT") throw Object.assign(new Error(`no folder can be created in ${above}`), { code: "EPERM" });
    // Another process was faster, or there is a file of this name.
    if (code !== "EEXIST" || !(await stat(folder)).isDirectory()) throw error;
  }
}
