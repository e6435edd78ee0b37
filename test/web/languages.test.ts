/** The languages of page, operator view and sign-in: the right one is chosen, and all are complete. */
import { describe, expect, test } from "vitest";
import { languageFor, languageNames } from "../../src/languages.js";
import { languages as tokenLanguages, wordsFor } from "../../src/token/interactive/strings.js";
import { languages as operatorLanguages } from "../../src/web/operator/strings.js";
import { languages as pageLanguages } from "../../src/web/strings.js";

test("uses the first of the browser's languages that is available, else English", () => {
  expect(languageFor(["de-AT", "en"])).toBe("de");
  expect(languageFor(["nl", "pt-BR", "en"])).toBe("pt");
  expect(languageFor(["zh-Hant-TW"])).toBe("zh");
  expect(languageFor(["constructor", "fi"])).toBe("en");
  expect(languageFor([])).toBe("en");
});

test("reads the languages of a header in the order of their weights", () => {
  const locale = (header?: string) => wordsFor(header).locale;
  expect(locale("nl, en;q=0.5, fr-CA;q=0.8")).toBe("fr");
  expect(locale("de-AT,de;q=0.9,en;q=0.8")).toBe("de");
  expect(locale("de;q=0, zh-TW;q=0.1")).toBe("zh");
  for (const other of [undefined, "", "*", ";;,=", "de;q=0"]) expect(locale(other)).toBe("en");
});

/** Every text by its path, functions called with the same names and numbers. */
function texts(words: object, path = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(words)) {
    const at = `${path}${key}`;
    if (typeof value === "string") found.set(at, value);
    else if (typeof value === "function") found.set(at, (value as (...given: unknown[]) => string)(3, 5));
    else for (const [inner, text] of texts(value as object, `${at}.`)) found.set(inner, text);
  }
  return found;
}

/** Texts that may be the same as in English: names, units, and shared words. */
const shared = {
  token: /^(consent\.application|profile\.(clientId|kinds\.service))$/,
  page: /^(enroll\.name|verify\.score)$/,
  operator:
    /^(about|between|live|no|yes|account|load\.(of|p95|median)|(calls|decisions|profiles|sessions|watchlists|models|promises)\.columns\.\d|parts\.(profiles|applications|sessions)|applications\.(name|clients|clientColumns\.\d|copy)|profile\.(processedColumns\.\d|revision|listKinds\.group)|session\.(audio|checkColumns\.\d|audioColumns\.\d|processedFor\.check)|sessions\.any|evaluation\.(condition|fnmr)|pager\.page|names\.(person|authentication|DIGITAL|WEB|IVR|FRAUD|UNCERTAIN))$/,
};

const others = languageNames.filter((name) => name !== "en");
const all = others.flatMap((name) => [
  { name, of: "page", english: texts(pageLanguages.en), own: texts(pageLanguages[name]) } as const,
  { name, of: "token", english: texts(tokenLanguages.en), own: texts(tokenLanguages[name]) } as const,
  { name, of: "operator", english: texts(operatorLanguages.en), own: texts(operatorLanguages[name]) } as const,
]);

describe.each(all)("$of in $name", ({ of, english, own }) => {
  test("says everything that English says", () => {
    expect([...own.keys()].sort()).toEqual([...english.keys()].sort());
    expect([...own].filter(([, text]) => text.trim() === "")).toEqual([]);
  });

  test("is translated", () => {
    const alike = [...own].filter(([path, text]) => text === english.get(path)).map(([path]) => path);
    expect(alike.filter((path) => !shared[of].test(path))).toEqual([]);
  });

  test("contains the same names and numbers", () => {
    const withName = [...english].filter(([, text]) => /\b3\b/.test(text)).map(([path]) => path);
    expect(withName.filter((path) => !/3/.test(own.get(path)!))).toEqual([]);
  });
});

test("Portuguese is that of Brazil", () => {
  const european =
    /\b(ficheiros?|regist[aeo]r?|ecrã|âmbitos?|separador|descodific|transferências|demasiado|correu mal|a (carregar|analisar|iniciar|procurar|funcionar|falar))\b/i;
  const portuguese = all.filter(({ name }) => name === "pt").flatMap(({ own }) => [...own.values()]);
  expect(portuguese.length).toBeGreaterThan(300);
  expect(portuguese.filter((text) => european.test(text))).toEqual([]);
});
