import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serveFolder } from "./static-files.js";

/** The page of a folder, at `/`; `null` where there is none. The package's own lies in `dist/page`. */
export function servePage(given?: string): ((request: Request) => Response | null) | null {
  const folder = given ?? fileURLToPath(new URL("../../page/", import.meta.url));
  if (!existsSync(folder)) return null;
  return serveFolder(folder, "/", packageModel(folder));
}

/** The library carries the model once: there the address leads that the page of a package has for it. */
function packageModel(folder: string): Record<string, string> {
  const page = join(folder, "index.html");
  if (!existsSync(page)) return {};
  const named = /<meta name="vivavoce-model" content="([^"]+)"/.exec(readFileSync(page, "utf8"))?.[1];
  return named === undefined || existsSync(join(folder, named))
    ? {}
    : { [`/${named}`]: createRequire(import.meta.url).resolve("vivavoce/vivavoce.vvm") };
}
