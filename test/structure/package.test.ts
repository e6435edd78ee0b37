/** The two packages as they are published: the library, and the box on top of it. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join, posix } from "node:path";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundledPackages, libraryFiles } from "../../scripts/pack.mjs";
import { shippedModel } from "../../src/engine/shipped-model.js";
import { type Installed, install, root } from "../trials/install.js";

const read = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"));
const manifest = read("package.json");
const box = read("src/box/package.json");
const paths = libraryFiles();
let installed: Installed;
beforeAll(async () => {
  installed = await install();
}, 300_000);
afterAll(() => installed && rmSync(installed.folder, { recursive: true, force: true }));

function node(cwd: string, script: string): string {
  const env = { ...process.env, VIVAVOCE_MODEL: "" };
  return execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd, encoding: "utf8", env });
}

test("the library ships what users need and nothing else", () => {
  const wanted =
    /^(dist\/.+\.(js|d\.ts|wasm|vvm)|deploy\/[\w.-]+|docs\/.+\.(md|png)|examples\/.+|models\/(CARD\.md|NOTICE)|training\/.+\.(md|txt|json)|proto\/.+\.proto|package\.json|README\.md|CHANGELOG\.md|CONTRIBUTING\.md|SECURITY\.md|LICENSE|NOTICE)$/;
  expect(paths.filter((path) => !wanted.test(path))).toEqual([]);
  expect(paths.filter((path) => /\.build|\.map$|\.tsbuildinfo|\.test\./.test(path))).toEqual([]);
});

test("NOTICE names the packages inside the bundles and their copyright", () => {
  const notice = readFileSync(join(root, "NOTICE"), "utf8");
  const names = bundledPackages();
  expect(names).toContain("oauth4webapi");
  for (const name of names) {
    expect(notice).toMatch(new RegExp(`^(.*, )?${name}(,.*)?$`, "m"));
    const folder = join(root, "node_modules", name);
    const license = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    const text = license ? readFileSync(join(folder, license), "utf8") : "";
    for (const [line] of text.matchAll(/^Copyright .*\d{4}.*$/gm)) expect(notice, name).toContain(line.trim());
  }
});

test("the library has every entry point", () => {
  const entries = Object.values(manifest.exports as Record<string, string | Record<string, string>>).flatMap((entry) =>
    typeof entry === "string" ? [entry] : Object.values(entry),
  );
  for (const entry of entries.filter((path) => !path.includes("*")))
    expect(paths, entry).toContain(entry.replace("./", ""));
  for (const [from, to] of Object.entries(manifest.browser as Record<string, string>))
    for (const path of [from, to]) expect(paths).toContain(path.replace("./", ""));
  for (const path of [
    "dist/engine/vivavoce.wasm",
    "dist/engine/worker.js",
    "dist/browser/worker.js",
    "dist/browser/vivavoce.wasm",
  ])
    expect(paths).toContain(path);
});

test("the library does not depend on the box: its files import only each other and a few dependencies", () => {
  const known = [...Object.keys(manifest.dependencies as object), "node:"];
  const strangers = paths
    .filter((path) => /^dist\/.+\.(js|d\.ts)$/.test(path))
    .flatMap((path) =>
      ts
        .preProcessFile(readFileSync(join(root, path), "utf8"), true, true)
        .importedFiles.map(({ fileName }) => ({ path, fileName })),
    )
    .filter(({ path, fileName }) =>
      fileName.startsWith(".")
        ? !paths.includes(posix.join(posix.dirname(path), fileName))
        : !known.some((name) => fileName.startsWith(name)),
    );
  expect(strangers).toEqual([]);
});

test("both packages require the same versions, and the box requires what it imports", () => {
  expect(box.version).toBe(manifest.version);
  for (const [name, version] of Object.entries(manifest.dependencies as Record<string, string>))
    expect([version, undefined]).toContain(box.dependencies[name] ?? version);
  const place = join(installed.withBox, "node_modules/vivavoce-box");
  const published = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  expect(published).toMatchObject({
    dependencies: { vivavoce: manifest.version },
    bin: { vivavoce: "dist/cli/main.js" },
  });
  expect(published.private).toBeUndefined();
  const asked = readdirSync(join(place, "dist"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(js|d\.ts)$/.test(path) && !/^(page|operator)\//.test(path))
    .flatMap((path) => ts.preProcessFile(readFileSync(join(place, "dist", path), "utf8"), true, true).importedFiles)
    .map(({ fileName }) => /^(@[^/]+\/[^/]+|[^./@][^/]*)/.exec(fileName)?.[0])
    .filter((name) => name !== undefined && !name.startsWith("node:"));
  // Plots are bundled into the operator view; the parts of the page are not in the package.
  expect([...new Set(asked)].filter((name) => !(name! in published.dependencies))).toEqual([]);
});

test("the library has one copy of the model, next to the browser bundle", () => {
  expect(existsSync(`${root}models/${shippedModel}`)).toBe(true);
  expect(paths.filter((path) => path.endsWith(".vvm"))).toEqual(["dist/browser/vivavoce.vvm"]);
});

test("every link of the README leads to a file in one of the packages", () => {
  const links = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/\]\((?!https?:)([^)#]+)/g)];
  expect(links.length).toBeGreaterThan(10);
  const boxHas = (path: string) => existsSync(join(installed.withBox, "node_modules/vivavoce-box", path));
  const dead = links.filter(
    ([, path]) => !paths.some((one) => one === path || one.startsWith(`${path}/`)) && !boxHas(path!),
  );
  expect(dead.map(([, path]) => path)).toEqual([]);
});

test("every link of the box's pages leads to a file in its package", () => {
  const place = join(installed.withBox, "node_modules/vivavoce-box");
  const pages = readdirSync(place, { recursive: true, encoding: "utf8" }).filter((path) =>
    /^(README\.md|(docs|deploy|examples)\/.+\.md)$/.test(path),
  );
  expect(pages.length).toBeGreaterThan(20);
  const dead = pages.flatMap((page) =>
    [...readFileSync(join(place, page), "utf8").matchAll(/\]\((?!https?:)([^)#\s]+)/g)]
      .map(([, path]) => posix.join(posix.dirname(page), path!))
      .filter((path) => !existsSync(join(place, path)))
      .map((path) => `${page}: ${path}`),
  );
  expect(dead).toEqual([]);
});

test("the library works in an empty folder, with at most 20 packages and 30 MB", () => {
  const { packages } = JSON.parse(readFileSync(join(installed.withLibrary, "node_modules/.package-lock.json"), "utf8"));
  expect(Object.keys(packages).length).toBeLessThanOrEqual(20);
  const bytes = readdirSync(join(installed.withLibrary, "node_modules"), { recursive: true, encoding: "utf8" })
    .map((path) => lstatSync(join(installed.withLibrary, "node_modules", path)))
    .reduce((sum, entry) => sum + (entry.isFile() ? entry.size : 0), 0);
  expect(bytes).toBeLessThanOrEqual(30e6);
  const said = node(
    installed.withLibrary,
    `import { openEngine } from "vivavoce";
    const engine = await openEngine({ workers: 1 });
    const { measures } = await engine.analyze(new Float32Array(16000), 16000);
    console.log(engine.model.calibrationModelId, measures.grossSeconds);
    await engine.close();`,
  );
  expect(said).toBe(`${basename(shippedModel, ".vvm")} 1\n`);
});

/** Types in the signatures of other exports, which a caller must be able to name. */
const named: Readonly<Record<string, readonly string[]>> = {
  vivavoce: [
    "StoreErrorCode",
    "SealErrorCode",
    "ModelFileErrorCode",
    "ExportedTemplate",
    "MemoryStoreOptions",
    "FieldRate",
  ],
  "vivavoce/client": [
    "ListenStart",
    "ListenResponse",
    "Status",
    "Progress",
    "RawEncoding",
    "LiveSocket",
    "ExportedProfile",
  ],
  "vivavoce-box/server": ["BoxParts", "ConfigSources", "FirstApplication", "FirstOwner", "LogLevel", "WebApp"],
  "vivavoce-box/token": ["AuditLog", "Documents", "KeyringOptions", "NodeBindings", "ToolingUser", "UserChange"],
  "vivavoce-box/postgres": ["LostKeys"],
};

test.each([
  [
    ["vivavoce", "vivavoce/client", "vivavoce-box/server", "vivavoce-box/token", "vivavoce-box/postgres"],
    ["lib.es2023.d.ts"],
  ],
  [["vivavoce/microphone"], ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"]],
])(
  "the types of %s need only those of Node and %s, also without skipLibCheck",
  (entries, lib) => {
    const types = join(installed.withBox, "node_modules/@types");
    mkdirSync(types, { recursive: true });
    if (!existsSync(join(types, "node"))) symlinkSync(join(root, "node_modules/@types/node"), join(types, "node"));
    const user = join(installed.withBox, "user.ts");
    const lines = entries.map((entry, i) => {
      const types = (named[entry] ?? []).map((name) => `type ${name} as ${name}${i}`);
      return `export * as entry${i} from "${entry}";\nexport { ${types.join(", ")} } from "${entry}";\n`;
    });
    writeFileSync(user, lines.join(""));
    const program = ts.createProgram([user], {
      strict: true,
      skipLibCheck: false,
      noEmit: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      lib,
      types: ["node"],
      typeRoots: [types],
    });
    const faults = ts.getPreEmitDiagnostics(program);
    expect(
      faults.map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`),
    ).toEqual([]);
  },
  300_000,
);

test("the box works with the installed library: page, model, operator view, stores, command line", () => {
  const said = node(
    installed.withBox,
    `import { StoreError } from "vivavoce";
    import { loadConfig, startBox } from "vivavoce-box/server";
    import { openStore, StoreError as StoreErrorOfBox } from "vivavoce-box/postgres";
    import { createTokenCache } from "vivavoce-box/token";
    const box = await startBox(loadConfig({ env: {}, flags: { store: "memory", port: 0, "log.level": "error" } }));
    const html = await (await fetch(box.url)).text();
    const [, path, bytes] = /<meta name="vivavoce-model" content="([^"]+)" data-bytes="(\\d+)"/.exec(html);
    const model = await fetch(box.url + "/" + path);
    // The box would wait with its stop until somebody reads it.
    await model.body.cancel();
    await (await openStore("memory")).close();
    console.log(JSON.stringify({
      model: model.headers.get("content-length") === bytes && model.headers.get("cache-control"),
      operator: (await fetch(box.operatorUrl)).status,
      oneStoreError: StoreError === StoreErrorOfBox,
      tokens: typeof createTokenCache,
    }));
    await box.stop();`,
  );
  expect(JSON.parse(said)).toEqual({
    model: expect.stringContaining("immutable"),
    operator: 200,
    oneStoreError: true,
    tokens: "function",
  });
  expect(execFileSync(process.execPath, [installed.command, "--version"], { encoding: "utf8" })).toBe(
    `${manifest.version}\n`,
  );
}, 120_000);

test("the lock file lists the optional packages of every platform, as `npm ci` requires (node scripts/complete-lock.mjs)", () => {
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

test("there are no install scripts and no native code", () => {
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
