/** The Python client, installed from its folder as a user installs it, against a real box. */
import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { contractWords, wordsModule } from "../../scripts/contract-words.mjs";
import { pythonContract } from "../../scripts/python-contract.mjs";
import { METHODS } from "../../src/contract/operations.js";
import { createResampling, percentileInterval, seededRandom } from "../../src/evaluate/bootstrap.js";
import { cllr, equalErrorRate, fnmrAt, ratePoints, sortTrials } from "../../src/evaluate/metrics.js";
import type { ScoredTrial } from "../../src/evaluate/summary.js";
import { scoresCsv } from "../../src/evaluate/verdicts.js";
import { httpBindings } from "../../src/server/http/bindings.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CLIENT = join(ROOT, "clients/python");
// pip, a box and some thirty calls of it, on a machine that may be busy.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });
const execute = promisify(execFile);

/** A Python that can install the folder without the network: numpy and the build tools must be there. `.ci/run` installs them. */
const python = ["python3", "/usr/bin/python3"].find((command) => {
  try {
    execFileSync(command, ["-c", "import setuptools, sys, numpy, pip; assert sys.version_info >= (3, 10)"], {
      stdio: "ignore",
    });
    return true;
  } catch {
    return false;
  }
});

it("contract.py agrees with proto/ (npm run proto)", () => {
  const words = contractWords(join(ROOT, "src/contract/gen"));
  expect(readFileSync(join(ROOT, "src/contract/gen/words.ts"), "utf8")).toBe(wordsModule(words));
  const made = pythonContract(httpBindings(METHODS), words);
  expect(readFileSync(join(CLIENT, "src/vivavoce/contract.py"), "utf8")).toBe(made);
});

it("the client has the version and the license of the library", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(readFileSync(join(CLIENT, "pyproject.toml"), "utf8")).toContain(`\nversion = "${version}"\n`);
  expect(readFileSync(join(CLIENT, "LICENSE"), "utf8")).toBe(readFileSync(join(ROOT, "LICENSE"), "utf8"));
});

describe.skipIf(python === undefined)(
  "the client, installed (skipped where no Python 3.10 with numpy, pip and setuptools is found)",
  () => {
    let folder: string;
    const run = (script: string, ...args: string[]) =>
      execute(python!, [join(CLIENT, "tests", script), ...args], {
        env: { ...process.env, PYTHONPATH: join(folder, "installed"), PYTHONDONTWRITEBYTECODE: "1" },
      });

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "vivavoce-python-"));
      // pip builds in the folder that it is given.
      cpSync(CLIENT, join(folder, "client"), { recursive: true });
      const offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"];
      const target = ["--target", join(folder, "installed"), join(folder, "client")];
      await execute(python!, ["-m", "pip", "install", ...offline, ...target]);
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    it("enrolls, verifies, identifies, watches and analyzes on a box, from files and arrays; renews its token; reports errors", async () => {
      const main = join(ROOT, "dist/cli/main.js");
      const voices = join(folder, "voices");
      await execute(process.execPath, [main, "demo", "--wav", voices]);
      const box = spawn(
        process.execPath,
        [main, "serve", "--store", "memory", "--port", "0", "--json", "--log-level", "error"],
        { stdio: ["ignore", "pipe", "inherit"], env: { PATH: process.env.PATH, HOME: folder } },
      );
      try {
        const [line] = (await once(box.stdout, "data")) as [Buffer];
        const { url, application } = JSON.parse(String(line));
        for (const script of ["drive_box.py", "erased_meanwhile.py"]) {
          const { stdout } = await run(script, url, application.clientId, application.clientSecret, voices);
          expect(stdout).toBe("ok\n");
        }
      } finally {
        box.kill();
        await once(box, "exit");
      }
    });

    it("asks again for a token when the issuer says so, and reports BUSY with the time if that is too long", async () => {
      let [times, after] = [0, "0"];
      const server = createServer((request, response) => {
        const { pathname, searchParams } = new URL(request.url!, "http://box");
        const answer = (status: number, body: object, headers = {}) =>
          response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
        request.resume();
        if (pathname === "/refuse") {
          [times, after] = [Number(searchParams.get("times")), searchParams.get("after")!];
          answer(200, {});
        } else if (pathname !== "/oauth2/token") answer(200, { status: { status_code: "OK" }, profiles: [] });
        else if (times-- > 0) {
          const error = { error: "temporarily_unavailable", error_description: "too many failed attempts" };
          answer(429, error, { "retry-after": after });
        } else answer(200, { access_token: "token", expires_in: 900 });
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      try {
        const { stdout } = await run("busy_issuer.py", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
        expect(stdout).toBe("ok\n");
      } finally {
        server.close();
      }
    });

    it("says what to do about wrong arguments and about servers that are not a box", async () => {
      expect((await run("wrong_use.py")).stdout).toBe("ok\n");
    });

    it("computes the same figures and intervals from the trials of an evaluation as the command", async () => {
      const random = seededRandom(7);
      const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      const trials = Array.from({ length: 3000 }, (_, i) => {
        const [enrolledSpeaker, testedSpeaker] = [Math.floor(random() * 12), Math.floor(random() * 12)];
        const same = enrolledSpeaker === testedSpeaker;
        return {
          same,
          // As it stands in the file, with ties.
          llr: Number(((same ? 3 : -3) + 2.5 * normal()).toFixed(1)),
          raw: 0.5,
          enrolledSpeaker,
          testedSpeaker,
          netSpeechSeconds: i % 8,
          snrDb: i % 3 === 0 ? null : 20,
          names: { enrolled: `a, "${enrolledSpeaker}".wav`, tested: `${i}.wav` },
        } as unknown as ScoredTrial;
      });
      writeFileSync(join(folder, "trials.csv"), [...scoresCsv(trials)].join(""));
      const found = JSON.parse((await run("print_figures.py", join(folder, "trials.csv"))).stdout);

      const sorted = sortTrials(
        trials.map(({ llr }) => llr),
        trials.map(({ same }) => same),
      );
      // Sums of 3,000 doubles, in another order.
      expect(found.equalErrorRate).toBeCloseTo(equalErrorRate(sorted), 12);
      expect(found.fnmrAt1).toBeCloseTo(fnmrAt(sorted, 0.01), 12);
      expect(found.cllr).toBeCloseTo(cllr(sorted), 12);
      const drawn = ratePoints(sorted).filter(
        ({ falseMatchRate: fmr, falseNonMatchRate: fnmr }) => fmr > 0 && fmr < 1 && fnmr > 0 && fnmr < 1,
      );
      expect(found.det[0]).toHaveLength(drawn.length);
      drawn.forEach(({ falseMatchRate, falseNonMatchRate }, i) => {
        expect(found.det[0][i]).toBeCloseTo(falseMatchRate, 12);
        expect(found.det[1][i]).toBeCloseTo(falseNonMatchRate, 12);
      });
      expect(found.refusals).toEqual([
        "fmr must be a rate from 0 to 1, such as 0.01 for 1 %, got 2",
        "fmr must be a rate from 0 to 1, such as 0.01 for 1 %, got nan",
        "confidence must be above 0 and below 1, such as 0.95 for 95 %, got 95",
        "resamples must be a whole number of at least 1, got 0",
        `trials of both kinds are needed, got ${trials.filter(({ same }) => same).length} of the same person and 0 of different persons`,
      ]);
      expect(found.longSpeech).toBe(trials.filter(({ netSpeechSeconds }) => netSpeechSeconds >= 4).length);

      const people = [...new Set([...trials.map((t) => t.enrolledSpeaker), ...trials.map((t) => t.testedSpeaker)])];
      const enrolled = trials.map((trial) => people.indexOf(trial.enrolledSpeaker));
      const tested = trials.map((trial) => people.indexOf(trial.testedSpeaker));
      const speakers = { enrolled, tested, count: people.length };
      const resample = createResampling(sorted, speakers, seededRandom(1));
      const weights = Array.from({ length: 200 }, () => resample().slice());
      const errors = percentileInterval(weights.map((weight) => equalErrorRate(sorted, weight)))!;
      expect(found.interval[0]).toBeCloseTo(errors.low, 12);
      expect(found.interval[1]).toBeCloseTo(errors.high, 12);
      const misses = percentileInterval(weights.map((weight) => fnmrAt(sorted, 0.01, weight)))!;
      expect(found.fnmrInterval[0]).toBeCloseTo(misses.low, 12);
      expect(found.fnmrInterval[1]).toBeCloseTo(misses.high, 12);
    });
  },
);
