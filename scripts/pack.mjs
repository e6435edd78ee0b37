// Packs the two packages of this repository into a folder: `vivavoce`, the library, as in the root manifest, and
// `vivavoce-box`, everything else that was built: the box and the command line, on top of the library.
//   npm run build && node scripts/pack.mjs FOLDER
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, posix, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { shippedModel } from "../dist/engine/shipped-model.js";

const root = fileURLToPath(new URL("../", import.meta.url));
const manifestOf = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

function npmPack(cwd, ...args) {
  const options = { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
  return JSON.parse(execFileSync("npm", ["pack", "--json", "--ignore-scripts", ...args], options))[0];
}

/**
 * The files of the library, by their paths from the root.
 * @returns {string[]}
 */
export const libraryFiles = () => npmPack(root, "--dry-run").files.map(({ path }) => path);

/**
 * The packages whose code rollup put into the bundles, as the build recorded them.
 * @returns {string[]}
 */
export function bundledPackages() {
  const records = join(root, "dist/.build");
  const inputs = readdirSync(records)
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => JSON.parse(readFileSync(join(records, name), "utf8")).inputs);
  const packages = inputs.flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\/.+\.m?js$/.exec(path)?.[1] ?? []);
  return [...new Set(packages)].sort();
}

/**
 * Creates both tarballs; returns their paths.
 * @param {string} folder
 * @returns {string[]}
 */
export function pack(folder) {
  mkdirSync(folder, { recursive: true });
  const staged = mkdtempSync(join(tmpdir(), "vivavoce-box-"));
  try {
    stageBox(staged);
    return [root, staged].map((cwd) =>
      join(resolve(folder), npmPack(cwd, "--pack-destination", resolve(folder)).filename),
    );
  } finally {
    rmSync(staged, { recursive: true, force: true });
  }
}

/** Built only for pages and benchmarks, and the model that is part of the library. */
const left = /^dist\/(\.|web\/|browser\/|page\/models\/)/;

function stageBox(folder) {
  const library = new Set(libraryFiles());
  const built = readdirSync(join(root, "dist"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      posix.join("dist", join(entry.parentPath, entry.name).slice(join(root, "dist").length).replaceAll("\\", "/")),
    )
    .filter((path) => !left.test(path) && !library.has(path) && !path.endsWith(".tsbuildinfo"));
  for (const path of built) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    if (/\.(js|d\.ts)$/.test(path) && !/^dist\/(page|operator)\//.test(path))
      writeFileSync(join(folder, path), onLibrary(readFileSync(join(root, path), "utf8"), path, library));
    else copyFileSync(join(root, path), join(folder, path));
  }
  const texts = ["LICENSE", "NOTICE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
  for (const name of [...texts, "deploy", "docs", "examples"])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  cpSync(join(root, "models"), join(folder, "models"), {
    recursive: true,
    filter: (path) => basename(path) !== shippedModel,
  });
  copyFileSync(join(root, "src/box/README.md"), join(folder, "README.md"));
  const { private: _, ...manifest } = manifestOf(join(root, "src/box"));
  const { name, version } = manifestOf(root);
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify(
      {
        ...manifest,
        bin: { vivavoce: "dist/cli/main.js" },
        dependencies: { [name]: version, ...manifest.dependencies },
      },
      null,
      2,
    ),
  );
}

/** Relative imports of files in the library become imports from the library. */
function onLibrary(code, path, library) {
  return code.replace(/\b(from|import\(?)(\s*)"(\.[^"]+)"/g, (whole, word, space, target) => {
    const wanted = posix.join(posix.dirname(path), target);
    if (library.has(wanted)) return `${word}${space}"vivavoce/internal/${wanted.slice("dist/".length)}"`;
    if (!existsSync(join(root, wanted))) throw new Error(`${path} imports ${target}, which was not built`);
    return whole;
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [folder = "."] = process.argv.slice(2);
  for (const tarball of pack(folder)) console.log(tarball);
}
