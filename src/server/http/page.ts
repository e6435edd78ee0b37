import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readCalibrationFile } from "../../engine/calibration-file.js";
import { readModelFile } from "../../engine/model-file.js";
import { serveFolder } from "./static-files.js";

export type Page = (request: Request) => Response | null;

/**
 * Serves the page in a folder at `/`; `null` if there is none. The package's own page is in `dist/page`. The box's
 * `calibration` is written into it, so that page and box decide alike; refused if it was fitted to another model than
 * the page's.
 */
export async function servePage(given?: string, calibration?: Uint8Array): Promise<Page | null> {
  const folder = given ?? fileURLToPath(new URL("../../page/", import.meta.url));
  if (!existsSync(folder)) return null;
  const index = join(folder, "index.html");
  const model = existsSync(index) ? modelOfPage(folder, index) : null;
  const elsewhere = model?.packaged ? { [`/${model.named}`]: model.path } : {};
  if (!calibration || !model) return serveFolder(folder, "/", elsewhere);
  await readCalibrationFile(calibration, (await readModelFile(readFileSync(model.path))).revision);
  const meta = `<meta name="vivavoce-calibration" content="data:application/json;base64,${Buffer.from(calibration).toString("base64")}" />`;
  return serveFolder(folder, "/", elsewhere, (path, bytes) =>
    path === index ? Buffer.from(bytes.toString("utf8").replace("</head>", `  ${meta}\n  </head>`)) : bytes,
  );
}

/**
 * The URL of the page's model, and its file. The library has one copy of the model, which the page of a package uses.
 */
function modelOfPage(folder: string, index: string) {
  const named = /<meta name="vivavoce-model" content="([^"]+)"/.exec(readFileSync(index, "utf8"))?.[1];
  if (named === undefined) return null;
  const path = join(folder, named);
  return existsSync(path)
    ? { named, path, packaged: false }
    : { named, path: createRequire(import.meta.url).resolve("vivavoce/vivavoce.vvm"), packaged: true };
}
