/** Compares the documents with the code: settings, metrics, error messages, links. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { configSchema, ENVIRONMENT } from "../../src/server/config.js";
import { builtInConfigurationSets } from "../../src/voiceprint/configuration-set.js";
import { rehearse } from "../server/rehearsal.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** The rows of all tables whose first cell is code, by that code. */
function rowsOf(document: string): Map<string, string[]> {
  const rows = new Map<string, string[]>();
  for (const [line, name] of read(document).matchAll(/^\| `([^`]+)` \|.*$/gm)) {
    expect(rows.has(name!), `${name} has two rows`).toBe(false);
    rows.set(
      name!,
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  }
  return rows;
}

interface Setting {
  readonly name: string;
  /** `undefined` if there is no default, or if it depends on the machine. */
  readonly default: unknown;
}

/** Depends on the machine. */
const COMPUTED = new Set(["store", "evaluation", "limits.concurrentAudio"]);

function settingsOf(schema: z.ZodType, name: string): Setting[] {
  // biome-ignore lint/suspicious/noExplicitAny: what a schema is made of has no public type
  const { def } = schema as any;
  switch (def.type) {
    case "default": {
      const inner = settingsOf(def.innerType, name);
      return [{ name, default: COMPUTED.has(name) ? undefined : def.defaultValue }, ...inner.slice(1)];
    }
    case "prefault":
    case "optional":
      return settingsOf(def.innerType, name);
    case "object":
      return Object.entries(def.shape as Record<string, z.ZodType>).flatMap(([key, part]) =>
        settingsOf(part, name === "" ? key : `${name}.${key}`),
      );
    case "union":
      return (def.options as z.ZodType[]).flatMap((option) => settingsOf(option, name));
    case "array": {
      const element = def.element as z.ZodType;
      const { type } = (element as unknown as { def: { type: string } }).def;
      return [
        { name, default: undefined },
        ...(["object", "union"].includes(type) ? settingsOf(element, `${name}[]`) : []),
      ];
    }
    default:
      return [{ name, default: undefined }];
  }
}

const plain = (value: unknown): string =>
  value === "" ? "none" : typeof value === "string" ? `\`${value}\`` : JSON.stringify(value);

describe("docs/configuration.md", () => {
  const rows = rowsOf("docs/configuration.md");
  const found = settingsOf(configSchema, "").filter(({ name }) => name !== "telephony");
  // The default of a list is in the row of the list, and a setting that several dialects share has one row.
  const settings = [...new Map(found.map((setting) => [setting.name, setting])).values()];
  const sets = Object.values(builtInConfigurationSets).map((set) => flat(set));
  const parameters = Object.keys(sets[0]!);

  it("has every setting of the code, and no others", () => {
    const expected = [...settings.map(({ name }) => name), ...parameters].sort();
    const variables = [...rows.keys()].filter((name) => name.startsWith("VIVAVOCE_"));
    expect([...rows.keys()].filter((name) => !variables.includes(name)).sort()).toEqual(expected);
    expect(settings.length).toBeGreaterThan(80);
  });

  it("has the variable, default and reason of each setting", () => {
    const environment = new Map(Object.entries(ENVIRONMENT).map(([variable, name]) => [name, variable]));
    for (const { name, default: value } of settings) {
      const [, variable, initial, words] = rows.get(name)!;
      expect(words!.length, `${name} in words`).toBeGreaterThan(3);
      if (!name.startsWith("telephony"))
        expect(variable, name).toBe(environment.has(name) ? `\`${environment.get(name)}\`` : "");
      if (value !== undefined) expect(initial, name).toBe(plain(value));
    }
    expect(read("docs/configuration.md")).toContain("`VIVAVOCE_TELEPHONY`, default []");
  });

  it("has each parameter of both configuration sets", () => {
    for (const name of parameters) {
      const [, , first, second, words] = rows.get(name)!;
      expect([first, second], name).toEqual(sets.map((set) => plain(set[name])));
      expect(words!.length, name).toBeGreaterThan(3);
    }
  });
});

function flat(object: object, prefix = ""): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) =>
      typeof value === "object" && !Array.isArray(value)
        ? Object.entries(flat(value, `${prefix}${key}.`))
        : [[`${prefix}${key}`, value]],
    ),
  );
}

describe("deploy/: alert rules and dashboard", () => {
  it("use only metrics that the box has", async () => {
    const { service } = rehearse();
    const names = new Set((await service.metrics.registry.getMetricsAsJSON()).map(({ name }) => name));
    const text = ["deploy/alerts.yml", "deploy/grafana-dashboard.json", "deploy/README.md", "docs/operations.md"]
      .map(read)
      .join();
    const asked = [...new Set([...text.matchAll(/\bvivavoce_[a-z0-9_]+/g)].map(([name]) => name))];
    expect(asked.length).toBeGreaterThan(8);
    const unknown = asked.filter((name) => !names.has(name) && !names.has(name.replace(/_(bucket|sum|count)$/, "")));
    expect(unknown).toEqual([]);
    const dashboard = JSON.parse(read("deploy/grafana-dashboard.json"));
    for (const { title, targets } of dashboard.panels) {
      expect(title).not.toBe("");
      expect(targets.every(({ expr }: { expr: string }) => expr.includes("vivavoce_"))).toBe(true);
    }
  });
});

describe("docs/troubleshooting.md", () => {
  it("quotes messages of the code", () => {
    // Texts of the sources as they are printed: inserted values become `…`.
    const sources = filesUnder("src", /\.ts$/)
      .map((path) => read(path).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "…"))
      .join("\n")
      .replaceAll('\\"', '"');
    const quoted = [...read("docs/troubleshooting.md").matchAll(/^### `(.+)`$/gm)].map(([, message]) => message!);
    expect(quoted.length).toBeGreaterThan(20);
    expect(quoted.filter((message) => !sources.includes(message))).toEqual([]);
  });
});

function filesUnder(folder: string, wanted: RegExp): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((path) => join(folder, path))
    .filter((path) => wanted.test(path) && statSync(join(ROOT, path)).isFile());
}

describe("links of README and docs", () => {
  const documents = [
    ...[
      "README.md",
      "CONTRIBUTING.md",
      "SECURITY.md",
      "deploy/README.md",
      "examples/README.md",
      "clients/python/README.md",
    ],
    ...filesUnder("docs", /\.md$/),
  ];
  /** As GitHub generates them. */
  const anchorsOf = (path: string) =>
    [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    );

  it("lead to existing files and headings", () => {
    const dead: string[] = [];
    let links = 0;
    for (const document of documents) {
      const prose = read(document).replace(/^```[\s\S]*?^```/gm, "");
      for (const [, target] of prose.matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)) {
        links++;
        const [path, anchor] = target!.split("#");
        const file = path === "" ? document : relative(ROOT, join(ROOT, dirname(document), path!));
        if (!existsSync(join(ROOT, file))) dead.push(`${document}: ${target}`);
        else if (anchor && file.endsWith(".md") && !anchorsOf(file).includes(anchor))
          dead.push(`${document}: ${target}`);
      }
    }
    expect(dead).toEqual([]);
    expect(links).toBeGreaterThan(50);
  });

  it("every page of docs is linked from README or another page", () => {
    const all = documents.map((path) => [path, read(path)] as const);
    const lonely = filesUnder("docs", /\.md$/).filter((page) => {
      const name = page.slice("docs/".length);
      return !all.some(([path, text]) => path !== page && text.includes(name.split("/").at(-1)!));
    });
    expect(lonely).toEqual([]);
  });
});
