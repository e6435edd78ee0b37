import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { credentialBlocks, readConfig, readParams, writeConfig, writeParams } from "../../src/token/config-file.js";
import { formatUrn, parseUrn, type ResourceUrn, UrnError } from "../../src/token/urn.js";
import { createBox } from "./box.js";

describe("resource URNs", () => {
  test.each<[string, ResourceUrn]>([
    [
      "urn:vendor-platform:tag:model/bank/platform.asr?=language=eng-USA",
      { kind: "recognition", contextTag: "bank", language: "eng-USA" },
    ],
    [
      "urn:vendor-platform:tag:model/bank/platform.nlu?=language=fra-CAN",
      { kind: "interpretation", contextTag: "bank", language: "fra-CAN" },
    ],
    ["urn:vendor-platform:tag:model/bank/platform.dialog", { kind: "dialog", contextTag: "bank" }],
    [
      "urn:vendor-platform:tag:wordset:lang/bank/places/eng-USA/platform.asr",
      { kind: "wordset", context: "bank", name: "places", language: "eng-USA", service: "platform.asr" },
    ],
    [
      "urn:vendor-platform:tag:wordset:lang/bank/contacts/deu-DEU/platform.nlu?=user_id=olga%40bank",
      {
        kind: "wordset",
        context: "bank",
        name: "contacts",
        language: "deu-DEU",
        service: "platform.nlu",
        userId: "olga@bank",
      },
    ],
  ])("%s", (text, urn) => {
    expect(formatUrn(urn)).toBe(text);
    expect(parseUrn(text)).toEqual(urn);
    expect(parseUrn(text.replace("urn:vendor-platform", "URN:Vendor-Platform"))).toEqual(urn);
  });

  test("every URN that is built can be parsed", () => {
    const part = fc.string({ unit: "grapheme", minLength: 1 });
    const language = fc.stringMatching(/^[a-z]{3}-[A-Z]{3}$/);
    const service = fc.constantFrom("platform.asr" as const, "platform.nlu" as const);
    const urn = fc.oneof(
      fc.record({
        kind: fc.constantFrom("recognition" as const, "interpretation" as const),
        contextTag: part,
        language,
      }),
      fc.record({ kind: fc.constant("dialog" as const), contextTag: part }),
      fc.record(
        { kind: fc.constant("wordset" as const), context: part, name: part, language, service, userId: part },
        { requiredKeys: ["kind", "context", "name", "language", "service"] },
      ),
    );
    fc.assert(
      fc.property(urn, (given) => {
        expect({ ...parseUrn(formatUrn(given as ResourceUrn)) }).toEqual({ ...given });
      }),
    );
  });

  test("any text is parsed, or refused with the name and position of the error", () => {
    const text = fc.oneof(
      fc.string(),
      fc.string().map((rest) => `urn:vendor-platform:tag:model/${rest}`),
      fc.string().map((rest) => `urn:vendor-platform:tag:wordset:lang/${rest}`),
    );
    fc.assert(
      fc.property(text, (given) => {
        try {
          parseUrn(given);
        } catch (error) {
          expect(error).toBeInstanceOf(UrnError);
          expect((error as UrnError).at).toBeGreaterThanOrEqual(0);
          expect((error as UrnError).at).toBeLessThanOrEqual(given.length);
        }
      }),
    );
  });

  const MODEL = "urn:vendor-platform:tag:model/";
  const WORDSET = "urn:vendor-platform:tag:wordset:lang/";
  test.each([
    ["", "not-a-urn", 0],
    ["url:x", "not-a-urn", 0],
    ["urn:other:tag:model/a/platform.asr", "foreign-namespace", 4],
    ["urn:vendor-platform:tag:voice/a", "unknown-resource", 20],
    [MODEL, "missing-part", 30],
    [`${MODEL}bank`, "missing-part", 34],
    [`${MODEL}/platform.asr?=language=eng-USA`, "missing-part", 30],
    [`${MODEL}bank/platform.tts?=language=eng-USA`, "unknown-service", 35],
    [`${MODEL}bank/constructor?=language=eng-USA`, "unknown-service", 35],
    [`${MODEL}bank/platform.asr`, "missing-language", 47],
    [`${MODEL}bank/platform.asr?=language=en-US`, "malformed-language", 58],
    [`${MODEL}bank/platform.asr?=language=ENG-usa`, "malformed-language", 58],
    [`${MODEL}bank/platform.asr?=user_id=x`, "unknown-parameter", 49],
    [`${MODEL}bank/platform.asr/x?=language=eng-USA`, "extra-part", 48],
    [`${MODEL}bank/platform.dialog?=language=eng-USA`, "unexpected-language", 52],
    [`${MODEL}ba nk/platform.dialog`, "malformed-part", 32],
    [`${MODEL}ba%zz/platform.dialog`, "malformed-part", 32],
    [`${MODEL} bank/platform.dialog`, "malformed-part", 30],
    [`${MODEL}bank/platform.dialog/x`, "extra-part", 51],
    [`${WORDSET}`, "missing-part", 37],
    [`${WORDSET}bank`, "missing-part", 41],
    [`${WORDSET}bank//eng-USA/platform.asr`, "missing-part", 42],
    [`${WORDSET}bank/places`, "missing-language", 48],
    [`${WORDSET}bank/places//platform.asr`, "missing-language", 49],
    [`${WORDSET}bank/places/eng-USA`, "missing-part", 56],
    [`${WORDSET}bank/places/eng-USA?=user_id=x`, "missing-part", 56],
    [`${WORDSET}bank/places/eng-USA/platform.asr/x`, "extra-part", 70],
    [`${WORDSET}bank/places/eng-USA/platform.asr?=user_id=a%4`, "malformed-part", 80],
    [`${WORDSET}bank/places/eng-USA/platform.asr?=user_id=a/b`, "malformed-part", 80],
    [`${WORDSET}bank/places/platform.asr`, "malformed-language", 49],
    [`${WORDSET}bank/places/eng-USA/platform.dialog`, "unknown-service", 57],
    [`${WORDSET}bank/places/eng-USA/platform.asr?=user_id=`, "missing-part", 79],
    [`${WORDSET}bank/places/eng-USA/platform.asr?=language=eng-USA`, "unknown-parameter", 71],
  ])("%j is %s at %i", (text, code, at) => {
    expect(() => parseUrn(text)).toThrow(expect.objectContaining({ code, at }));
  });

  test("a URN that cannot be parsed is never built", () => {
    const wordset = { kind: "wordset", context: "a", name: "b", language: "eng-USA", service: "platform.asr" } as const;
    for (const [urn, code] of [
      [{ kind: "recognition", contextTag: "", language: "eng-USA" }, "missing-part"],
      [{ kind: "recognition", contextTag: "a", language: "english" }, "malformed-language"],
      [{ kind: "dialog", contextTag: "\ud800" }, "malformed-part"],
      [{ ...wordset, service: "platform.dialog" as never }, "unknown-service"],
      [{ ...wordset, userId: "" }, "missing-part"],
    ] as [ResourceUrn, string][])
      expect(() => formatUrn(urn)).toThrow(expect.objectContaining({ name: "UrnError", code, at: 0 }));
  });
});

describe("config.json", () => {
  const example = async () => {
    const { applications } = createBox().service;
    const { id } = await applications.create({
      name: "Bank",
      environment: "production",
      geography: "eu",
      scopes: ["tts", "asr"],
      endpoints: { asr: "asr.example:443" },
    });
    await applications.createClient(id, { name: "ivr" });
    await applications.putGeography(id, "us", {});
    await applications.createClient(id, { name: "ivr", geography: "us" });
    return applications.get(id);
  };

  test("has a block for each client id of the geography, with the contract's fields", async () => {
    const application = await example();
    const blocks = credentialBlocks(application, "eu");
    expect(blocks).toEqual(
      ["default", "ivr"].map((name) => ({
        client_id: `appID:${application.id}:geo:eu:clientName:${name}`,
        client_secret: "",
        oauth_server_url: "https://box.example/oauth2/token",
        oauth_scopes: "asr tts",
        // Only services that exist: the configured ones and the voiceprint service of this box.
        asr_endpoint: "asr.example:443",
        bio_endpoint: "box.example:443",
      })),
    );
    expect(credentialBlocks(application, "us").map((block) => block.client_id)).toEqual([
      `appID:${application.id}:geo:us:clientName:ivr`,
    ]);
    expect(() => credentialBlocks(application, "moon")).toThrow(expect.objectContaining({ code: "not_found" }));
    expect(() => credentialBlocks(application, "constructor")).toThrow(expect.objectContaining({ code: "not_found" }));
  });

  test("can be read back, also as a single block", async () => {
    const blocks = credentialBlocks(await example(), "eu");
    expect(readConfig(writeConfig(blocks))).toEqual(blocks);
    expect(writeConfig(blocks)).toMatch(/^\[\n {2}\{\n {4}"client_id": .*\n\]\n$/s);
    expect(readConfig(JSON.stringify(blocks[0]))).toEqual([blocks[0]]);
  });

  test("errors name the field and never quote the file, which contains a secret", async () => {
    const [block] = credentialBlocks(await example(), "eu");
    expect(() => readConfig('{"client_secret": "s3cret"')).toThrow("config.json is not JSON");
    expect(() => readConfig("[]")).toThrow(/list/);
    expect(() => readConfig(JSON.stringify({ ...block, asr_endpoint: "nowhere", client_secret: "s3cret" }))).toThrow(
      /^config.json: 0.asr_endpoint: must be host:port$/,
    );
    expect(() => readConfig(JSON.stringify({ ...block, client_id: undefined }))).toThrow(/client_id/);
    expect(() => readConfig(JSON.stringify({ ...block, client_id: "" }))).toThrow(/client_id/);
    expect(readConfig(JSON.stringify({ ...block, client_id: "x" }))).toEqual([{ ...block, client_id: "x" }]);
    expect(() => readConfig(JSON.stringify({ ...block, oauth_server_url: "ftp://x" }))).toThrow(/oauth_server_url/);
  });
});

describe("asr_params, nlu_params, dlg_params", () => {
  test.each([
    [
      "asr_params",
      "eng-USA",
      { urn: "urn:vendor-platform:tag:model/bank/platform.asr?=language=eng-USA", language: "eng-USA" },
    ],
    [
      "nlu_params",
      "eng-USA",
      { urn: "urn:vendor-platform:tag:model/bank/platform.nlu?=language=eng-USA", language: "eng-USA" },
    ],
    ["dlg_params", undefined, { urn: "urn:vendor-platform:tag:model/bank/platform.dialog" }],
  ] as const)("%s", (kind, language, params) => {
    expect(writeParams(kind, "bank", language)).toEqual(params);
    expect(readParams(kind, JSON.stringify(params))).toEqual(params);
  });

  test.each([
    ["asr_params", "{", "is not JSON"],
    [
      "asr_params",
      '{"urn":"urn:vendor-platform:tag:model/a/platform.nlu?=language=eng-USA","language":"eng-USA"}',
      "must name a resource of the kind recognition, got interpretation",
    ],
    [
      "asr_params",
      '{"urn":"urn:vendor-platform:tag:model/a/platform.asr?=language=eng-USA","language":"deu-DEU"}',
      "the language is deu-DEU, but that of the urn is eng-USA",
    ],
    [
      "asr_params",
      '{"urn":"urn:vendor-platform:tag:model/a/platform.asr?=language=eng-USA"}',
      "the language is missing",
    ],
    [
      "dlg_params",
      '{"urn":"urn:vendor-platform:tag:model/a/platform.dialog","language":"eng-USA"}',
      "that of the urn is missing",
    ],
    ["nlu_params", '{"urn":"x"}', 'must begin with urn:, got "x" (at 0)'],
    ["nlu_params", '{"urn":"x","more":1}', "more"],
    ["nlu_params", '{"urn":"x","language":"english"}', 'language: must have the form eng-USA, got "english"'],
  ] as const)("%s refuses %s", (kind, text, why) => {
    expect(() => readParams(kind, text)).toThrow(why);
  });

  test("dialog parameters must not have a language, the others must have one", () => {
    expect(() => writeParams("dlg_params", "bank", "eng-USA")).toThrow("dlg_params must not have a language");
    expect(() => writeParams("asr_params", "bank")).toThrow("asr_params must have a language");
  });
});
