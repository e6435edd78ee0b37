import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createProgram } from "../../src/cli/program.js";
import { connect } from "../../src/client/connect.js";
import { configSchema } from "../../src/server/config.js";
import { jsonLog } from "../../src/server/log.js";
import { type Box, startBox } from "../../src/server/start.js";
import { fixtureEngine, rateHz, silence, take } from "../processor/fixture-engine.js";
import { wav } from "../voice.js";
import { run } from "./run.js";

const execute = promisify(execFile);
let folder: string;
let box: Box;
const engine = fixtureEngine();
let place: string[];
const file = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-cli-"));
  box = await startBox(configSchema.parse({ port: 0, store: "memory", allowExport: true }), {
    engine,
    log: jsonLog("silent"),
  });
  const { clientId, clientSecret } = box.firstApplication!;
  place = ["--url", box.url, "--client-id", clientId, "--client-secret", clientSecret];
  const speakers = { ada: 100, bob: 200, mallory: 300 };
  for (const [name, speaker] of Object.entries(speakers)) {
    for (let i = 1; i <= 4; i++) await writeFile(file(`${name}-${i}.wav`), wav(take(speaker, 3 + i / 10), rateHz));
  }
  await writeFile(file("stereo.wav"), wav(take(100, 3.5), rateHz, 2));
  await writeFile(file("silence.wav"), wav(silence(3), rateHz));
  await writeFile(file("text.wav"), "this is no audio");
  await writeFile(file("empty.wav"), "");
  await mkdir(file("folder.wav"));
});
afterAll(async () => {
  await box?.stop();
  await rm(folder, { recursive: true });
});

const voices = (name: string, ...takes: number[]) => takes.map((i) => file(`${name}-${i}.wav`));

describe("enroll, verify, identify, watchlist against a box", () => {
  it("enrolls, and reports the result for each recording", async () => {
    const { code, json } = await run("enroll", "ada", ...voices("ada", 1, 2, 3), ...place, "--json");
    expect(code).toBe(0);
    expect(json.training).toMatchObject({ status: "TRAINED", printVersion: 1 });
    expect(json.segments).toHaveLength(3);
    expect(json.segments[0]).toMatchObject({ validity: "AUDIO_OK", enrolled: true, usedForTraining: true });
    const again = await run("enroll", "bob", ...voices("bob", 1, 2, 3), ...place);
    expect(again.out).toMatch(/bob is enrolled/);
    expect(again.out).toContain("bob-1.wav");
  });

  it("says what is missing if there is too little speech, and exits with 3", async () => {
    const { code, json } = await run("enroll", "carol", ...voices("ada", 1), file("silence.wav"), ...place, "--json");
    expect(code).toBe(3);
    expect(json).toMatchObject({ training: null, missingRecordings: 2, missingSpeechSeconds: 0 });
    expect(json.segments[1]).toMatchObject({ validity: "AUDIO_TOO_SHORT", enrolled: false, remedy: "speak longer" });
  });

  it("tells people, in their words, that an enrollment is not finished, and what to do", async () => {
    const { out } = await run("enroll", "fay k.", ...voices("ada", 1), file("silence.wav"), "--tag", "home", ...place);
    expect(out).toMatch(/ada-1\.wav .* good +\S? ?yes/);
    expect(out).toMatch(/silence\.wav .* too little speech: speak longer +\S? ?no /);
    expect((await run("people", ...place)).out).toMatch(/fay k\. .* home .* not trained yet/);
    const verified = await run("verify", "fay k.", ...voices("ada", 4), "--tag", "home", ...place);
    expect(verified.code).toBe(3);
    expect(verified.out).toMatch(/reason +the enrollment is not finished\n/);
    expect(verified.out).toMatch(/next step +finish the enrollment: vivavoce enroll --tag home 'fay k\.' more\.wav\n/);
    await run("erase", "fay k.", ...place);
    const verifiable = await run("verify", "ada", ...voices("ada", 4), ...place);
    expect(verifiable.out).toMatch(/reason +the voice matches\n/);
    expect(verifiable.out).not.toContain("next step");
  });

  it("shows in its help no default that is empty", async () => {
    for (const command of [["enroll"], ["verify"], ["identify"], ["watchlist", "create"]])
      expect((await run(...command, "--help")).out).toMatch(/--tag <tag>(?!.*default: "")/s);
  });

  it("says of a person who was enrolled with another model what is missing, and that the print cannot be used", async () => {
    await run("enroll", "dan", ...voices("bob", 1, 2, 3), ...place);
    const { revision } = engine.behavior;
    engine.behavior.revision = "d".repeat(64);
    const { code, out } = await run("enroll", "dan", ...voices("bob", 4), ...place);
    engine.behavior.revision = revision;
    expect(code).toBe(3);
    expect(out).toContain(
      "dan was not trained again: 2 recordings still missing. Recordings that another model processed do not count. " +
        "The voiceprint is still that of print version 1. The model here cannot use it: enroll more recordings.",
    );
    await run("erase", "dan", ...place);
  });

  it("verifies with exit code 0 for a match, 1 for no match, 3 if undecided", async () => {
    const match = await run("verify", "ada", ...voices("ada", 4), ...place, "--json");
    expect(match).toMatchObject({
      code: 0,
      json: { decision: "AUTHENTIC", reason: "VOICEPRINT_MATCH", subject: "ada" },
    });
    const other = await run("verify", "ada", ...voices("bob", 4), ...place);
    expect(other.code).toBe(1);
    expect(other.out).toMatch(/decision +NO MATCH/);
    const nothing = await run("verify", "ada", file("silence.wav"), ...place, "--json");
    expect(nothing).toMatchObject({ code: 3, json: { decision: "UNCERTAIN" } });
  });

  it("identifies among people", async () => {
    const { code, json } = await run("identify", ...voices("bob", 4), "ada", "bob", ...place, "--json");
    expect(code).toBe(0);
    expect(json).toMatchObject({ subject: "bob", decision: "AUTHENTIC" });
    expect(json.candidates.map((one: { name: string }) => one.name)).toEqual(["bob", "ada"]);
  });

  it("names others who match too, and voiceprints that could not be compared", async () => {
    await run("enroll", "robert", ...voices("bob", 1, 2, 3), ...place);
    const { revision } = engine.behavior;
    engine.behavior.revision = "d".repeat(64);
    await run("enroll", "dan", ...voices("bob", 1, 2, 3), ...place);
    engine.behavior.revision = revision;
    const { code, out } = await run("identify", ...voices("bob", 4), ...place);
    expect(code).toBe(0);
    const [, best, other] = out.match(/compared with +(\w+)\n.*also match +(\w+)\n/s)!;
    expect([best, other].sort()).toEqual(["bob", "robert"]);
    const why =
      /prints of a model that is not installed here were not compared \(1\); install the model or enroll them again: /;
    expect(out).toMatch(new RegExp(`not compared +${why.source}`));
    const { json } = await run("verify", "dan", ...voices("bob", 4), ...place, "--json");
    expect(json).toMatchObject({ reason: "NO_SCORES", notCompared: expect.stringMatching(why) });
    const alone = await run("verify", "bob", ...voices("bob", 4), ...place);
    expect(alone.out).not.toMatch(/not compared|also match/);
    for (const name of ["robert", "dan"]) await run("erase", name, ...place);
  });

  it("identifies among everybody, lists people and fraudsters, and erases one", async () => {
    const all = await run("identify", ...voices("bob", 4), ...place, "--json");
    expect(all).toMatchObject({ code: 0, json: { subject: "bob", decision: "AUTHENTIC" } });
    // With any tag, as in the library.
    await run("enroll", "yan", ...voices("mallory", 1, 2, 3), "--tag", "mobile", ...place);
    expect((await run("identify", ...voices("mallory", 4), ...place, "--json")).json.subject).toBe("yan");
    const untagged = await run("identify", ...voices("mallory", 4), "--tag", "", ...place, "--json");
    expect(untagged.json.subject).not.toBe("yan");
    await run("erase", "yan", ...place);
    await run("enroll", "zoe", ...voices("ada", 1, 2, 3), ...place);
    const names = async (command: string) =>
      (await run(command, ...place, "--json")).json.map(({ name }: { name: string }) => name) as string[];
    expect(await names("people")).toEqual(expect.arrayContaining(["ada", "bob", "zoe"]));
    expect((await run("people", ...place)).out).toMatch(/zoe/);
    expect((await run("erase", "zoe", ...place, "--json")).json).toEqual({ erased: "zoe", profiles: 1 });
    expect(await names("people")).not.toContain("zoe");
    expect(await names("fraudsters")).not.toContain("ada");
    expect(await run("erase", "nobody", ...place)).toMatchObject({
      code: 2,
      err: expect.stringContaining('no person "nobody" is enrolled here'),
    });
  });

  it("exports to a sealed file and imports it under another name", async () => {
    const sealed = file("ada.voiceprint");
    vi.stubEnv("VIVAVOCE_PASSPHRASE", "");
    expect(await run("export", "ada", sealed, ...place)).toMatchObject({
      code: 2,
      err: expect.stringContaining("VIVAVOCE_PASSPHRASE"),
    });
    vi.stubEnv("VIVAVOCE_PASSPHRASE", "open sesame");
    expect((await run("export", "ada", sealed, ...place)).out).toBe(
      `ada is exported to ${sealed}, sealed with the passphrase.\n`,
    );
    expect((await stat(sealed)).mode & 0o777).toBe(0o600);
    expect((await run("export", "ada", sealed, ...place)).err).toContain("already exists");
    expect(await run("import", sealed, ...place)).toMatchObject({
      code: 2,
      err: expect.stringContaining('the person "ada" already has a voiceprint here'),
    });
    expect((await run("import", sealed, "--as", "lovelace", ...place)).out).toBe("lovelace is imported.\n");
    expect(await run("verify", "lovelace", ...voices("ada", 4), ...place, "--json")).toMatchObject({ code: 0 });
    expect((await run("verify", "lovelace", ...voices("ada", 4), ...place)).out).toMatch(
      /ratio \(log\) +\d+\.\d, needed \d+\.\d for 1 % false accepts/,
    );
    vi.stubEnv("VIVAVOCE_PASSPHRASE", "open barley");
    expect(await run("import", sealed, "--as", "eve", ...place)).toMatchObject({
      code: 2,
      err: expect.stringContaining("the passphrase is wrong"),
    });
    expect((await run("export", "ada", file("ada.json"), "--plain", ...place, "--json")).json.sealed).toBe(false);
    expect(JSON.parse(await readFile(file("ada.json"), "utf8"))).toMatchObject([{ owner: { externalId: "ada" } }]);
    vi.unstubAllEnvs();
    await run("erase", "lovelace", ...place);
  });

  it("manages and checks watchlists", async () => {
    await run("enroll", "mallory", ...voices("mallory", 1, 2, 3), "--fraudster", ...place);
    const created = await run("watchlist", "create", "mallory", "--tag", "known", ...place, "--json");
    const id = created.json.watchlistId as string;
    expect(await run("watchlist", "check", id, ...voices("mallory", 4), ...place, "--json")).toMatchObject({
      code: 1,
      json: { decision: "FRAUD", subject: "mallory", candidates: [{ name: "mallory" }] },
    });
    expect(await run("watchlist", "check", id, ...voices("ada", 4), ...place, "--json")).toMatchObject({
      code: 0,
      json: { decision: "NO_RISK_DETECTED" },
    });
    expect((await run("watchlist", "show", id, ...place, "--json")).json).toMatchObject({
      tag: "known",
      profileIds: [expect.any(String)],
      names: ["mallory"],
    });
    expect((await run("watchlist", "show", id, ...place)).out).toContain("mallory");
    const lists = await run("watchlist", "list", ...place, "--json");
    expect(lists.json).toContainEqual({ watchlistId: id, tag: "known", profiles: 1, owners: 0 });
    expect((await run("watchlist", "list", ...place)).out).toContain(id);

    expect((await run("watchlist", "consistency", id, ...place, "--json")).json).toMatchObject({
      compatible: 1,
      incompatible: 0,
    });
    expect((await run("watchlist", "remove", id, "mallory", ...place)).code).toBe(0);
    expect((await run("watchlist", "show", id, ...place, "--json")).json.profileIds).toEqual([]);
    expect((await run("watchlist", "delete", id, ...place)).code).toBe(0);
    expect((await run("watchlist", "list", ...place)).out).toBe('there is no watchlist in the scope "default"\n');
    expect((await run("watchlist", "show", id, ...place)).code).toBe(2);
  });

  it("takes the names of watchlists and groups as well as their ids", async () => {
    await run("enroll", "mallory", ...voices("mallory", 1, 2, 3), "--fraudster", ...place);
    const { watchlistId } = (await run("watchlist", "create", "--tag", "branch 1", ...place, "--json")).json;
    expect((await run("watchlist", "add", "branch 1", "mallory", ...place)).code).toBe(0);
    expect(
      (await run("watchlist", "check", "branch 1", ...voices("mallory", 4), ...place, "--json")).json,
    ).toMatchObject({ decision: "FRAUD", subject: "mallory" });
    expect((await run("watchlist", "show", "branch 1", ...place, "--json")).json).toMatchObject({
      watchlistId,
      names: ["mallory"],
    });
    expect(await run("watchlist", "show", "branch 2", ...place)).toMatchObject({
      code: 2,
      err: 'error: there is no watchlist "branch 2" in the scope "default"\n',
    });
    const other = (await run("watchlist", "create", "--tag", "branch 1", ...place, "--json")).json.watchlistId;
    const both = await run("watchlist", "delete", "branch 1", ...place);
    expect(both).toMatchObject({ code: 2, err: expect.stringContaining('2 watchlists are called "branch 1"') });
    for (const id of [watchlistId, other]) {
      expect(both.err).toContain(id);
      expect((await run("watchlist", "delete", id, ...place)).code).toBe(0);
    }

    await run("enroll", "bob", ...voices("bob", 1, 2, 3), ...place);
    const people: { name: string; profileId: string }[] = (await run("people", ...place, "--json")).json;
    const [clientId, clientSecret] = [place[3]!, place[5]!];
    const operations = connect({ url: box.url, credentials: { clientId, clientSecret } });
    const context = { gkScopeId: { value: "default" } };
    const uniqueIds = people.filter(({ name }) => name === "bob").map(({ profileId }) => ({ value: profileId }));
    await operations.createGroup({ context, tag: "night shift", gkVoiceprintProfileIds: { uniqueIds } });
    const found = await run("identify", ...voices("bob", 4), "--group", "night shift", ...place, "--json");
    expect(found).toMatchObject({ code: 0, json: { subject: "bob", candidates: [{ name: "bob" }] } });
    expect((await run("identify", ...voices("bob", 4), "--group", "day shift", ...place)).err).toBe(
      'error: there is no group "day shift" in the scope "default"\n',
    );
  });

  it("names the people whose prints a migration cannot move", async () => {
    await run("enroll", "mallory", ...voices("mallory", 1, 2, 3), "--fraudster", ...place);
    const { revision } = engine.behavior;
    engine.behavior.revision = "b".repeat(64);
    try {
      const report = await run("model", "migrate", "--dry-run", ...place, "--json");
      expect(report.json.profiles).toContainEqual({
        profileId: expect.any(String),
        name: "mallory",
        outcome: "to be enrolled again",
      });
      expect((await run("model", "migrate", "--dry-run", ...place)).out).toContain("  mallory  to be enrolled again\n");
    } finally {
      engine.behavior.revision = revision;
    }
  });

  it("measures", async () => {
    const { code, json } = await run("measure", file("ada-4.wav"), ...place, "--json");
    expect(code).toBe(0);
    expect(json).toMatchObject({ rateHz, channels: 1, verdict: { enroll: "AUDIO_OK", verify: "AUDIO_OK" } });
    expect(json.grossSeconds).toBeCloseTo(3.4, 6);
    const people = await run("measure", file("silence.wav"), ...place);
    expect(people.out).toMatch(/good enough to verify +no, too little speech: speak longer/);
  });

  it("demonstrates enrollment and checks", async () => {
    const { code, json } = await run("demo", ...place, "--json");
    // The fixture engine cannot tell synthesized voices apart: this tests only that every step runs.
    expect([0, 3]).toContain(code);
    expect(json.enrolled.map((one: { name: string }) => one.name)).toEqual(["ada", "bob", "carol", "mallory"]);
  });
});

describe("errors are clear", () => {
  it.each([
    [["verify", "nobody", "ada-4.wav"], 2, /no person "nobody" is enrolled here/],
    [["verify", "ada", "missing.wav"], 2, /missing\.wav: no such file/],
    [["verify", "ada", "text.wav"], 2, /^error: \S*text\.wav: not a WAV file[^\n]*\n$/],
    [["measure", "text.wav"], 2, /^error: (?!\S*: \S*text\.wav)\S*text\.wav: not a WAV file/],
    [["measure", "missing.wav"], 2, /no such file/],
    [["measure", "folder.wav"], 2, /folder\.wav: this is a folder, not a file/],
    [["measure", "empty.wav"], 2, /empty\.wav: the recording is empty/],
    [["evaluate", "missing"], 2, /no such folder/],
    [["watchlist", "show", "00000000-0000-7000-8000-000000000000"], 2, /watchlist/],
    [
      ["watchlist", "create", "nobody"],
      2,
      /no fraudster "nobody" is enrolled here\nhint: .* enroll --fraudster nobody /,
    ],
    [["watchlist", "show", "nonsense"], 2, /^error: there is no watchlist "nonsense" in the scope "default"\n$/],
    [["verify", "ada", "stereo.wav", "--channel", "7"], 2, /channel/],
    [["verify", "ada", "ada-4.wav", "--encoding", "pcm16"], 2, /needs --rate/],
    [["enroll", "ada"], 2, /missing required argument/],
    [["verfy", "ada"], 2, /Did you mean verify/],
    [["verify", "ada", "ada-4.wav", "--scope", "other"], 4, /does not include the scope "other"/],
  ])("%j exits %i", async (words, code, message) => {
    const argv = words.map((word) => (/\.wav$/.test(word) ? file(word) : word));
    const ran = await run(...argv, ...(words.length > 2 || words[0] === "identify" ? place : []));
    expect(ran.err).toMatch(message);
    expect(ran.code).toBe(code);
  });

  it.each([
    [["keys", "rotate", "--store", "text.wav"], 2, /^error: there is no store in \S+text\.wav\n$/],
    [
      ["serve", "--store", "postgres://127.0.0.1:9/x", "--set", "seal.keys=keys.wav"],
      4,
      /^error: store: cannot connect to PostgreSQL at 127\.0\.0\.1:9: connection refused\n$/,
    ],
    [["model", "info", "text.wav"], 2, /^error: \S+text\.wav: this is not a vivavoce model file\n$/],
    // Before the work whose result would be lost.
    [
      ["evaluate", "nowhere", "--report", "nowhere/report.html"],
      2,
      /^error: nowhere\/report\.html: there is no folder nowhere\n$/,
    ],
    [["evaluate", "nowhere", "--scores", "folder.wav"], 2, /^error: \S+folder\.wav: this is a folder, not a file\n$/],
    [["evaluate", "nowhere", "--keep", "folder.wav"], 2, /^error: \S+folder\.wav: this is a folder, not a file\n$/],
    [
      ["evaluate", "--compare", "folder.wav", "folder.wav"],
      2,
      /^error: \S+folder\.wav: this is a folder, not a file\n$/,
    ],
    [
      ["model", "import", "folder.wav", "--speech", "nowhere", "--out", "nowhere/c.vvm"],
      2,
      /^error: \S+folder\.wav: this is a folder, not a file\n$/,
    ],
    [["calibrate", "nowhere", "--out", "nowhere/c.json"], 2, /^error: nowhere\/c\.json: there is no folder nowhere\n$/],
    [
      ["evaluate", "missing", "--compare", "a.json", "b.json"],
      2,
      /^error: --compare only reads two saved outputs; leave/,
    ],
  ])("%j exits %i", async (words, code, message) => {
    const argv = words.map((word) => word.replace(/\w+\.wav$/, (name) => file(name)));
    expect(await run(...argv)).toMatchObject({ code, err: expect.stringMatching(message) });
  });

  it("stores nothing if one of the files is not a recording, and names that file", async () => {
    const half = await run("enroll", "half", ...voices("ada", 1), file("text.wav"), ...place, "--json");
    expect(half).toMatchObject({ code: 2, json: { error: expect.stringContaining("text.wav: not a WAV file") } });
    expect((await run("verify", "half", ...voices("ada", 4), ...place)).err).toMatch(
      /no person "half" is enrolled here/,
    );
  });

  it("opens no store for a recording that does not exist, and asks no box for an export that cannot be written", async () => {
    const wrong = await run("enroll", "ada", file("missing.wav"), "--store", file("store"));
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("missing.wav: no such file") });
    await expect(stat(file("store"))).rejects.toThrow("ENOENT");
    const box = ["--plain", "--url", "http://127.0.0.1:9", "--token", "x"];
    expect(await run("export", "ada", "nowhere/ada.json", ...box)).toMatchObject({
      code: 2,
      err: "error: nowhere/ada.json: there is no folder nowhere\n",
    });
    expect((await run("export", "ada", file("text.wav"), ...box)).err).toMatch(
      /text\.wav already exists; choose another/,
    );
  });

  it.each([
    "verify ada ada-4.wav",
    "identify ada-4.wav",
    "people",
    "fraudsters",
    "erase ada",
    "export ada absent.json --plain",
    "watchlist create mallory",
    "watchlist list",
    "watchlist check known ada-4.wav",
    "model migrate",
    "token app list",
    "token user delete ada",
  ])("%s: a folder without a store is refused, and none is created there", async (line) => {
    const nowhere = file("nowhere");
    const argv = line.split(" ").map((word) => (/\.(wav|json)$/.test(word) ? file(word) : word));
    const { code, err } = await run(...argv, "--store", nowhere);
    expect(err).toContain(`error: there is no store in ${nowhere}\nhint: check --store`);
    expect(code).toBe(2);
    await expect(stat(nowhere)).rejects.toThrow("ENOENT");
  });

  it("prints errors as JSON too", async () => {
    const ran = await run("verify", "nobody", file("ada-4.wav"), ...place, "--json");
    expect(ran.json.error).toMatch(/nobody/);
    expect(ran.json.hint).toMatch(/enroll/);
    expect((await run("enroll", "ada", "--json")).json.error).toMatch(/missing required argument/);
    const tagged = await run("verify", "Ada L.", file("ada-4.wav"), "--tag", "work", ...place, "--json");
    expect(tagged.json.hint).toBe("enroll first: vivavoce enroll --tag work 'Ada L.' a.wav b.wav c.wav");
    expect((await run("measure", file("ada-4.wav"), "--channel", "")).err).toMatch(
      /^error: option '--channel <n>' argument '' is invalid. It must be a whole number from 0 to 64.\n/,
    );
  });

  it("every command can print JSON", async () => {
    const leaves = (command: Command): Command[] =>
      command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
    const without = leaves(createProgram()).filter(({ options }) => !options.some(({ long }) => long === "--json"));
    expect(without.map((command) => command.name())).toEqual([]);
    expect((await run("completion", "bash", "--json")).json.script).toContain("complete -o filenames");
    expect((await run("token", "params", "dlg", "bank", "--json")).json).toHaveProperty("urn");
  });

  it("reports that the box cannot be reached, and that credentials are wrong", async () => {
    expect((await run("verify", "ada", file("ada-4.wav"), "--url", "http://127.0.0.1:9", "--token", "x")).code).toBe(4);
    const wrong = await run("verify", "ada", file("ada-4.wav"), ...place.slice(0, -1), "wrong");
    expect(wrong.err).toMatch(/hint: give --token/);
    expect((await run("verify", "ada", file("ada-4.wav"), "--url", "nonsense")).code).toBe(2);
  });
});

describe("demo voices", () => {
  it("are written as WAV files", async () => {
    const { json } = await run("demo", "--wav", join(folder, "voices"), "--json");
    expect(json.files).toHaveLength(16);
    await mkdir(join(folder, "full"));
    await symlink("/dev/full", join(folder, "full", "ada-1.wav"));
    expect(await run("demo", "--wav", join(folder, "full"))).toMatchObject({
      code: 4,
      err: expect.stringMatching(/^error: \S+ada-1\.wav: the disk is full; free some space and start again\n$/),
    });
  });
});

describe("completion", () => {
  /** The completions that bash offers for a command line. */
  const offered = async (...words: string[]) => {
    const script = (await run("completion", "bash")).out;
    const asked = `${script}\nCOMP_WORDS=(vivavoce ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}; _vivavoce; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await execute("bash", ["-c", asked], { cwd: folder });
    return stdout.split("\n").filter(Boolean);
  };

  it("offers commands, subcommands, options and files", async () => {
    expect(await offered("ver")).toEqual(["verify"]);
    expect(await offered("watchlist", "")).toEqual(expect.arrayContaining(["create", "add", "check"]));
    expect(await offered("watchlist", "check", "--ign")).toEqual(["--ignore-checkpoints"]);
    expect(await offered("verify", "ada", "text")).toEqual(["text.wav"]);
    await writeFile(join(folder, "with a space.wav"), "");
    for (const words of [["measure"], ["model", "import"], ["model", "info"], ["serve", "--config"], ["call", "--wav"]])
      expect(await offered(...words, "with")).toEqual(["with a space.wav"]);
    expect(await offered("serve", "--po")).toEqual(["--port"]);
  });

  it("writes a script that zsh can read, and refuses other shells", async () => {
    expect((await run("completion", "zsh")).out).toContain("#compdef vivavoce");
    expect((await run("completion", "fish")).code).toBe(2);
  });
});
