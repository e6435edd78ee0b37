/** The built command in separate processes, with the shipped model and an embedded store, as a user runs it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { withEmptyDatabase } from "../store/empty-database.js";
import { speak, wav } from "../voice.js";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
let folder: string;
let environment: NodeJS.ProcessEnv;

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of any command
  readonly json: any;
}

function execute(command: string, args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(command, args, { cwd: folder, env: environment, maxBuffer: 1 << 26 }, (error, out, err) => {
      const code = error ? Number((error as { code?: number }).code ?? 1) : 0;
      resolve({
        code,
        out,
        err,
        get json() {
          return JSON.parse(out);
        },
      });
    });
  });
}
/** Commands that open a database: to optimize its code takes them longer than to use it. */
const onStore = ["enroll", "verify", "erase"];
const vivavoce = (...args: string[]) =>
  execute(process.execPath, [...(onStore.includes(args[0]!) ? ["--liftoff-only"] : []), MAIN, ...args]);

// Each command is a process that loads the model, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-local-"));
  environment = {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_DATA_HOME: join(folder, "data"),
    XDG_CACHE_HOME: join(folder, "cache"),
  };
  await mkdir(join(folder, "node_modules", ".bin"), { recursive: true });
  await symlink(MAIN, join(folder, "node_modules", ".bin", "vivavoce"));
  await withEmptyDatabase(join(folder, "data", "vivavoce", "store"));
  expect((await vivavoce("demo", "--wav", "voices")).code).toBe(0);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe("measuring a recording", () => {
  it("prints rate, channels, speech, noise, level, saturation and a verdict", async () => {
    const { out, code } = await vivavoce("measure", "voices/ada-1.wav");
    expect(code).toBe(0);
    for (const line of [
      /rate +8000 Hz/,
      /channels +1/,
      /gross +5\.00 s/,
      /net speech +[34]\.\d+ s/,
      /SNR +2\d\.\d dB/,
      /speech level +-2\d\.\d dBov/,
      /saturation +0 /,
      /good enough to enroll +yes/,
    ]) {
      expect(out).toMatch(line);
    }
  });

  it("synthesizes a recording if none is given, and prints JSON", async () => {
    const { json } = await vivavoce("measure", "--json");
    expect(json).toMatchObject({ rateHz: 16_000, channels: 1, verdict: { enroll: "AUDIO_OK", verify: "AUDIO_OK" } });
  });

  it("judges for enrollment only the speech that enroll uses, as a box does", async () => {
    const [one, other] = [1, 9].map((speaker) => speak({ speaker, seconds: 20, rateHz: 16_000 }));
    await writeFile(join(folder, "two.wav"), wav(Float32Array.from([...one!, ...other!]), 16_000));
    const { json } = await vivavoce("measure", "two.wav", "--json");
    expect(json).toMatchObject({ speakers: 2, verdict: { enroll: "AUDIO_OK", verify: "MULTIPLE_SPEAKERS_DETECTED" } });
    expect(json.netSpeechSeconds).toBeGreaterThan(20);
  });
});

describe("voices on the local store", () => {
  it("are enrolled in one process and verified in another", async () => {
    const enrolled = await vivavoce(
      "enroll",
      "ada",
      "voices/ada-1.wav",
      "voices/ada-2.wav",
      "voices/ada-3.wav",
      "--json",
    );
    expect(enrolled.json.training).toMatchObject({ status: "TRAINED" });
    expect(await vivavoce("verify", "ada", "voices/ada-4.wav", "--json")).toMatchObject({
      code: 0,
      json: { decision: "AUTHENTIC" },
    });
    expect(await vivavoce("verify", "ada", "voices/bob-4.wav", "--json")).toMatchObject({
      code: 1,
      json: { decision: "NO_MATCH" },
    });
    // No unencrypted voice on disk.
    const files = await readdir(join(folder, "data"), { recursive: true, withFileTypes: true });
    const wave = await readFile(join(folder, "voices", "ada-1.wav"));
    for (const file of files.filter((one) => one.isFile())) {
      const bytes = await readFile(join(file.parentPath ?? file.path, file.name));
      expect(bytes.indexOf(wave.subarray(20_000, 20_064)), file.name).toBe(-1);
    }
  });

  it("are scored by their own model after the model changed, and a migration reports how they will move", async () => {
    environment.VIVAVOCE_MODEL = "vivavoce-2-accurate";
    try {
      expect(await vivavoce("verify", "ada", "voices/ada-4.wav", "--json")).toMatchObject({
        code: 0,
        json: { decision: "AUTHENTIC" },
      });
      // The recordings were deleted with their sessions.
      expect(await vivavoce("model", "migrate", "--dry-run", "--json")).toMatchObject({
        code: 0,
        json: { dryRun: true, moved: 0, already: 0, waitingForCalls: 1, enrollmentNeeded: 0, failed: 0, profiles: [] },
      });
      const { out } = await vivavoce("model", "migrate");
      expect(out).toMatch(/moved +0\n/);
      expect(out).toMatch(/scored by their own model until later calls move them +1\n/);
    } finally {
      delete environment.VIVAVOCE_MODEL;
    }
  });

  it("keep their recordings for the configured time, so that a migration can move them", async () => {
    environment.VIVAVOCE_MEDIA_RETENTION_SECONDS = "3600";
    try {
      const { json } = await vivavoce("enroll", "eve", ...[1, 2, 3].map((take) => `voices/bob-${take}.wav`), "--json");
      expect(json.training).toMatchObject({ status: "TRAINED" });
      // A call of another command ends in the meantime.
      await vivavoce("verify", "eve", "voices/bob-4.wav");
      environment.VIVAVOCE_MODEL = "vivavoce-2-accurate";
      expect(await vivavoce("model", "migrate", "--json")).toMatchObject({
        code: 0,
        json: { moved: 1, waitingForCalls: 1, enrollmentNeeded: 0, failed: 0 },
      });
      expect(await vivavoce("verify", "eve", "voices/bob-4.wav", "--json")).toMatchObject({
        code: 0,
        json: { decision: "AUTHENTIC" },
      });
      expect(await vivavoce("erase", "eve")).toMatchObject({ code: 0 });
    } finally {
      delete environment.VIVAVOCE_MODEL;
      delete environment.VIVAVOCE_MEDIA_RETENTION_SECONDS;
    }
  });

  it("give the expected results in the demonstration", async () => {
    const { json } = await vivavoce("demo", "--json");
    const wrong = json.checks.filter((check: { asExpected: boolean }) => !check.asExpected);
    expect(wrong).toEqual([]);
  });
});

describe("an evaluation from the command line", () => {
  it("reads a folder, writes a report, and gives the same result from its cache", async () => {
    for (const speaker of [3, 8, 21, 34]) {
      for (const session of [1, 2]) {
        const place = join(folder, "set", `s${speaker}`, `d${session}`);
        await mkdir(place, { recursive: true });
        for (const i of [1, 2]) {
          const samples = speak({ speaker, seconds: 4, rateHz: 8000, seed: session * 10 + i });
          await writeFile(join(place, `${i}.wav`), wav(samples, 8000));
        }
      }
    }
    const first = await vivavoce("evaluate", "set", "--json", "--report", "report.html", "--resamples", "100");
    expect(first.code).toBe(0);
    const { summary, unscoredTrials } = first.json;
    expect(summary.speakers).toBe(4);
    // Two synthesized takes may disagree too much to enroll: the trials of such a model are counted, not scored.
    expect(summary.sameTrials + summary.differentTrials + unscoredTrials).toBe(112);
    expect(summary.sameTrials).toBeGreaterThanOrEqual(8);
    expect(first.json.summary.equalErrorRate.value).toBeLessThan(0.2);
    expect(await readFile(join(folder, "report.html"), "utf8")).toContain("<svg");
    // The file for the operator view: the same figures, and nothing of a recording.
    const kept = join(folder, "data", "vivavoce", "last-evaluation.json");
    const last = JSON.parse(await readFile(kept, "utf8"));
    expect(last).toMatchObject({ name: "set", equalErrorRate: summary.equalErrorRate, speakers: 4 });
    expect(last.curve.length).toBeGreaterThan(2);
    expect(JSON.stringify(last)).not.toContain(".wav");
    await rm(kept);
    // A model can be chosen by its name, as for a box.
    const accurate = ["--model", "vivavoce-2-accurate", "--resamples", "0", "--no-keep", "--json"];
    expect((await vivavoce("evaluate", "set", ...accurate)).json.summary.speakers).toBe(4);
    const again = await vivavoce("evaluate", "set", "--resamples", "100", "--no-keep");
    await expect(readFile(kept)).rejects.toThrow("ENOENT");
    const { value, interval } = first.json.summary.equalErrorRate;
    const percent = (x: number) => (100 * x).toFixed(2);
    expect(again.out.replaceAll(/ +/g, " ")).toContain(
      `EER ${percent(value)} % (${percent(interval.low)} to ${percent(interval.high)})`,
    );
  });
});

describe("a calibration from the command line", () => {
  it("reads a list from a pipe, and says which recordings it could not use", async () => {
    const files: { speaker: number; path: string }[] = [];
    for (const speaker of [3, 8, 21, 30, 34])
      for (const i of [1, 2, 3, 4]) {
        const path = join(folder, "five", `s${speaker}`, `${i}.wav`);
        await mkdir(join(folder, "five", `s${speaker}`), { recursive: true });
        await writeFile(path, wav(speak({ speaker, seconds: 3, rateHz: 8000, seed: 30 + i }), 8000));
        files.push({ speaker, path: `five/s${speaker}/${i}.wav` });
      }
    const lines = files.flatMap((one) =>
      files
        .filter((other) => other !== one)
        .map((other) => `${+(one.speaker === other.speaker)} ${one.path} ${other.path}`),
    );
    await writeFile(join(folder, "five.txt"), [...lines, "1 five/s3/1.wav five/gone.wav"].join("\n"));
    const command = `"${process.execPath}" "${MAIN}" calibrate <(cat five.txt) --out five.json`;
    const fit = await execute("bash", ["-c", `${command} --json`]);
    expect(fit).toMatchObject({ code: 0, err: "" });
    expect(fit.json).toMatchObject({
      speakers: 5,
      unscoredTrials: 1,
      unusable: [{ file: join(folder, "five/gone.wav"), reason: "no such file" }],
      attacks: { synthetic: { recordings: 20 } },
    });
    // Of synthesized voices it says that they look like attacks; of fewer than 20 recordings, that they are too few.
    const text = await vivavoce("calibrate", "five.txt", "--out", "five.json");
    expect(text.out).toContain("five/gone.wav: no such file");
    expect(text.out).toMatch(/most alike under two names +\S+five\/s\S+ and \S+ \(score 0\.\d+\)\n/);
    expect(text.out).toMatch(/% of the recordings look like an attack \(synthetic\) to the model.*--no-attacks/);
    await writeFile(join(folder, "few.txt"), lines.filter((line) => !line.includes("five/s34/4.wav")).join("\n"));
    const few = await vivavoce("calibrate", "few.txt", "--out", "five.json");
    expect(few.out).toMatch(/synthetic │ 19 .* unchanged .* too few recordings, at least 20 are needed/);
    expect(few.out).not.toContain("look like an attack");
    // Without sessions it says what it was fitted to; of too few speakers it reads no recording; then it says what it could not read.
    const halves = await vivavoce("calibrate", "five", "--no-attacks", "--out", "five.json");
    expect(halves.out).toMatch(/^no speaker has two sessions/);
    await writeFile(join(folder, "gone.txt"), "1 five/gone.wav five/s3/1.wav");
    expect(await vivavoce("calibrate", "gone.txt")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/error: a calibration needs at least 5 speakers, got 1\n$/),
    });
    await writeFile(join(folder, "gone.txt"), lines.join("\n").replaceAll("five/s34/", "gone/"));
    expect(await vivavoce("calibrate", "gone.txt")).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        /a calibration needs at least .*\nhint: recordings that could not be used: 4, such as \S+: no such file\n$/,
      ),
    });
  });
});

describe("a model, a calibration or a cache that cannot be used", () => {
  it("is named in the error", async () => {
    await writeFile(join(folder, "text.txt"), "neither");
    for (const name of ["ada", "bob"]) {
      await mkdir(join(folder, "pair", name), { recursive: true });
      for (const take of [1, 2])
        await copyFile(join(folder, "voices", `${name}-${take}.wav`), join(folder, "pair", name, `${take}.wav`));
    }
    const calibration = "text.txt: the calibration file cannot be used: it is not JSON\n";
    expect(await vivavoce("serve", "--store", "memory", "--calibration", "text.txt")).toMatchObject({
      code: 2,
      err: `error: calibration: ${calibration}`,
    });
    expect(await vivavoce("evaluate", "pair", "--calibration", "text.txt")).toMatchObject({
      code: 2,
      err: `error: ${calibration}`,
    });
    expect(await vivavoce("evaluate", "pair", "--model", "text.txt")).toMatchObject({
      code: 2,
      err: "error: text.txt: this is not a vivavoce model file\n",
    });
    expect(await vivavoce("evaluate", "pair", "--cache", "text.txt/cache")).toMatchObject({
      code: 2,
      err: "error: text.txt/cache: expected a folder here, found a file\nhint: --no-cache works without this file\n",
    });
    environment.VIVAVOCE_MODEL = "nowhere.vvm";
    const missing = await vivavoce("measure", "voices/ada-1.wav");
    delete environment.VIVAVOCE_MODEL;
    expect(missing).toMatchObject({ code: 2, err: "error: nowhere.vvm: no such file\n" });
  });

  it("also if the configuration file of the box names it, for every command that decides", async () => {
    const config = (settings: object) => writeFile(join(folder, "box.json"), JSON.stringify(settings));
    environment.VIVAVOCE_CONFIG = "box.json";
    try {
      await config({ calibration: "text.txt" });
      const calibration = { code: 2, err: "error: text.txt: the calibration file cannot be used: it is not JSON\n" };
      expect(await vivavoce("enroll", "ada", "voices/ada-1.wav")).toMatchObject(calibration);
      expect(await vivavoce("measure", "voices/ada-1.wav")).toMatchObject(calibration);
      expect(await vivavoce("evaluate", "pair")).toMatchObject(calibration);
      await config({ model: "text.txt" });
      const model = { code: 2, err: "error: text.txt: this is not a vivavoce model file\n" };
      expect(await vivavoce("evaluate", "pair")).toMatchObject(model);
      await config({ evaluation: "kept.json" });
      expect(await vivavoce("evaluate", "pair", "--resamples", "0")).toMatchObject({
        out: expect.stringMatching(/Model +[0-9a-f]{16}\nCalibration +[0-9a-f]{16}\n/),
        err: "for the operator view: kept.json\n",
      });
    } finally {
      delete environment.VIVAVOCE_CONFIG;
    }
  });
});

describe("a box", () => {
  let box: ChildProcess;
  let printed = "";

  async function start(...args: string[]): Promise<void> {
    printed = "";
    box = spawn(process.execPath, [MAIN, "serve", "--port", "0", "--store", "box", "--log-level", "error", ...args], {
      cwd: folder,
      env: environment,
    });
    box.stderr!.on("data", (chunk) => {
      printed += chunk;
    });
    await new Promise<void>((resolve, reject) => {
      box.stdout!.on("data", (chunk) => {
        printed += chunk;
        // The greeting comes in one piece; its first line ends with the address of the API description.
        if (printed.includes("/openapi.json)\n")) resolve();
      });
      box.once("exit", (code) => reject(new Error(`ended with ${code}: ${printed}`)));
    });
  }
  const stop = () =>
    new Promise<number | null>((resolve) => {
      box.removeAllListeners("exit");
      box.once("exit", resolve);
      box.kill("SIGTERM");
    });

  it("writes lines that enroll and verify a voice to a file that only its user can read, at its first start", async () => {
    await start();
    expect(printed).not.toMatch(/client secret|password/);
    const file = join(folder, "box/first-start.txt");
    expect(printed).toContain(`in ${file}.`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const secrets = readFileSync(file, "utf8");
    expect(secrets).toMatch(
      /^An owner was created.* http:\/\/127\.0\.0\.1:\d+\/operator\/.*shown only once\.\n {2}user name +owner\n {2}password +\S{24}$/m,
    );
    const lines = /^npx vivavoce demo[\s\S]*$/m.exec(secrets)![0];
    const { out } = await execute("bash", ["-c", lines]);
    expect(out).toContain("TRAIN_STATUS_TRAINED");
    const decisions = [...out.matchAll(/"decision":"(\w+)"/g)].map(([, decision]) => decision);
    expect(decisions).toEqual(["DECISION_AUTHENTIC", "DECISION_NO_MATCH"]);

    const taken = await vivavoce("verify", "ada", "voices/ada-4.wav", "--store", "box");
    expect(taken).toMatchObject({ code: 4, err: expect.stringMatching(/in use.*\n.*--url/) });
    expect(await stop()).toBe(0);
    await start();
    expect(printed).not.toMatch(/client secret|password/);
    expect(printed).toContain("Operator view: ");
    expect(await stop()).toBe(0);
  });

  it("ends if a telephone line's port is taken, and names that port", async () => {
    const holder = createServer().listen(0, "127.0.0.1");
    await once(holder, "listening");
    const { port } = holder.address() as AddressInfo;
    const line = { name: "one", dialect: "audiosocket", scope: "default", port };
    const taken = await vivavoce(
      ...["serve", "--no-auth", "--port", "0", "--store", "memory", "--log-level", "error"],
      ...["--set", `telephony=${JSON.stringify([line])}`],
    );
    holder.close();
    expect(taken.code).toBe(4);
    const used = `port ${port} on 127\\.0\\.0\\.1 is already in use`;
    expect(taken.err).toMatch(new RegExp(`^error: ${used}\nhint: .*that line in telephony\n$`));
  });

  it("warns if tokens are off, and refuses that on a public address", async () => {
    await start("--no-auth");
    expect(printed).toMatch(/WARNING: tokens are off/);
    await stop();
    const refused = await vivavoce("serve", "--no-auth", "--host", "0.0.0.0");
    expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(/only on a loopback address/) });
    const nowhere = await vivavoce("serve", "--host", "nowhere.invalid", "--store", "memory");
    expect(nowhere).toMatchObject({ code: 4, err: "error: nowhere.invalid is not an address of this machine\n" });
  });
});
