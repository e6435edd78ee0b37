import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readRecording } from "../../src/audio/index.js";
import { fitCalibration } from "../../src/evaluate/calibrate.js";
import { evaluate } from "../../src/evaluate/evaluate.js";
import { readTrialSet } from "../../src/evaluate/trials.js";
import { VoiceCache } from "../../src/evaluate/voice-cache.js";
import { fixtureEngine, rateHz, silence, take } from "../processor/fixture-engine.js";
import { wav } from "../voice.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-evaluate-"));
  for (let speaker = 1; speaker <= 5; speaker++) {
    for (const session of [1, 2]) {
      const place = join(folder, "set", `speaker${speaker}`, `session${session}`);
      await mkdir(place, { recursive: true });
      for (let i = 0; i < 3; i++) {
        const seconds = 2 + speaker / 10 + session / 5 + i / 2;
        await writeFile(join(place, `${i}.wav`), wav(take(100 * speaker, seconds), rateHz));
      }
    }
  }
  await writeFile(join(folder, "set", "speaker1", "session2", "silent.wav"), wav(silence(2), rateHz));
  await writeFile(join(folder, "set", "speaker1", "session2", "text.wav"), "no audio");
});
afterAll(() => rm(folder, { recursive: true }));

const parts = (cache: VoiceCache) => ({
  engine: fixtureEngine(),
  decode: (bytes: Uint8Array) => readRecording(bytes),
  cache,
});

describe("an evaluation", () => {
  it("scores a folder, and reports what could not be scored", async () => {
    const set = await readTrialSet(join(folder, "set"));
    const evaluation = await evaluate(set, parts(VoiceCache.inMemory()), { resamples: 50 });
    const { summary } = evaluation;
    expect(summary!.speakers).toBe(5);
    // The voices of the fixture are told apart without error.
    expect(summary!.equalErrorRate.value).toBe(0);
    expect(summary!.minimumCllr.value).toBe(0);
    expect(summary!.sameTrials).toBe(30);
    expect(summary!.differentTrials).toBe(10 * 24);
    expect(evaluation.unusable.map(({ reason }) => reason)).toEqual([
      expect.stringMatching(/too little speech/),
      expect.stringMatching(/not a WAV/),
    ]);
    expect(evaluation.unscoredTrials).toBe(2 * 9);
    expect(evaluation.byNetSpeech.reduce((sum, { trials }) => sum + trials, 0)).toBe(270);
    expect(summary!.promisedPoints[0]!.falseMatchRate).toBe(0);
  });

  it("says in words why a recording cannot be read", async () => {
    const list = join(folder, "list.txt");
    const [ada, folderOfAda] = ["set/speaker1/session1/0.wav", "set/speaker1/session1"];
    await promisify(execFile)("mkfifo", [join(folder, "pipe.wav")]);
    await writeFile(list, `1 ${ada} ${folderOfAda}\n1 ${ada} set/missing.wav\n1 ${ada} pipe.wav\n`);
    const evaluation = await evaluate(await readTrialSet(list), parts(VoiceCache.inMemory()), { resamples: 0 });
    expect(evaluation.unusable.map(({ reason }) => reason).sort()).toEqual([
      "no such file",
      "this is a folder, not a file",
      "this is not a regular file",
    ]);
  });

  it("of a random sample says how many trials there are, and compares with lists as one of all trials", async () => {
    const cache = VoiceCache.inMemory();
    const all = await evaluate(await readTrialSet(join(folder, "set")), parts(cache), { resamples: 0 });
    const few = await evaluate(await readTrialSet(join(folder, "set"), 60), parts(cache), { resamples: 0 });
    expect(all.sampledFrom).toBeNull();
    expect(few.sampledFrom).toEqual({ same: 32, different: 256 });
    expect(few.trials.length + few.unscoredTrials).toBe(32 + 60);
    expect(few.openSet.map(({ size }) => size)).toEqual(all.openSet.map(({ size }) => size));
    expect(few.summary!.speakers).toBe(5);
  });

  it("names the first recording that was enrolled, and recordings that are copies of others", async () => {
    const copies = join(folder, "copies");
    const put = async (path: string, bytes: Uint8Array | string) => {
      await mkdir(join(copies, path, ".."), { recursive: true });
      await writeFile(join(copies, path), bytes);
    };
    const ada = wav(take(100, 3), rateHz);
    await put("ada/1/0.wav", "no audio");
    await put("ada/1/1.wav", ada);
    await put("ada/1/2.wav", wav(take(100, 3.2), rateHz));
    await put("ada/2/1.wav", ada);
    await put("bob/1/1.wav", wav(take(200, 3), rateHz));
    await put("bob/2/1.wav", wav(take(200, 3.4), rateHz));
    await put("carl/1/1.wav", wav(take(300, 3), rateHz));
    // The same audio in a file with other bytes.
    await put("carl/2/1.wav", Buffer.concat([ada, Buffer.from("note\0\0\0\0")]));
    const evaluation = await evaluate(await readTrialSet(copies), parts(VoiceCache.inMemory()), { resamples: 0 });
    const relative = (path: string) => path.slice(copies.length + 1);
    expect(evaluation.copies.map(({ file, of }) => [relative(file), relative(of)])).toEqual([
      ["ada/2/1.wav", "ada/1/1.wav"],
      ["carl/2/1.wav", "ada/1/1.wav"],
    ]);
    expect(() => fitCalibration(evaluation.trials, evaluation.copies)).toThrow(
      /ada.2.1\.wav and \S+ada.1.1\.wav are the same recording, and 1 more are copies/,
    );
    const enrolled = new Set(evaluation.trials.map(({ names }) => relative(names!.enrolled)));
    expect(enrolled).not.toContain("ada/1/0.wav");
    expect(enrolled).toContain("ada/1/1.wav");
  });

  it("continues after an interruption from its cache", async () => {
    const set = await readTrialSet(join(folder, "set"));
    const path = join(folder, "cache.jsonl");
    const interrupted = new AbortController();
    const first = parts(await VoiceCache.open(path));
    await expect(
      evaluate(set, first, {
        concurrency: 1,
        signal: interrupted.signal,
        onProgress: ({ done }) => {
          if (done === 10) interrupted.abort(new Error("interrupted"));
        },
      }),
    ).rejects.toThrow("interrupted");
    expect(first.engine.behavior.heardSeconds.length).toBeLessThanOrEqual(11);

    const second = parts(await VoiceCache.open(path));
    const evaluation = await evaluate(set, second, { resamples: 0 });
    expect(second.engine.behavior.heardSeconds.length + first.engine.behavior.heardSeconds.length).toBe(31);
    expect(evaluation.summary!.equalErrorRate.value).toBe(0);

    const third = parts(await VoiceCache.open(path));
    await evaluate(set, third, { resamples: 0 });
    expect(third.engine.behavior.heardSeconds).toEqual([]);
    third.engine.behavior.revision = "c".repeat(64);
    await evaluate(set, third, { resamples: 0 });
    expect(third.engine.behavior.heardSeconds.length, "another model must analyze again").toBe(31);
  });

  it("applies a condition only to the tested side", async () => {
    const set = await readTrialSet(join(folder, "set"));
    const changed: string[] = [];
    const condition = {
      name: "halved",
      apply(pcm: { samples: Float32Array; rateHz: number }, file: string) {
        changed.push(file);
        return { ...pcm, samples: pcm.samples.slice(0, pcm.samples.length / 2) };
      },
    };
    const evaluation = await evaluate(set, parts(VoiceCache.inMemory()), { condition, resamples: 0 });
    expect(changed).toHaveLength(31);
    expect(Math.max(...evaluation.trials.map(({ netSpeechSeconds }) => netSpeechSeconds))).toBeLessThan(2.5);
    expect(evaluation.condition).toBe("halved");
  });
});
