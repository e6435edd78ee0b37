/** Both attack checks from the easy door down to the kernels: the real engine with the package's own model. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openVoiceprints } from "../../dist/index.js";
import type { Voiceprints } from "../../src/voiceprints.js";
import { noise, speak, wav } from "../voice.js";

const rateHz = 16_000;
const both = { synthetic: true, playback: true };
const recorded = (seconds: number) => wav(speak({ speaker: 8, seconds, rateHz, seed: 4 }), rateHz);

let voice: Voiceprints;
beforeAll(async () => {
  voice = (await openVoiceprints({ engineOptions: { workers: 0 } })) as unknown as Voiceprints;
}, 60_000);
afterAll(() => voice.close());

test("each check gives its own answer, and the overall decision follows from them", async () => {
  const { result, decision } = await voice.analyze(recorded(6), both);
  const parts = [result.syntheticSpeechResult!, result.channelPlaybackResult!];
  for (const part of parts) {
    expect(Number.isFinite(part.score)).toBe(true);
    expect(["DECISION_FRAUD", "DECISION_UNCERTAIN", "DECISION_NO_RISK_DETECTED"]).toContain(part.decision);
    expect(part.riskEngineResult).toBeDefined();
    expect(part.gkCalibrationModelRevisionId!.value).not.toBe(result.gkCalibrationModelRevisionId!.value);
  }
  const said = parts.map((part) => part.decision);
  const expected = said.includes("DECISION_FRAUD")
    ? "FRAUD"
    : said.includes("DECISION_UNCERTAIN")
      ? "UNCERTAIN"
      : "NO_RISK_DETECTED";
  expect(decision).toBe(expected);
  expect(await voice.analyze(recorded(6), both)).toMatchObject({
    decision,
    result: { syntheticSpeechResult: { score: parts[0]!.score } },
  });
}, 60_000);

test("a single check leaves the other out; audio without speech passes neither", async () => {
  const { result } = await voice.analyze(recorded(6), { playback: true });
  expect(result.syntheticSpeechResult).toBeUndefined();
  expect(result.channelPlaybackResult).toBeDefined();
  const hiss = await voice.analyze(wav(noise(5, rateHz, 1, -40), rateHz), both);
  expect(hiss.decision).not.toBe("NO_RISK_DETECTED");
  expect(hiss.result.syntheticSpeechResult).toMatchObject({ decision: "DECISION_UNCERTAIN" });
  expect(hiss.result.channelPlaybackResult).toMatchObject({ decision: "DECISION_UNCERTAIN" });
}, 60_000);

test("a caller who first speaks after a minute is still checked, recorded or live", async () => {
  const speech = speak({ speaker: 8, seconds: 5, rateHz, seed: 4 });
  const late = new Float32Array(70 * rateHz + speech.length);
  late.set(speech, 70 * rateHz);
  const chunks = Array.from({ length: Math.ceil(late.length / rateHz) }, (_, i) =>
    late.slice(i * rateHz, (i + 1) * rateHz),
  );
  const answers = [
    await voice.analyze(wav(late, rateHz), both),
    await (await voice.listen(both, rateHz)).follow(chunks),
    await voice.analyze(wav(speech, rateHz), both),
  ];
  const [recorded, live, alone] = answers.map(({ result }) =>
    [result.syntheticSpeechResult!, result.channelPlaybackResult!].map((part) => part.riskEngineResult!.reliability!),
  );
  expect(Math.min(...alone!)).toBeGreaterThan(0);
  for (const answer of [recorded!, live!]) {
    // Live audio is not rounded to 16 bits as a recording is, so the score may differ by one point.
    for (const [i, reliability] of answer.entries()) expect(Math.abs(reliability - alone![i]!)).toBeLessThanOrEqual(1);
  }
}, 60_000);
