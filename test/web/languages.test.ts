/** The page's languages: the right one is chosen, and none says less than another. */
import { describe, expect, test } from "vitest";
import { languageFor, languages } from "../../src/web/strings.js";
import { en } from "../../src/web/words/en.js";

test("the first of the browser's languages that the page speaks, else English", () => {
  expect(languageFor(["de-AT", "en"])).toBe("de");
  expect(languageFor(["nl", "pt-BR", "en"])).toBe("pt");
  expect(languageFor(["zh-Hant-TW"])).toBe("zh");
  expect(languageFor(["constructor", "fi"])).toBe("en");
  expect(languageFor([])).toBe("en");
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

describe.each(Object.keys(languages).filter((name) => name !== "en"))("%s", (name) => {
  const english = texts(en);
  const own = texts(languages[name]!);

  test("says everything that English says", () => {
    expect([...own.keys()].sort()).toEqual([...english.keys()].sort());
    expect([...own].filter(([, text]) => text.trim() === "")).toEqual([]);
  });

  test("says it in its own words", () => {
    const alike = [...own].filter(([path, text]) => text === english.get(path)).map(([path]) => path);
    const everywhere = /^(title|meters\.(none|decibels)|enroll\.name|verify\.score)$/;
    expect(alike.filter((path) => !everywhere.test(path))).toEqual([]);
  });

  test("names who is meant and what was measured", () => {
    const withName = [...english].filter(([, text]) => /\b3\b/.test(text)).map(([path]) => path);
    expect(withName.filter((path) => !/3/.test(own.get(path)!))).toEqual([]);
  });
});
