/** Compares the documents with the code: settings, metrics, routes, error codes and messages, links. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { StatusCode } from "../../src/contract/index.js";
import { METHODS } from "../../src/contract/operations.js";
import { transportCodes } from "../../src/contract/status-codes.js";
import { engagementRoutes } from "../../src/engagement/engagement-routes.js";
import { configSchema, ENVIRONMENT } from "../../src/server/config.js";
import { httpBindings } from "../../src/server/http/bindings.js";
import { createOperatorApp } from "../../src/server/operator/operator-routes.js";
import { managementRoutes } from "../../src/token/management-routes.js";
import { oauthRoutes } from "../../src/token/oauth-routes.js";
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
  /** The values of an enumeration, and the shortest secret: what the words must say. */
  readonly mustSay?: readonly string[];
}

/** Depends on the machine. */
const COMPUTED = new Set(["store", "evaluation", "limits.concurrentAudio"]);

function settingsOf(schema: z.ZodType, name: string): Setting[] {
  // biome-ignore lint/suspicious/noExplicitAny: what a schema is made of has no public type
  const { def } = schema as any;
  switch (def.type) {
    case "default": {
      const inner = settingsOf(def.innerType, name);
      return [{ ...inner[0]!, name, default: COMPUTED.has(name) ? undefined : def.defaultValue }, ...inner.slice(1)];
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
    case "enum":
      return [{ name, default: undefined, mustSay: Object.keys(def.entries).map((value) => `\`${value}\``) }];
    default: {
      const shortest = schema instanceof z.ZodString ? (schema.minLength ?? 0) : 0;
      return [{ name, default: undefined, mustSay: shortest > 1 ? [`at least ${shortest} characters`] : [] }];
    }
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
    const variables = [...rows.keys()].filter((name) => /^[A-Z_]+$/.test(name));
    expect([...rows.keys()].filter((name) => !variables.includes(name)).sort()).toEqual(expected);
    expect(settings.length).toBeGreaterThan(80);
  });

  it("has the variable, default and reason of each setting", () => {
    const environment = new Map(Object.entries(ENVIRONMENT).map(([variable, name]) => [name, variable]));
    for (const { name, default: value, mustSay = [] } of settings) {
      const [, variable, initial, words] = rows.get(name)!;
      expect(
        mustSay.filter((text) => !words!.includes(text)),
        `${name} in words`,
      ).toEqual([]);
      expect(words!.length, `${name} in words`).toBeGreaterThan(3);
      if (!name.startsWith("telephony"))
        expect(variable, name).toBe(environment.has(name) ? `\`${environment.get(name)}\`` : "");
      if (value !== undefined) expect(initial, name).toBe(plain(value));
    }
    expect(read("docs/configuration.md")).toContain("`VIVAVOCE_TELEPHONY`, default []");
  });

  it("has every environment variable that the code reads", () => {
    const sources = filesUnder("src", /\.ts$/).map(read).join("\n");
    const named = [...sources.matchAll(/(?:process\.env\.|\.env\(\s*")([A-Z_]+)/g)].map(([, name]) => name!);
    // Options of the command line that are also variables.
    const options = [...sources.matchAll(/\bvariable\(\s*"--([a-z-]+)/g)].map(([, name]) => name!);
    const used = [...named, ...options.map((name) => `VIVAVOCE_${name.replaceAll("-", "_").toUpperCase()}`)];
    const text = read("docs/configuration.md");
    expect(used).toContain("VIVAVOCE_URL");
    expect([...new Set(used)].filter((name) => name !== "PATH" && !text.includes(`\`${name}\``))).toEqual([]);
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
    const text = ["deploy/alerts.yml", "deploy/grafana-dashboard.json", "deploy/README.md"].map(read).join();
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

describe("docs/operations.md", () => {
  it("has every metric of the box with its labels, and no others", () => {
    const metrics = rehearse().service.metrics.registry.getMetricsAsArray() as unknown as {
      readonly name: string;
      readonly labelNames: readonly string[];
    }[];
    const own = metrics.filter(({ name }) => !/^vivavoce_(process|nodejs)_/.test(name));
    // Only a box with a model has it.
    const expected = [...own, { name: "vivavoce_model", labelNames: ["revision", "calibration"] }];
    const codes = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
    const documented = [...read("docs/operations.md").matchAll(/^\| (`vivavoce_[^|]*)\|([^|]*)\|/gm)].flatMap(
      ([, names, labels]) => codes(names!).map((name) => [name, codes(labels!)] as const),
    );
    expect(Object.fromEntries(documented)).toEqual(
      Object.fromEntries(expected.map(({ name, labelNames }) => [name, labelNames])),
    );
  });
});

/** Method and path of every route, without middleware. */
const routesOf = (app: { readonly routes: readonly { readonly method: string; readonly path: string }[] }) => [
  ...new Set(app.routes.filter(({ method }) => method !== "ALL").map(({ method, path }) => `${method} ${path}`)),
];

describe("paths", () => {
  // The routes are only listed, never called.
  const nothing = {} as never;

  it("docs/server.md has every operation and its path", () => {
    const documented = [...read("docs/server.md").matchAll(/^\| (\w+) \| (`[^|]+`) \|/gm)].flatMap(([, name, cell]) =>
      [...cell!.matchAll(/`([^`]+)`/g)].map(([, path]) => `${name} ${path}`),
    );
    const bindings = httpBindings(METHODS).map(({ method, verb, path }) => `${method.name} ${verb} ${path}`);
    expect(documented.sort()).toEqual(bindings.sort());
  });

  it("docs/operator.md has every path under /operator/v1", () => {
    const routes = routesOf(createOperatorApp(nothing)).filter((route) => route.includes(" /operator/v1/"));
    const section = read("docs/operator.md").split("\n## The same as JSON\n")[1]!;
    const documented = [...section.matchAll(/^\| (`[^|]*)\|/gm)]
      .flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, code]) => code!))
      .map((code) => /^(?:([A-Z]+) )?([^?]+)/.exec(code)!)
      .map(([, method = "GET", path]) => `${method} /operator/v1/${path!.replaceAll("<id>", ":id")}`);
    expect([...new Set(documented)].sort()).toEqual(routes.sort());
  });

  it("docs/tokens.md has every path of the management interface", () => {
    const documented = [...read("docs/tokens.md").matchAll(/^\| `([A-Z]+ \/[^`]+)` \|[^|]*\|[^|]+\|$/gm)].map(
      ([, route]) => route!,
    );
    expect(documented.sort()).toEqual(routesOf(managementRoutes(nothing, nothing)).sort());
  });

  it("docs/tokens.md has every path of OAuth and of the engagement API", () => {
    const text = read("docs/tokens.md");
    const paths = [oauthRoutes(nothing, nothing), engagementRoutes(nothing)].flatMap((app) =>
      app.routes.map(({ path }) => path),
    );
    expect(paths.length).toBeGreaterThan(8);
    expect(paths.filter((path) => !text.includes(path))).toEqual([]);
  });
});

describe("error codes", () => {
  /** The strings of a union type. */
  const codesOf = (file: string, type: string) => {
    const [, union] = new RegExp(`type ${type} =([^]+?");$`, "m").exec(read(file))!;
    return [...union!.matchAll(/\| "([^"]+)"/g)].map(([, code]) => code!).sort();
  };

  it.each([
    ["EngineError", "src/engine/engine-error.ts"],
    ["AudioError", "src/audio/audio-error.ts"],
    ["ModelFileError", "src/engine/model-file-error.ts"],
  ])("docs/engine.md has those of %s", (name, file) => {
    const [, sentence] = new RegExp(`\`${name}\\.code\`: ([^.]+)\\.`).exec(read("docs/engine.md"))!;
    expect(sentence!.match(/\b[A-Z][A-Z_]{2,}\b/g)!.sort()).toEqual(codesOf(file, `${name}Code`));
  });

  it.each(["StoreError", "SealError"])("docs/storing.md has those of %s", (name) => {
    const [, rows] = new RegExp(`\\| \`${name}\\.code\` \\|.*\n((?:\\|.*\n)+)`).exec(read("docs/storing.md"))!;
    const documented = [...rows!.matchAll(/^\| `([^`]+)`/gm)].map(([, code]) => code!);
    expect(documented.sort()).toEqual(codesOf("src/store/errors.ts", `${name}Code`));
  });

  it("docs/tokens.md has those of the token services, with their HTTP status", () => {
    const [, object] = /const STATUS = \{([^}]+)\}/.exec(read("src/token/errors.ts"))!;
    const codes = [...object!.matchAll(/(\w+): (\d+)/g)].map(([, code, status]) => [code!, status!]);
    const documented = [...read("docs/tokens.md").matchAll(/^\| `(\w+)` \| (\d+)/gm)].map(([, code, status]) => [
      code!,
      status!,
    ]);
    expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(codes));
  });

  it("docs/server.md has every status, with its codes", () => {
    const rows = [...read("docs/server.md").matchAll(/^\| ([A-Z_, ]+) \| (\d+)[^|]*\| ([A-Z_]+) \|/gm)];
    const documented = rows.flatMap(([, names, http, grpc]) =>
      names!.split(", ").map((name) => [name, Number(http), Code[camel(grpc!) as keyof typeof Code]]),
    );
    const all = Object.values(StatusCode).filter((code): code is StatusCode => typeof code === "number");
    const expected = all
      .filter((code) => code !== StatusCode.UNSPECIFIED && code !== StatusCode.OK)
      .map((code) => [StatusCode[code], transportCodes(code).http, transportCodes(code).grpc]);
    expect(documented.sort()).toEqual(expected.sort());
  });
});

/** "INVALID_ARGUMENT" as `Code` spells it: "InvalidArgument", and "CANCELLED" with one L. */
const camel = (name: string) =>
  name
    .toLowerCase()
    .replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
    .replace("Cancelled", "Canceled");

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

const documents = [
  ...[
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "deploy/README.md",
    "examples/README.md",
    "clients/python/README.md",
    "models/CARD.md",
  ],
  ...filesUnder("docs", /\.md$/),
];

describe("files and commands that README and docs name", () => {
  it("exist", () => {
    const folders = "assembly|bench|campaign|deploy|docs|examples|models|proto|scripts|src|test|training";
    const names = new RegExp(`(?:\`|node |python3 )((?:${folders})/[\\w./-]+\\.\\w+)`, "g");
    const named = documents.flatMap((document) =>
      [...read(document).matchAll(names)].map(([, path]) => `${document}: ${path}`),
    );
    expect(named.length).toBeGreaterThan(50);
    // A file of the reader's own project.
    const others = ["docs/tutorials/frontend.md: src/main.js"];
    const missing = named.filter((name) => !existsSync(join(ROOT, name.split(": ")[1]!)));
    expect(missing.filter((name) => !others.includes(name))).toEqual([]);
  });

  it("have the options that they require", () => {
    const commands = documents.flatMap((document) => read(document).match(/npm run bench:accuracy -- [^`#\n]+/g) ?? []);
    expect(commands.length).toBeGreaterThan(8);
    expect(commands.filter((command) => !command.includes("--corpora "))).toEqual([]);
    const ofLists = commands.filter((command) => /--(open-set|own-calibration)/.test(command));
    expect(ofLists.filter((command) => !command.includes("--voices "))).toEqual([]);
  });
});

describe("links of README and docs", () => {
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
