import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The paths of all files in a folder and in its folders. */
export const filesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
