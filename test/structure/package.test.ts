import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { shippedModel } from "../../src/engine/shipped-model.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const manifest = JSON.parse(readFileSync(`${root}package.json`, "utf8"));

interface Packed {
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

const [packed] = JSON.parse(
  execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }),
) as [Packed];
const paths = packed.files.map(({ path }) => path);

test("the package ships what users need and nothing else", () => {
  const wanted =
    /^(dist\/.+\.(js|d\.ts|wasm|vvm|html|css|json|svg|webmanifest)|models\/.+|proto\/.+\.proto|package\.json|README\.md|CHANGELOG\.md|LICENSE|NOTICE)$/;
  expect(paths.filter((path) => !wanted.test(path))).toEqual([]);
  expect(
    paths.filter((path) =>
      /\.build|\.map$|\.tsbuildinfo|\.test\.|(^|\/)(test|bench|training|assembly|scripts)\//.test(path),
    ),
  ).toEqual([]);
});

test("every entry point is in it", () => {
  const entries = Object.values(manifest.exports as Record<string, string | Record<string, string>>).flatMap((entry) =>
    typeof entry === "string" ? [entry] : Object.values(entry),
  );
  for (const entry of [...entries, `./${manifest.bin.vivavoce}`])
    expect(paths, entry).toContain(entry.replace("./", ""));
  for (const path of [
    "dist/engine/vivavoce.wasm",
    "dist/engine/worker.js",
    "dist/browser/worker.js",
    "dist/browser/vivavoce.wasm",
  ]) {
    expect(paths).toContain(path);
  }
});

test("the model is in it once, beside the browser bundle", () => {
  expect(existsSync(`${root}models/${shippedModel}`)).toBe(true);
  expect(paths.filter((path) => path.endsWith(".vvm"))).toEqual(["dist/browser/vivavoce.vvm"]);
});

test("what was packed works where nothing else is", async () => {
  const folder = mkdtempSync(join(tmpdir(), "vivavoce-pack-"));
  try {
    execFileSync("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { cwd: root, stdio: "ignore" });
    const [tarball] = readdirSync(folder);
    execFileSync("tar", ["xzf", tarball!], { cwd: folder });
    // The dependencies as an installation would put them.
    const modules = join(folder, "app", "node_modules");
    mkdirSync(modules, { recursive: true });
    for (const name of Object.keys(manifest.dependencies as object)) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(root, "node_modules", name), join(modules, name));
    }
    renameSync(join(folder, "package"), join(modules, "vivavoce"));
    const script = `
      import { openEngine } from "vivavoce";
      const engine = await openEngine({ workers: 1 });
      const { measures } = await engine.analyze(new Float32Array(16000), 16000);
      console.log(engine.model.calibrationModelId, measures.grossSeconds);
      await engine.close();`;
    const env = { ...process.env, VIVAVOCE_MODEL: "" };
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: join(folder, "app"),
      encoding: "utf8",
      env,
    });
    expect(said).toBe(`${basename(shippedModel, ".vvm")} 1\n`);

    // The box's page finds the model though it is not beside it.
    const { servePage } = (await import(
      join(modules, "vivavoce/dist/server/http/page.js")
    )) as typeof import("../../dist/server/http/page.js");
    const page = servePage()!;
    const html = await page(new Request("http://box/"))!.text();
    const named = /<meta name="vivavoce-model" content="([^"]+)" data-bytes="(\d+)"/.exec(html)!;
    const model = page(new Request(`http://box/${named[1]}`))!;
    expect(model.headers.get("content-length")).toBe(named[2]);
    expect(model.headers.get("cache-control")).toContain("immutable");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the lock names the optional packages of every platform, or `npm ci` refuses it (node scripts/complete-lock.mjs)", () => {
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, "utf8")) as {
    packages: Record<string, { optionalDependencies?: Record<string, string> }>;
  };
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !packages[`${path}/node_modules/${name}`] && !packages[`node_modules/${name}`],
    ),
  );
  expect(missing).toEqual([]);
});

test("nothing runs at install, and nothing is native", () => {
  const scripts = ["preinstall", "install", "postinstall", "prepare"];
  expect(scripts.filter((name) => name in manifest.scripts)).toEqual([]);
  const lock = JSON.parse(readFileSync(`${root}package-lock.json`, "utf8")) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; hasInstallScript?: boolean; devOptional?: boolean }>;
  };
  const scripted = Object.entries(lock.packages).filter(
    ([, { dev, devOptional, optional, hasInstallScript }]) => hasInstallScript && !dev && !devOptional && !optional,
  );
  expect(scripted.map(([path]) => path)).toEqual([]);
});
