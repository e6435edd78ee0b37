import { execFile } from "node:child_process";
import { mkdir, mkdtemp, open, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { seededRandom } from "../../src/evaluate/bootstrap.js";
import { sampleOf } from "../../src/evaluate/sample.js";
import { parseTrialList, readTrialSet } from "../../src/evaluate/trials.js";
import { VoiceCache } from "../../src/evaluate/voice-cache.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-trials-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function touch(...paths: string[]): Promise<void> {
  for (const path of paths) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), "");
  }
}

describe("a list of trials", () => {
  it("reads labels in words or digits, several enrollment files, comments", () => {
    const set = parseTrialList(
      "# made by hand\n1 a/s/1.wav,a/s/2.wav a/t/1.wav\nimpostor a/s/1.wav,a/s/2.wav b/t/1.wav\r\n\n",
      "/recordings",
    );
    expect(set.models).toEqual([[0, 1]]);
    expect(set.files.map((file) => file.replace("/recordings/", ""))).toEqual([
      "a/s/1.wav",
      "a/s/2.wav",
      "a/t/1.wav",
      "b/t/1.wav",
    ]);
    expect(set.trials).toEqual([
      { model: 0, test: 2, same: true },
      { model: 0, test: 3, same: false },
    ]);
  });

  it("reads names with spaces if tabs separate the columns", () => {
    const { files } = parseTrialList(
      "1\tAnn Lee/1.wav,Ann Lee/2.wav\tAnn Lee/my call.wav\n0 a/1.wav \t b/1.wav",
      "/speech",
    );
    expect(files).toEqual([
      "/speech/Ann Lee/1.wav",
      "/speech/Ann Lee/2.wav",
      "/speech/Ann Lee/my call.wav",
      "/speech/a/1.wav",
      "/speech/b/1.wav",
    ]);
  });

  it("takes two spellings of a path for one file", () => {
    const { files } = parseTrialList("0 /speech/x/../a.wav b.wav\n0 a.wav ./b.wav", "/speech");
    expect(files).toEqual(["/speech/a.wav", "/speech/b.wav"]);
    expect(() => parseTrialList("1 /speech/./a.wav a.wav", "/speech")).toThrow("a.wav is both enrolled and tested");
  });

  it("from a pipe names files relative to the working folder", async () => {
    const pipe = join(folder, "pipe");
    await promisify(execFile)("mkfifo", [pipe]);
    const [{ files }] = await Promise.all([readTrialSet(pipe), writeFile(pipe, "1 a/1.wav a/2.wav\n")]);
    expect(files).toEqual([resolve("a/1.wav"), resolve("a/2.wav")]);
  });

  it("finds speakers by folder, or by the labels if there are no folders", () => {
    const { speakers } = parseTrialList("1 x.wav y.wav\n0 x.wav z.wav\n1 z.wav w.wav", "/speech");
    const [x, y, z, w] = speakers;
    expect(x).toBe(y);
    expect(z).toBe(w);
    expect(x).not.toBe(z);
    const folders = parseTrialList("0 a/1/x.wav b/1/y.wav\n0 a/2/x.wav b/2/y.wav", "/speech").speakers;
    expect(folders[0]).toBe(folders[2]);
    expect(folders[0]).not.toBe(folders[1]);
  });

  it("does not take a folder that different people share for a speaker", () => {
    const list = "1 x/ada/1.wav x/ada/2.wav\n0 x/ada/1.wav x/bob/1.wav\n0 x/ada/1.wav x/bob/2.wav";
    const [ada, again, bob, later] = parseTrialList(list, "/speech").speakers;
    expect(ada).toBe(again);
    expect(bob).toBe(later);
    expect(ada).not.toBe(bob);
    const flat = parseTrialList("1 x/y/1.wav x/y/2.wav\n0 x/y/1.wav x/y/3.wav\n0 x/y/1.wav x/y/4.wav", "/speech");
    expect(new Set(flat.speakers).size).toBe(3);
  });

  it.each([
    ["1 a.wav", /line 1: .*2 words/],
    ["# c\nmaybe a.wav b.wav", /line 2: label must be one of .*, got "maybe"/],
    ["constructor a.wav b.wav", /line 1: label must be one of .*, got "constructor"/],
    ["__proto__ a.wav b.wav", /line 1: label must be one of .*, got "__proto__"/],
    ["1 my call.wav b.wav", /line 1: .*4 words.* tabs/],
    ["1 a.wav,b.wav ./b.wav", /line 1: \.\/b\.wav is both enrolled and tested/],
    ["1 a.wav,,b.wav c.wav", /name of an enrollment file is empty/],
    [`1 ${Array.from({ length: 257 }, (_, i) => `${i}.wav`)} x.wav`, /line 1: at most 256 recordings .* got 257/],
    ["", /no trial/],
  ])("refuses %j with line and reason", (text, message) => {
    expect(() => parseTrialList(text, "/speech")).toThrow(message);
  });
});

describe("a list that repeats itself", () => {
  it("says how often, once", () => {
    const set = parseTrialList("1 a,b c\n1 a,b c\n0 a,b d\n1 a,b c\n0 a,b d\n1 a d\n", "/s");
    expect(set.note).toBe("3 of 6 lines repeat a trial, which then counts more than once, such as /s/a,/s/b /s/c");
    expect(set.trials).toHaveLength(6);
    expect(parseTrialList("1 a c\n0 a d\n1 c a\n", "/s").note).toBeUndefined();
  });

  it("is refused if it gives a trial both labels", () => {
    expect(() => parseTrialList("1 a c\n0 a d\n0 a c\n", "/s")).toThrow(
      "a trial has both labels, for the same speaker and for different ones: /s/a /s/c",
    );
  });
});

describe("a list in a file", () => {
  const given = async (bytes: Uint8Array) => {
    await writeFile(join(folder, "list.txt"), bytes);
    return readTrialSet(join(folder, "list.txt"));
  };

  it("may begin with a byte order mark and have the line ends of Windows", async () => {
    const set = await given(Buffer.from("\ufeff1\ta b.wav\tä.wav\r\n0\ta b.wav\tc.wav\r\n"));
    expect(set.files.map((file) => file.slice(folder.length + 1))).toEqual(["a b.wav", "ä.wav", "c.wav"]);
  });

  it("is refused in another encoding, and if it is not text", async () => {
    await expect(given(Buffer.from("\ufeff1 a.wav b.wav", "utf16le"))).rejects.toThrow(
      "list.txt: the list is not in UTF-8",
    );
    await expect(given(Buffer.from("1 \xe4.wav b.wav", "latin1"))).rejects.toThrow(
      "list.txt: the list is not in UTF-8",
    );
    await expect(given(Uint8Array.of(82, 73, 70, 70, 0, 1))).rejects.toThrow("list.txt: not a text list");
  });
});

describe("a long list", () => {
  const lines = Array.from({ length: 40 }, (_, test) =>
    Array.from({ length: 10 }, (_, model) => `${test % 10 === model ? 1 : 0} m${model}.wav t${test}.wav`),
  ).flat();

  it("is sampled, with all trials of some recordings for lists", () => {
    const all = parseTrialList(lines.join("\n"), "/speech");
    const set = parseTrialList(lines.join("\n"), "/speech", 100);
    expect(set.sampled!.from).toEqual({ same: 40, different: 360 });
    expect(set.trials.filter(({ same }) => same)).toHaveLength(40);
    expect(set.trials.filter(({ same }) => !same)).toHaveLength(100);
    expect(set.speakers).toEqual(all.speakers);
    expect(set.sampled!.callers).toHaveLength(100);
    expect(new Set(set.sampled!.callers.map(({ test }) => test)).size).toBe(10);
  });
});

describe("a sample", () => {
  it("takes each number equally often, none twice, and all if there are no more", () => {
    const random = seededRandom(7);
    const taken = new Array<number>(20).fill(0);
    const draws = 4000;
    for (let i = 0; i < draws; i++) {
      const sample = [...sampleOf(20, 5, random)];
      expect(new Set(sample).size).toBe(5);
      expect(sample).toEqual([...sample].sort((a, b) => a - b));
      for (const number of sample) taken[number]! += 1;
    }
    // Five standard deviations of a binomial count.
    const expected = draws / 4;
    for (const count of taken) expect(Math.abs(count - expected)).toBeLessThan(5 * Math.sqrt(expected * 0.75));
    expect([...sampleOf(3, 5, random)]).toEqual([0, 1, 2]);
    const many = 4e8 * 1e3;
    expect(Math.max(...sampleOf(many, 1000, random))).toBeGreaterThan(many * 0.98);
  });
});

describe("a folder", () => {
  it("names a folder that cannot be read, such as one whose name is not UTF-8", async () => {
    await touch("ann/1.wav", "ann/2.wav", "bob/1.wav", "bob/2.wav");
    await mkdir(Buffer.concat([Buffer.from(`${folder}/sp`), Buffer.of(0xe9)]));
    await expect(readTrialSet(folder)).rejects.toMatchObject({ code: "ENOENT", path: `${folder}/sp\ufffd` });
  });

  it("enrolls from one session and tests the others", async () => {
    await touch("a/1/1.wav", "a/1/2.wav", "a/1/3.wav", "a/1/4.wav", "a/2/1.wav", "b/1/1.wav", "b/1/note.txt");
    const set = await readTrialSet(folder);
    expect(set.files).toHaveLength(6);
    expect(set.models.map((model) => model.length)).toEqual([3, 1, 1]);
    // a/1 → a/2 (same), b/1; a/2 → a/1 ×4 (same), b/1; b/1 → a/1 ×4, a/2
    expect(set.trials.filter((trial) => trial.same)).toHaveLength(5);
    expect(set.trials.filter((trial) => !trial.same)).toHaveLength(7);
  });

  it("takes every format that can be decoded, but no hidden files and no folders with such names", async () => {
    const named = [
      "wav",
      "WAV",
      "flac",
      "mp3",
      "opus",
      "ogg",
      "oga",
      "m4a",
      "mp4",
      "aac",
      "aif",
      "aiff",
      "au",
      "webm",
      "mka",
    ];
    const taken = [...named, "amr", "3gp", "caf"].map((ending, i) => `a/1/${i}.${ending}`);
    await touch(...taken, "a/1/._0.wav", "a/1/notes.doc", "a/2/1.wav", "b/1/1.wav", "b/1.wav/1.wav");
    const { files } = await readTrialSet(folder);
    expect(files.map((file) => file.slice(folder.length + 1)).sort()).toEqual(
      [...taken, "a/2/1.wav", "b/1/1.wav", "b/1.wav/1.wav"].sort(),
    );
  });

  it("halves the recordings if no speaker has two sessions", async () => {
    await touch("a/1/1.wav", "a/1/2.wav", "b/1/1.wav", "b/1/2.wav");
    const set = await readTrialSet(folder);
    expect(set.trials.filter((trial) => trial.same)).toHaveLength(4);
    for (const trial of set.trials) expect(set.models[trial.model]).not.toContain(trial.test);
  });

  it("with too many trials gives a random sample of them, always the same, and says how many there are", async () => {
    for (let speaker = 10; speaker < 40; speaker++)
      await touch(...[1, 2, 3, 4].map((i) => `s${speaker}/${1 + (i % 2)}/${i}.wav`));
    const all = await readTrialSet(folder);
    expect(all.sampled).toBeUndefined();
    const known = new Set(all.trials.map((trial) => JSON.stringify(trial)));
    const set = await readTrialSet(folder, 500);
    expect(set).toEqual(await readTrialSet(folder, 500));
    expect({ ...all, trials: [] }).toEqual({ ...set, trials: [], sampled: undefined });
    // 60 sessions of two recordings: the other session of the speaker, and all of 29 others.
    expect(set.sampled!.from).toEqual({ same: 60 * 2, different: 60 * 29 * 4 });
    expect(set.trials.filter(({ same }) => same)).toHaveLength(120);
    expect(set.trials.filter(({ same }) => !same)).toHaveLength(500);
    expect(new Set(set.trials.map((trial) => JSON.stringify(trial))).size).toBe(620);
    for (const trial of [...set.trials, ...set.sampled!.callers]) expect(known).toContain(JSON.stringify(trial));
    // For lists: every recording with all that enrolls its speaker, and with each other speaker once.
    expect(set.sampled!.callers).toHaveLength(120 * (1 + 29));
    const first = set.sampled!.callers.filter(({ test, same }) => test === 0 && !same);
    expect(new Set(first.map(({ model }) => set.speakers[set.models[model]![0]!])).size).toBe(29);
    // Of the same speaker too, if those are too many.
    const few = await readTrialSet(folder, 50);
    expect(few.trials.filter(({ same }) => same)).toHaveLength(50);
  });

  it("names recordings that it does not use, because they lie elsewhere", async () => {
    await touch("a/1/1.wav", "a/2/x\ny.wav", "b/1/1.wav", ".trash/c/1.wav", "a/1/.copy.wav");
    expect((await readTrialSet(folder)).note).toBeUndefined();
    expect((await readTrialSet(folder)).files).toHaveLength(3);
    await touch("loose.wav", "b/1/left/1.wav");
    await symlink("..", join(folder, "b/1/left/loop"));
    expect((await readTrialSet(folder)).note).toBe(
      `not used, because not named speaker/session/file or speaker/file: 2 recordings, such as ${join(folder, "b/1/left/1.wav")}`,
    );
  });

  it("follows links to folders", async () => {
    await touch("far/ada/1/1.wav", "far/ada/2/1.wav", "here/bob/1/1.wav");
    await symlink(join(folder, "far/ada"), join(folder, "here/ada"));
    await symlink(join(folder, "nowhere"), join(folder, "here/broken"));
    const set = await readTrialSet(join(folder, "here"));
    expect(new Set(set.speakers).size).toBe(2);
    expect(set.files).toHaveLength(3);
  });

  it("says what is missing", async () => {
    await expect(readTrialSet(join(folder, "nowhere"))).rejects.toThrow(/no such folder/);
    await expect(readTrialSet(folder)).rejects.toThrow(/speaker\/session\/file/);
    await touch("a/1/1.wav", "a/2/1.wav");
    await expect(readTrialSet(folder)).rejects.toThrow(/only one speaker/);
  });
});

describe("the cache of embeddings", () => {
  const measures = {
    rateHz: 8000,
    grossSeconds: 4,
    netSpeechSeconds: 3,
    speechLevelDb: -26,
    snrDb: 20,
    saturatedPerMinute: 0,
    saturationRatio: 0,
    bandwidthHz: 3400,
  };

  it("returns the same bits, and survives a truncated line", async () => {
    const path = join(folder, "deep", "voices.jsonl");
    const cache = await VoiceCache.open(path);
    const embedding = Float32Array.from([0.1, -0.2, 1 / 3]);
    await cache.put("one", { measures, embedding });
    await cache.put("silent", { measures, embedding: null });
    await writeFile(path, '{"key":"three","measures":{', { flag: "a" });

    const again = await VoiceCache.open(path);
    expect(again.get("one")!.embedding).toEqual(embedding);
    expect(again.get("silent")!.embedding).toBeNull();
    expect(again.get("three")).toBeUndefined();
    await again.put("four", { measures, embedding });
    expect((await VoiceCache.open(path)).get("four")!.embedding).toEqual(embedding);
  });

  it("can be larger than the longest text of Node", async () => {
    const path = join(folder, "large.jsonl");
    const writer = await VoiceCache.open(path);
    await writer.put("first", { measures, embedding: null });
    // Lines of nothing, which take no space on the disk.
    const file = await open(path, "r+");
    for (let at = 2 ** 24; at <= 2 ** 29; at += 2 ** 24) await file.write("\n", at);
    await file.close();
    await writer.put("last", { measures, embedding: null });
    const cache = await VoiceCache.open(path);
    expect(["first", "last"].map((key) => cache.get(key)?.measures)).toEqual([measures, measures]);
  }, 300_000);

  it("does not write into a file that is no cache", async () => {
    const path = join(folder, "call.wav");
    await writeFile(path, "RIFF1234WAVE");
    await expect(VoiceCache.open(path)).rejects.toThrow(`${path}: this file exists and is not a cache of embeddings`);
    expect(await readFile(path, "utf8")).toBe("RIFF1234WAVE");
    const cut = join(folder, "cut.jsonl");
    await writeFile(cut, '{"ke');
    await VoiceCache.open(cut);
    const blank = join(folder, "blank.txt");
    await writeFile(blank, "a list\n\nof things\n");
    await expect(VoiceCache.open(blank)).rejects.toThrow("is not a cache of embeddings");
  });
});
