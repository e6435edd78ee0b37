// Comments of the proto files on messages, fields, enumerations and operations, by full name. The descriptors do not have them;
// the code in src/contract/gen does.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const BLOCK = /\/\*\*\n([\s\S]*?)\s*\*\//g;
const SUBJECT = /@generated from (message|enum value:|enum|service|rpc|field:) (.+)/;

/**
 * @param {string} gen the folder src/contract/gen
 * @returns {Record<string, string>}
 */
export function contractWords(gen) {
  /** @type {Record<string, string>} */
  const words = {};
  const files = readdirSync(gen, { recursive: true, encoding: "utf8" }).filter((path) =>
    /^vendor\/.*_pb\.ts$/.test(path),
  );
  for (const file of files.sort()) {
    let outer = "";
    for (const [, block] of readFileSync(join(gen, file), "utf8").matchAll(BLOCK)) {
      const lines = block.split("\n").map((line) => line.replace(/^\s*\* ?/, ""));
      const at = lines.findIndex((line) => SUBJECT.test(line));
      if (at < 0) continue;
      const [, kind, rest] = SUBJECT.exec(lines[at]);
      const isMember = kind === "field:" || kind === "enum value:";
      if (kind === "message" || kind === "enum") outer = rest;
      const name = isMember ? `${outer}.${/(\w+) = \d+/.exec(rest)[1]}` : rest;
      const said = lines.slice(0, at).join(" ").replace(/\s+/g, " ").trim();
      if (said !== "") words[name] ??= said;
    }
  }
  return words;
}

/** @param {Record<string, string>} words */
export const wordsModule = (words) =>
  `// Made by scripts/proto.mjs of the comments in proto/. What the contract says in words, by full name.\nexport const WORDS: Readonly<Record<string, string>> = ${JSON.stringify(words, null, 2)};\n`;
