/** The two packages as somebody installs them: the library with its dependencies from the registry, the box on dependencies of this checkout. */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { pack } from "../../scripts/pack.mjs";

export const root = fileURLToPath(new URL("../../", import.meta.url));
const dependenciesOf = (path: string): object => JSON.parse(readFileSync(join(root, path), "utf8")).dependencies;

export interface Installed {
  /** To be removed when done. */
  readonly folder: string;
  /** A project with the library alone. */
  readonly withLibrary: string;
  /** A project with both; its `vivavoce` command is `command`. */
  readonly withBox: string;
  readonly command: string;
}

/** `more` packages come into the project of the library, by their names and versions. */
export async function install(...more: string[]): Promise<Installed> {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-installed-"));
  const [withLibrary, withBox] = [join(folder, "library"), join(folder, "box")];
  const [library, box] = pack(folder);
  mkdirSync(withLibrary);
  writeFileSync(join(withLibrary, "package.json"), '{ "type": "module" }');
  await promisify(execFile)("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", library!, ...more], {
    cwd: withLibrary,
  });
  for (const [name, tarball] of [
    ["vivavoce", library],
    ["vivavoce-box", box],
  ] as const) {
    const place = join(withBox, "node_modules", name);
    mkdirSync(place, { recursive: true });
    execFileSync("tar", ["xzf", tarball!, "-C", place, "--strip-components=1"]);
  }
  for (const name of Object.keys({ ...dependenciesOf("package.json"), ...dependenciesOf("src/box/package.json") })) {
    const place = join(withBox, "node_modules", name);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(root, "node_modules", name), place);
  }
  return { folder, withLibrary, withBox, command: join(withBox, "node_modules/vivavoce-box/dist/cli/main.js") };
}
