import { constants } from "node:buffer";
import { parseHTML } from "linkedom";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/evaluate/bootstrap.js";
import type { Evaluation } from "../../src/evaluate/evaluate.js";
import { callersOf, openSet } from "../../src/evaluate/open-set.js";
import { reportHtml } from "../../src/evaluate/report.js";
import { NET_SPEECH_BANDS, type ScoredTrial, SNR_BANDS, summarize, summarizeBy } from "../../src/evaluate/summary.js";
import { tablesOf } from "../../src/evaluate/tables.js";
import { scoresCsv, worstPairs } from "../../src/evaluate/verdicts.js";
import { barriers, launch } from "../chromium.js";

function evaluationOf(trials: ScoredTrial[]): Evaluation {
  return {
    modelRevision: "0123456789abcdef0123",
    calibrationRevision: "fedcba9876543210fedc",
    note: null,
    condition: "noise <10 dB>",
    recordings: 40,
    trials,
    sampledFrom: { same: 1000, different: 123_456_789 },
    summary: summarize(trials, { resamples: 50, threshold: (rate) => -Math.log(rate) }),
    byNetSpeech: summarizeBy(trials, NET_SPEECH_BANDS, (trial) => trial.netSpeechSeconds, { resamples: 20 }),
    bySnr: summarizeBy(trials, SNR_BANDS, (trial) => trial.snrDb, { resamples: 20 }),
    openSet: openSet(callersOf(trials), (rate) => -Math.log(rate), { sizes: [1, 3], calls: 200 }),
    unusable: [{ file: "a&b.wav", reason: "too little speech (0.20 s)" }],
    copies: [{ file: "c<1>.wav", of: "d.wav" }],
    failedModels: 0,
    unscoredTrials: 3,
  };
}

describe("the report", () => {
  const random = seededRandom(3);
  const trials = Array.from({ length: 400 }, (_, i): ScoredTrial => {
    const same = i % 4 === 0;
    const llr = (same ? 4 : -4) + 6 * (random() - 0.5) + 3 * (random() - 0.5);
    const enrolledSpeaker = i % 10;
    return {
      same,
      llr,
      raw: llr / 10,
      model: i % 20,
      test: Math.floor(i / 20),
      names: { enrolled: `${i}<a>.wav`, tested: `${i}.wav` },
      ratios: { unlike: -6, identical: 14 },
      impostors: { center: 0, spread: 1 },
      enrolledSpeaker,
      testedSpeaker: same ? enrolledSpeaker : (enrolledSpeaker + 1 + (i % 7)) % 10,
      netSpeechSeconds: 1 + (i % 8),
      snrDb: i % 30,
    };
  });

  it("of a million trials has scores that one text could not hold, so they come in parts", () => {
    const name = `"${"x".repeat(3999)}`;
    const long = { ...trials[0]!, names: { enrolled: name, tested: name } };
    let written = 0;
    for (const part of scoresCsv(new Array<ScoredTrial>(80_000).fill(long))) written += part.length;
    expect(written).toBeGreaterThan(constants.MAX_STRING_LENGTH);
    const [head, lines] = [...scoresCsv(trials.slice(0, 2))];
    expect(`${head}${lines}`.split("\n")).toEqual([
      "same,enrolled,tested,score,llr,net_speech_s,snr_db,enrolled_speaker,tested_speaker",
      expect.stringMatching(/^1,0<a>\.wav,0\.wav,/),
      expect.stringMatching(/^0,1<a>\.wav,1\.wav,/),
      "",
    ]);
  });

  it("draws three plots and the figures, loads nothing and escapes everything", () => {
    const html = reportHtml("DEV <set>", [evaluationOf(trials)], new Date(0));
    expect(html).toContain("1000 / 123456789");
    const { document } = parseHTML(html);
    expect(document.querySelectorAll("figure svg")).toHaveLength(3);
    for (const svg of document.querySelectorAll("figure svg")) {
      expect(svg.querySelectorAll("path, rect").length).toBeGreaterThan(0);
      expect(svg.outerHTML).not.toMatch(/NaN|undefined|Infinity/);
    }
    expect(document.querySelector("h1")!.textContent).toBe("DEV <set>");
    expect(document.querySelector("table")!.textContent).toContain("Equal error rate");
    expect(html).toContain("a&#38;b.wav");
    expect(html).toContain("<li>c&#60;1&#62;.wav: d.wav</li>");
    for (const words of [
      "A target of 1 %",
      "Lists",
      "For lists, at most 400 recordings are tested, each against at most 1100 other speakers",
      "Pairs of different people with the highest scores",
      "prefers-color-scheme: dark",
    ])
      expect(html).toContain(words);
    expect(html).not.toContain("<a>.wav");
    expect(html).not.toMatch(/<script|(src|href)="http/);
  });

  it("names recordings from the folder that they share, which it names once", () => {
    const long = "/srv/recordings of 2026/line 1/";
    const inFolder = trials.map((trial) => ({
      ...trial,
      names: { enrolled: `${long}s1/${trial.names!.enrolled}`, tested: `${long}s2/${trial.names!.tested}` },
    }));
    const evaluation = {
      ...evaluationOf(inFolder),
      unusable: [{ file: `${long}s3/a.wav`, reason: "too little speech (0.20 s)" }],
      copies: [{ file: `${long}s3/b.wav`, of: `${long}s4/b.wav` }],
    };
    const html = reportHtml("DEV", [evaluation], new Date(0));
    expect(html.split(long)).toHaveLength(2);
    expect(html).toContain(`Recordings are named from this folder: ${long}<`);
    expect(html).toContain("<li>s3/a.wav: too little speech (0.20 s)</li>");
    expect(html).toContain("<li>s3/b.wav: s4/b.wav</li>");
    const shown = [...parseHTML(html).document.querySelectorAll("td.path")].map(({ textContent }) => textContent);
    expect(shown.length).toBeGreaterThan(10);
    for (const name of shown) expect(name).toMatch(/^s[12]\/\d+(<a>)?\.wav$/);
    // Without a common folder, names are whole.
    const apart = { ...evaluation, unusable: [{ file: "/mnt/a.wav", reason: "no speech" }] };
    expect(reportHtml("DEV", [apart], new Date(0))).toContain("<li>/mnt/a.wav: no speech</li>");
    const windows = {
      ...evaluationOf(trials),
      copies: [],
      unusable: [{ file: "C:\\calls\\a.wav", reason: "no speech" }],
    };
    expect(reportHtml("DEV", [{ ...windows, summary: null }], new Date(0))).toContain("<li>a.wav: no speech</li>");
  });

  it("shows the scores of one person although there are far more of different people", () => {
    const many = Array.from(
      { length: 20_000 },
      (_, i): ScoredTrial => ({ ...trials[4 * (i % 100) + 1]!, test: 100 + i }),
    );
    const evaluation = { ...evaluationOf(trials), trials: [...trials.filter(({ same }) => same), ...many] };
    const { document } = parseHTML(reportHtml("DEV", [evaluation], new Date(0)));
    const bars = [...document.querySelectorAll('svg[aria-label="Scores"] rect')].filter(
      (bar) => bar.getAttribute("fill") === "var(--same)" && Number(bar.getAttribute("height")) > 0,
    );
    // 100 scores spread over 9: not in the few bars up to the highest of different people.
    expect(bars.length).toBeGreaterThan(20);
  });

  it("can be read on a phone, in the dark, by keyboard and with a screen reader", { timeout: 180_000 }, async () => {
    const browser = await launch();
    try {
      const page = await browser.newPage({ viewport: { width: 390, height: 844 }, colorScheme: "dark" });
      await page.setContent(reportHtml("DEV", [evaluationOf(trials)], new Date(0)));
      expect(await barriers(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
      for (const name of ["Detection error trade-off", "Scores", "Calibration"])
        expect(await page.getByRole("img", { name }).count()).toBe(1);
      // The colors are named by a key, not in words that hold only in light mode.
      expect(await page.locator(".key").allTextContents()).toEqual(["same person", "different people"]);
    } finally {
      await browser.close();
    }
  });

  it("gives no FNMR for an amount of speech with too few trials to resolve it", () => {
    const evaluation = evaluationOf(trials.map((trial, i) => ({ ...trial, netSpeechSeconds: i < 40 ? 2 : 5 })));
    const table = tablesOf(evaluation, evaluation.summary!).find(({ title }) => title.startsWith("By net speech"))!;
    expect(table.rows.map(([label, , , fnmr]) => [label, fnmr])).toEqual([
      ["1.5 to 2.5 s", "too few trials"],
      ["4 to 7.5 s", expect.stringContaining("%")],
    ]);
  });

  it("lists each pair of speakers once, with its worst trial, the worst pairs first", () => {
    const sorted = trials.filter(({ same }) => !same).toSorted((one, other) => other.llr - one.llr);
    const pair = ({ enrolledSpeaker: one, testedSpeaker: other }: ScoredTrial) => [one, other].sort().join();
    const expected = sorted.filter((trial, i) => sorted.findIndex((one) => pair(one) === pair(trial)) === i);
    expect(worstPairs(trials).different).toEqual(
      expected.slice(0, 10).map(({ names, raw, llr }) => ({ ...names, raw, llr })),
    );
    const { same } = worstPairs(trials, 3);
    expect(same.map(({ llr }) => llr)).toEqual(same.map(({ llr }) => llr).toSorted((a, b) => a - b));
    expect(same).toHaveLength(3);
    expect(same[0]!.llr).toBe(Math.min(...trials.filter((trial) => trial.same).map(({ llr }) => llr)));
  });

  it("reports when there is nothing to compute", () => {
    expect(reportHtml("empty", [evaluationOf(trials.filter((trial) => trial.same))], new Date(0))).toContain(
      "must include pairs of the same speaker",
    );
  });
});
