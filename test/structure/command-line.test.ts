/** Compares the documents with the command line: docs/command-line.md has every command and option, and no page names others. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command, Option } from "commander";
import { describe, expect, it } from "vitest";
import { createProgram } from "../../src/cli/program.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

interface Found {
  /** "vivavoce token app create" */
  readonly path: string;
  readonly command: Command;
}

const commandsUnder = (command: Command, path: string): Found[] => [
  { path, command },
  ...command.commands.flatMap((one) => commandsUnder(one, `${path} ${one.name()}`)),
];

const all = commandsUnder(createProgram(), "vivavoce");

const cell = (text: string) => text.replaceAll("|", "\\|");

function described({ description, argChoices, defaultValue, envVar }: Option): string {
  const more = [
    ...(argChoices ? [argChoices.map((choice) => `\`${choice}\``).join(", ")] : []),
    ...(["string", "number"].includes(typeof defaultValue) && defaultValue !== ""
      ? [`default \`${defaultValue}\``]
      : []),
    ...(envVar ? [`\`${envVar}\``] : []),
  ];
  return cell(more.length === 0 ? description : `${description} (${more.join("; ")})`);
}

const row = (option: Option) => `| \`${cell(option.flags)}\` | ${described(option)} |`;

const isAboutTokens = (path: string) => path.startsWith("vivavoce token");

/** An option that several commands share, in the same words, is described once; `vivavoce token` has words of its own. */
function sharedRows(wanted: (path: string) => boolean): string[] {
  const count = new Map<string, number>();
  for (const { path, command } of all)
    for (const option of command.options) if (wanted(path)) count.set(row(option), (count.get(row(option)) ?? 0) + 1);
  return [...count].filter(([, commands]) => commands > 2).map(([text]) => text);
}

const table = (rows: readonly string[]) => ["| option | what |", "|---|---|", ...rows, ""];

function page(): string {
  const general = sharedRows((path) => !isAboutTokens(path));
  const ofTokens = sharedRows(isAboutTokens);
  const sections = all
    .filter(({ command }) => command.commands.length === 0)
    .flatMap(({ path, command }) => {
      const shared = new Set(isAboutTokens(path) ? ofTokens : general);
      const own = command.options.filter((option) => !shared.has(row(option)));
      const common = command.options.filter((option) => shared.has(row(option)));
      const given = command.registeredArguments.filter(({ description }) => description !== "");
      const usage = command.registeredArguments.map((argument) => {
        const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
        return argument.required ? ` <${name}>` : ` [${name}]`;
      });
      return [
        `## ${path}`,
        "",
        `\`${path}${usage.join("")}\`: ${command.description()}.`,
        "",
        ...given.map((argument) => `- \`${argument.name()}\`: ${argument.description}`),
        ...(given.length > 0 ? [""] : []),
        ...(own.length > 0 ? table(own.map(row)) : []),
        ...(common.length > 0
          ? [`Shared: ${common.map(({ long, short }) => `\`${long ?? short}\``).join(", ")}.`, ""]
          : []),
      ];
    });
  return [
    "# The command line",
    "",
    "Every command and option of `vivavoce`, as `--help` describes them. Exit codes are in [troubleshooting.md](troubleshooting.md#exit-codes-of-the-command-line),",
    "variables in [configuration.md](configuration.md#command-line-and-library). `vivavoce completion bash` prints completions for a shell.",
    "",
    "This page is generated: `npx vitest run test/structure/command-line.test.ts -u`.",
    "",
    "## Shared options",
    "",
    ...table(general),
    "Those of `vivavoce token`:",
    "",
    ...table(ofTokens),
    ...sections,
  ]
    .join("\n")
    .trimEnd()
    .concat("\n");
}

it("docs/command-line.md has every command, argument and option", async () => {
  expect(all.length).toBeGreaterThan(40);
  await expect(page()).toMatchFileSnapshot(join(ROOT, "docs/command-line.md"));
});

/** The commands that a document shows, in code blocks and inside sentences. */
function shownIn(document: string): string[] {
  const text = readFileSync(join(ROOT, document), "utf8").replaceAll(/\\\n\s*/g, "");
  const blocks = [...text.matchAll(/^ *```\w*\n([\s\S]*?)^ *```$/gm)].flatMap(([, code]) => code!.split("\n"));
  const inline = [...text.replaceAll(/^ *```\w*\n[\s\S]*?^ *```$/gm, "").matchAll(/`([^`]+)`/g)].map(
    ([, code]) => code!,
  );
  return [...blocks, ...inline]
    .flatMap((line) => line.replace(/(^|\s)#.*$/, "").split(/&&|\|\||[|;&()]|>/))
    .map((part) => part.trim().replace(/^(?:[A-Z_]+=(?:"[^"]*"|\S*) )*(?:(?:until|sudo|npx) )*/, ""))
    .filter((part) => /^vivavoce [a-z-]/.test(part));
}

describe("commands in the documents", () => {
  const documents = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "deploy/README.md",
    "examples/README.md",
    "src/box/README.md",
    "models/CARD.md",
    ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md"))
      .map((name) => join("docs", name)),
  ];
  const shown = documents.flatMap((document) => shownIn(document).map((line) => ({ document, line })));

  it("exist, with all their options", () => {
    expect(shown.length).toBeGreaterThan(100);
    const unknown = shown.filter(({ line }) => {
      const words = line.split(/\s+/).slice(1);
      let { command } = all[0]!;
      for (const word of words) {
        const next = command.commands.find((one) => one.name() === word);
        if (!next) break;
        command = next;
      }
      const isCommand = command !== all[0]!.command || words[0]!.startsWith("--");
      const known = new Set([...command.options.map(({ long }) => long), "--help"]);
      const options = words.filter((word) => /^--[a-z]/.test(word)).map((word) => word.replace(/=.*/, ""));
      return !isCommand || options.some((option) => !known.has(option));
    });
    expect(unknown).toEqual([]);
  });
});
