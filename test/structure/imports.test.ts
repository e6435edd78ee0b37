import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Which folder of src may import which. A path with a slash names only that file. Composition roots (index.ts, postgres.ts, cli, web, and
 * the start of the server) connect the parts and may import anything.
 */
const allowed: Record<string, readonly string[]> = {
  audio: ["./type-name"],
  browser: ["engine", "audio"],
  engine: ["audio/joined", "contract/call-limit", "contract/on-abort", "contract/options-fault", "./type-name"],
  contract: ["./type-name"],
  microphone: [],
  store: ["engine/port", "contract", "./type-name"],
  voiceprint: ["contract"],
  processor: [
    "voiceprint",
    "contract",
    "engine/port",
    "audio/joined",
    "audio/port",
    "store/port",
    "store/contention",
    "store/damaged-profiles",
  ],
  token: ["contract", "store/port", "engagement", "./languages", "./type-name"],
  engagement: ["contract", "store/port", "token"],
  telephony: [
    "audio/joined",
    "contract",
    "server/limits/quiet-watch",
    "server/live-messages",
    "server/websocket/open-socket",
    "./workflow",
  ],
  "easy-door": [
    "audio",
    "contract",
    "engine/moved",
    "processor/live/live-check",
    "processor/live/live-task",
    "./workflow",
  ],
  client: ["contract", "token/cache", "voiceprint/configuration-set", "./type-name", "./voiceprints"],
};

/** Folders that also run in a browser, or decide without I/O. */
const withoutNode = ["browser", "microphone", "voiceprint", "processor", "contract", "audio", "engine"];
/** The Node version of a part; the browser bundle has another file or none. */
const nodeOnly = ["engine/platform.ts", "audio/file.ts", "audio/to-wav.ts"];

interface Import {
  readonly from: string;
  readonly target: string;
}

function sources(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"))
    .map((name) => join(folder, name));
}

function importsOf(folder: string): Import[] {
  return sources(join(root, folder)).flatMap((path) =>
    ts.preProcessFile(readFileSync(path, "utf8"), true, true).importedFiles.map(({ fileName }) => ({
      from: relative(join(root, "src"), path),
      target: fileName.startsWith(".")
        ? relative(join(root, "src"), join(dirname(path), fileName)).replace(/\.js$/, ".ts")
        : fileName,
    })),
  );
}

function permitted(target: string, folder: string): boolean {
  if (target.startsWith(`${folder}/`)) return true;
  return allowed[folder]!.some((name) =>
    name.includes("/") ? target === `${name.replace("./", "")}.ts` : target.startsWith(`${name}/`),
  );
}

describe("imports follow the table of allowed folders", () => {
  for (const folder of Object.keys(allowed)) {
    test(folder, () => {
      const imports = importsOf(`src/${folder}`);
      expect(imports.length, `src/${folder} has sources`).toBeGreaterThan(0);
      const strangers = imports.filter(({ target }) => target.endsWith(".ts") && !permitted(target, folder));
      expect(strangers).toEqual([]);
    });
  }

  test("the contract's messages are imported from contract/index.ts", () => {
    const direct = /^contract\/(gen\/vendor\/(?!rpc\/mandatory_pb)|status-error)/;
    const imports = importsOf("src").filter(({ from }) => !from.startsWith("contract/"));
    expect(imports.filter(({ target }) => direct.test(target))).toEqual([]);
  });

  test("no import is circular", () => {
    const imports = new Map<string, string[]>();
    for (const { from, target } of importsOf("src")) imports.set(from, [...(imports.get(from) ?? []), target]);
    const done = new Set<string>();
    const circles: string[] = [];
    const visit = (file: string, path: readonly string[]) => {
      if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(" → "));
      if (done.has(file) || path.includes(file)) return;
      for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
      done.add(file);
    };
    for (const file of imports.keys()) visit(file, []);
    expect(circles).toEqual([]);
  });

  test.each([
    ["a command", "src/cli/main.ts", ["@observablehq/plot", "hono", "oidc-provider", "pg"]],
    ["the box", "src/server/start.ts", ["@observablehq/plot", "oidc-provider"]],
  ])("%s starts without packages that it may never need", (_, start, avoided) => {
    const loaded = new Set<string>();
    const load = (path: string) => {
      if (loaded.has(path)) return;
      loaded.add(path);
      for (const [, name] of readFileSync(path, "utf8").matchAll(
        /^(?:import|export) (?!type )(?:[\w\s{},*]+ from )?"([^"]+)"/gm,
      ))
        if (name!.startsWith(".")) load(join(dirname(path), name!.replace(/\.js$/, ".ts")));
        else loaded.add(name!);
    };
    load(join(root, start));
    expect(loaded).toContain("zod");
    expect(avoided.filter((name) => loaded.has(name))).toEqual([]);
  });

  test("assembly imports nothing from outside", () => {
    const outside = importsOf("assembly").filter(({ target }) => !target.startsWith("../assembly/"));
    expect(outside).toEqual([]);
  });

  test("browser code imports nothing from Node", () => {
    const imports = withoutNode.flatMap((folder) => importsOf(`src/${folder}`));
    expect(imports.filter(({ from, target }) => target.startsWith("node:") && !nodeOnly.includes(from))).toEqual([]);
  });

  test("the domain has no clock, no randomness and no I/O", () => {
    const reaching = /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bcrypto\.|\bfetch\(|\bsetTimeout\b|\bprocess\./;
    const files = sources(join(root, "src/voiceprint"));
    expect(files.filter((path) => reaching.test(readFileSync(path, "utf8")))).toEqual([]);
  });

  test("one file of the engine touches WebAssembly memory", () => {
    const touching = sources(join(root, "src")).filter((path) => /memory\.buffer/.test(readFileSync(path, "utf8")));
    expect(touching.map((path) => relative(root, path))).toEqual(["src/engine/kernels.ts"]);
  });

  test("files and folders are named after their contents", () => {
    const vague = /(^|\/)(utils?|helpers?|common|misc|base|manager)(\.ts)?(\/|$)/;
    expect(
      sources(join(root, "src"))
        .map((path) => relative(root, path))
        .filter((path) => vague.test(path)),
    ).toEqual([]);
  });
});
