// Size of `npm install vivavoce`, and of the library in a bundled page.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { pack } from "../scripts/pack.mjs";
import { atMost } from "./measure.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** In an empty folder, from the registry. */
function installed() {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-install-"));
  try {
    const project = join(folder, "project");
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), "{}");
    const [library] = pack(folder);
    execFileSync("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", library], {
      cwd: project,
      stdio: "ignore",
    });
    const modules = join(project, "node_modules");
    const { packages } = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8"));
    const bytes = readdirSync(modules, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    return { packages: Object.keys(packages).length, megabytes: bytes / 1e6 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Kilobytes of a minified page that uses only this; kernels and model are separate files. */
async function bundled(name) {
  const { outputFiles } = await build({
    stdin: { contents: `import { ${name} } from "vivavoce"; globalThis.used = ${name};`, resolveDir: root },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    write: false,
  });
  return outputFiles[0].contents.length / 1000;
}

export default async function install() {
  const { packages, megabytes } = installed();
  return [
    atMost("npm install vivavoce: packages", "20", packages, 20),
    atMost("npm install vivavoce: size", "30 MB", megabytes, 30, "", " MB"),
    atMost("readRecording alone, minified", "30 kB", await bundled("readRecording"), 30, "", " kB"),
    atMost("openEngine alone, minified", "120 kB", await bundled("openEngine"), 120, "", " kB"),
  ];
}
