import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Decision, DecisionReason } from "../../src/contract/index.js";
import { endsEarly, looksAt, reachableCheckpoints } from "../../src/voiceprint/checkpoints.js";
import {
  attackHalfWidth,
  decide,
  decideAttack,
  generalDecision,
  judge,
  judgeAttack,
  judgedEvidence,
  rateOfOneComparison,
  strongestFirst,
  uncertainHalfWidth,
} from "../../src/voiceprint/decision.js";
import { fuseRisks, riskFigures, riskOf } from "../../src/voiceprint/risk.js";
import { decideSession, risksOf } from "../../src/voiceprint/session-decision.js";

const rate = fc.double({ min: 1e-6, max: 0.5, noNaN: true });
const llr = fc.double({ min: -50, max: 50, noNaN: true });
const unitInterval = fc.double({ min: 0, max: 1, noNaN: true });
const evidence = fc.record({ llr, reliability: unitInterval, threshold: llr });
/** True for any calibration: a lower rate never has a lower threshold. */
const threshold = (r: number) => -Math.log(r);
const attackThreshold = threshold(0.01);

describe("the rate of one comparison", () => {
  test("keeps the target for the call: 1 - (1 - r)^n, where each further look counts half", () => {
    fc.assert(
      fc.property(
        rate,
        fc.integer({ min: 1, max: 100_000 }),
        fc.integer({ min: 1, max: 8 }),
        (target, candidates, looks) => {
          const one = rateOfOneComparison(target, candidates, looks);
          const call = -Math.expm1(candidates * (1 + (looks - 1) / 2) * Math.log1p(-one));
          expect(Math.abs(call / target - 1)).toBeLessThan(1e-9 /* rounding of two logarithms */);
        },
      ),
    );
  });

  test("is the target if there is one comparison", () => {
    expect(rateOfOneComparison(0.001, 1, 1)).toBeCloseTo(0.001, 15 /* rounding */);
  });

  test("more candidates or looks never raise it", () => {
    const count = fc.integer({ min: 1, max: 1000 });
    fc.assert(
      fc.property(rate, count, count, (target, n, more) => {
        expect(rateOfOneComparison(target, n + more, 1)).toBeLessThan(rateOfOneComparison(target, n, 1));
        expect(rateOfOneComparison(target, 1, n + more)).toBeLessThan(rateOfOneComparison(target, 1, n));
      }),
    );
  });
});

describe("deciding", () => {
  test("a stricter target false-accept rate never accepts more", () => {
    fc.assert(
      fc.property(
        rate,
        rate,
        llr,
        unitInterval,
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom("person", "fraudster"),
        (a, b, ratio, reliability, candidates, looks, kind) => {
          const accepts = (target: number) => {
            const comparisons = { targetRate: target, candidates, looks };
            const { decision } = decide(kind, judgedEvidence({ llr: ratio, reliability }, comparisons, threshold));
            return decision === Decision.AUTHENTIC || decision === Decision.FRAUD;
          };
          if (accepts(Math.min(a, b))) expect(accepts(Math.max(a, b))).toBe(true);
        },
      ),
    );
  });

  test("a higher ratio never gets a lower verdict, and less reliability never a more certain one", () => {
    const rank = { below: 0, near: 1, above: 2 };
    fc.assert(
      fc.property(evidence, fc.double({ min: 0, max: 20, noNaN: true }), unitInterval, (given, more, other) => {
        expect(rank[judge({ ...given, llr: given.llr + more })]).toBeGreaterThanOrEqual(rank[judge(given)]);
        const less = { ...given, reliability: Math.min(given.reliability, other) };
        if (judge(given) === "near") expect(judge(less)).toBe("near");
      }),
    );
  });

  test("a match keeps the rate at any reliability; the uncertain band lies below it", () => {
    fc.assert(
      fc.property(rate, unitInterval, fc.integer({ min: 1, max: 100_000 }), (targetRate, reliability, candidates) => {
        const comparisons = { targetRate, candidates, looks: 1 };
        const accepted = threshold(rateOfOneComparison(targetRate, candidates, 1));
        const at = (ratio: number) => judge(judgedEvidence({ llr: ratio, reliability }, comparisons, threshold));
        expect(at(accepted + 1e-9)).toBe("above");
        expect(at(accepted - 1e-9)).not.toBe("above");
        expect(at(accepted - 2 * Math.LN10 - 1e-9)).toBe("below");
      }),
    );
  });

  test("a strong candidate that misses the list's threshold is UNCERTAIN", () => {
    const comparisons = { targetRate: 0.01, candidates: 1000, looks: 1 };
    const at = (target: number) => threshold(rateOfOneComparison(target, 1000, 1));
    for (const kind of ["person", "fraudster"] as const) {
      const decided = (ratio: number) =>
        decide(kind, judgedEvidence({ llr: ratio, reliability: 1 }, comparisons, threshold)).decision;
      expect(decided(at(0.01) - 0.01)).toBe(Decision.UNCERTAIN);
      expect(decided(at(0.1) + 0.01)).toBe(Decision.UNCERTAIN);
      expect(decided(at(0.1) - 0.01)).not.toBe(Decision.UNCERTAIN);
    }
  });

  test("at full reliability there is no band; at zero it is a factor of ten either way", () => {
    expect(uncertainHalfWidth(1)).toBe(0);
    expect(uncertainHalfWidth(0)).toBeCloseTo(Math.log(10), 12 /* rounding */);
    expect(judge({ llr: 5, reliability: 1, threshold: 5 })).toBe("above");
    expect(judge({ llr: 4.999, reliability: 1, threshold: 5 })).toBe("below");
  });

  test("a strong attack is a sign of fraud", () => {
    const strong = decideAttack("playback", { llr: 10, reliability: 1, threshold: attackThreshold });
    expect(strong).toMatchObject({
      decision: Decision.FRAUD,
      general: { reason: DecisionReason.FRAUDSTER_INDICATION },
    });
  });
});

describe("an uncertain attack check", () => {
  test.each(["synthetic", "playback"] as const)("%s: no audio is not evidence of genuine speech", (kind) => {
    const threshold = attackThreshold;
    fc.assert(
      fc.property(llr, (ratio) => {
        const { decision, general } = decideAttack(kind, { llr: ratio, reliability: 0, threshold });
        expect([decision, general.reason]).toEqual([Decision.UNCERTAIN, DecisionReason.LOW_RELIABILITY]);
      }),
    );
    expect(attackHalfWidth(0.5)).toBeCloseTo(Math.log(10), 12 /* rounding */);
    expect(attackHalfWidth(1)).toBe(0);
  });

  test("NO_RISK_DETECTED needs audio that sounds alive, however certain the network is", () => {
    const threshold = attackThreshold;
    fc.assert(
      fc.property(fc.double({ min: 0, max: 50, noNaN: true }), unitInterval, (ratio, reliability) => {
        const { decision } = decideAttack("synthetic", { llr: ratio, reliability, threshold });
        expect(decision).not.toBe(Decision.NO_RISK_DETECTED);
      }),
    );
    const alive = decideAttack("synthetic", { llr: -0.1, reliability: 0.9, threshold });
    expect(alive.decision).toBe(Decision.NO_RISK_DETECTED);
  });

  test("less reliability never gives a more certain verdict, nor more overall reliability", () => {
    const at = attackThreshold;
    fc.assert(
      fc.property(llr, unitInterval, unitInterval, evidence, (ratio, a, b, other) => {
        const [less, more] = [Math.min(a, b), Math.max(a, b)];
        const verdict = (reliability: number) => judgeAttack({ llr: ratio, reliability, threshold: at });
        expect(["near", verdict(more)]).toContain(verdict(less));
        const fused = (reliability: number) =>
          fuseRisks([riskOf("person", other), riskOf("attack", { llr: ratio, reliability, threshold: at })])!;
        expect(fused(less).reliability).toBeLessThanOrEqual(fused(more).reliability);
      }),
    );
  });
});

test("an uncertain attack check lowers the reliability of its risk and of the whole, however much speech it had", () => {
  const threshold = attackThreshold;
  const match = riskOf("person", { llr: 20, reliability: 0.9, threshold: 7 });
  const attack = (llr: number) => riskOf("attack", { llr, reliability: 0.95, threshold });
  const all = (llr: number) => riskFigures(fuseRisks([match, attack(llr)])!).reliability;
  expect([attack(-1), attack(2), attack(10)].map(({ reliability }) => reliability)).toEqual([0.95, 0.475, 0.95]);
  expect([all(-1), all(2), all(10)]).toEqual([90, 48, 95]);
});

describe("the overall decision", () => {
  const match = { decision: Decision.AUTHENTIC, reason: DecisionReason.VOICEPRINT_MATCH };
  const fraud = { decision: Decision.FRAUD, reason: DecisionReason.FRAUDSTER_INDICATION };
  const clear = { decision: Decision.NO_RISK_DETECTED, reason: DecisionReason.NO_RISK_DETECTED };
  const unsure = { decision: Decision.UNCERTAIN, reason: DecisionReason.LOW_RELIABILITY };
  const none = { decision: Decision.FAILED, reason: DecisionReason.NO_SCORES };
  const missing = { decision: Decision.UNCERTAIN, reason: DecisionReason.NO_SCORES };
  const noMatch = { decision: Decision.NO_MATCH, reason: DecisionReason.VOICEPRINT_NO_MATCH };

  test.each([
    ["fraud outweighs a match", { authentication: match, fraud, attacks: [] }, fraud],
    ["an attack outweighs a match", { authentication: match, fraud: clear, attacks: [clear, fraud] }, fraud],
    ["otherwise authentication decides", { authentication: match, fraud: clear, attacks: [clear] }, match],
    ["even if an attack check was uncertain", { authentication: match, fraud: clear, attacks: [unsure] }, match],
    ["a failed part makes it UNCERTAIN", { authentication: match, fraud: none, attacks: [clear] }, missing],
    ["whichever part it was", { authentication: none, fraud: clear, attacks: [] }, missing],
    ["also for a no-match", { authentication: noMatch, fraud: none, attacks: [] }, missing],
    ["but fraud stays fraud", { authentication: none, fraud, attacks: [] }, fraud],
    ["if every part failed, it is FAILED", { authentication: none, fraud: none, attacks: [] }, none],
    ["no risk when only risk checks ran", { fraud: clear, attacks: [clear] }, clear],
    ["or only one of them", { fraud: clear, attacks: [] }, clear],
    ["of either kind", { attacks: [clear] }, clear],
    ["but not if one of them was uncertain", { fraud: clear, attacks: [unsure] }, unsure],
    ["or had nothing to compare with", { fraud: none, attacks: [clear] }, missing],
    ["nothing checked, nothing decided", { attacks: [] }, null],
  ])("%s", (_, parts, expected) => {
    expect(generalDecision(parts, null)).toEqual(expected);
  });

  test("never contradicts the risk of all parts together", () => {
    const parts = fc.record({ authentication: evidence, fraud: evidence, attack: evidence });
    fc.assert(
      fc.property(parts, ({ authentication, fraud, attack }) => {
        const judged = { authentication, fraud, synthetic: attack };
        const { risk } = riskFigures(fuseRisks(risksOf(judged))!);
        const outcomes = {
          authentication: decide("person", authentication),
          fraud: decide("fraudster", fraud),
          attacks: [decideAttack("synthetic", attack).general],
        };
        const { decision } = generalDecision(outcomes, risk)!;
        if (decision === Decision.AUTHENTIC) expect(risk).toBeLessThanOrEqual(500);
        if (decision === Decision.NO_MATCH || decision === Decision.FRAUD) expect(risk).toBeGreaterThanOrEqual(500);
        const whole = decideSession([{ outcome: outcomes.authentication, profileId: "a", evidence: judged }]);
        expect(whole.decision).toBe(decision);
      }),
      { numRuns: 1000 },
    );
    expect(generalDecision({ authentication: match, attacks: [unsure] }, 819)).toEqual(unsure);
    expect(generalDecision({ fraud: clear, attacks: [clear] }, 640)).toEqual(unsure);
  });

  test("changes where a risk becomes more likely than not", () => {
    expect(generalDecision({ authentication: match, attacks: [clear] }, 500)).toEqual(match);
    expect(generalDecision({ authentication: match, attacks: [clear] }, 501)).toEqual(unsure);
  });
});

describe("risk", () => {
  test("is 500 exactly at the threshold, in both directions", () => {
    const at = { llr: 3, threshold: 3, reliability: 1 };
    for (const kind of ["person", "fraudster", "attack"] as const) expect(riskFigures(riskOf(kind, at)).risk).toBe(500);
    expect(riskFigures(riskOf("person", { ...at, llr: 20 })).risk).toBe(0);
    expect(riskFigures(riskOf("fraudster", { ...at, llr: 20 })).risk).toBe(1000);
  });

  test("figures stay in 0..1000 and 0..100, whatever the evidence", () => {
    const anyNumber = fc.double({ noNaN: true });
    fc.assert(
      fc.property(fc.record({ llr: anyNumber, threshold: llr, reliability: anyNumber }), (given) => {
        const { risk, reliability } = riskFigures(riskOf("attack", given));
        expect(Number.isInteger(risk) && risk >= 0 && risk <= 1000).toBe(true);
        expect(Number.isInteger(reliability) && reliability >= 0 && reliability <= 100).toBe(true);
      }),
    );
  });

  test("another risk never lowers the fused one, and their order does not matter", () => {
    const risk = fc.record({ probability: unitInterval, reliability: unitInterval });
    fc.assert(
      fc.property(fc.array(risk, { minLength: 1, maxLength: 4 }), risk, (risks, more) => {
        const fused = fuseRisks(risks)!;
        expect(fuseRisks([...risks, more])!.probability).toBeGreaterThanOrEqual(
          fused.probability - 1e-12 /* rounding */,
        );
        const reversed = fuseRisks([...risks].reverse())!;
        expect(Math.abs(reversed.probability - fused.probability)).toBeLessThan(1e-12 /* order of products */);
      }),
    );
    expect(fuseRisks([])).toBeNull();
  });
});

describe("a session", () => {
  const check = (authentication: { llr: number; threshold: number; reliability: number }, profileId = "a") => ({
    outcome: decide("person", authentication),
    profileId,
    evidence: { authentication },
  });

  test("averages the checks of one person, weighted by reliability", () => {
    const strong = check({ llr: 20, threshold: 7, reliability: 1 });
    const weak = check({ llr: 5, threshold: 7, reliability: 0.1 });
    expect(decideSession([weak, strong]).decision).toBe(Decision.AUTHENTIC);
    expect(decideSession([strong, weak]).decision).toBe(Decision.AUTHENTIC);
  });

  test("is never clearer than its clearest check: uncertain checks are neither a match nor a no-match", () => {
    const hasty = check({ llr: 7.8, threshold: 7, reliability: 0.6 });
    const calm = check({ llr: 7, threshold: 7, reliability: 0.95 });
    for (const { outcome } of [hasty, calm]) expect(outcome.decision).toBe(Decision.UNCERTAIN);
    expect(decideSession([hasty, calm]).decision).toBe(Decision.UNCERTAIN);
    const clear = [Decision.NO_MATCH, Decision.UNCERTAIN, Decision.AUTHENTIC];
    const near = fc.record({
      llr: fc.double({ min: -3, max: 3, noNaN: true }),
      threshold: fc.constant(0),
      reliability: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(near, { minLength: 1, maxLength: 5 }), (given) => {
        const checks = given.map((one) => check(one));
        const ranks = checks.map(({ outcome }) => clear.indexOf(outcome.decision));
        const rank = clear.indexOf(decideSession(checks).decision);
        expect(rank).toBeGreaterThanOrEqual(Math.min(...ranks));
        expect(rank).toBeLessThanOrEqual(Math.max(...ranks));
      }),
    );
  });

  const match = check({ llr: 20, threshold: 7, reliability: 1 });
  const noMatch = check({ llr: -8, threshold: 7, reliability: 1 });

  test("is about who speaks now: a clear no-match counts after any number of matches", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 12 }), (matches) => {
        const { decision, risk, matchedProfileId } = decideSession([...Array(matches).fill(match), noMatch]);
        expect([decision, riskFigures(risk!).risk, matchedProfileId]).toEqual([Decision.NO_MATCH, 1000, null]);
      }),
    );
  });

  test("an impostor gains nothing by trying again: a match must outweigh the no-match before it", () => {
    const barely = check({ llr: 8, threshold: 7, reliability: 1 });
    expect(decideSession([noMatch, barely]).decision).toBe(Decision.NO_MATCH);
    expect(decideSession([noMatch, match, match]).decision).toBe(Decision.AUTHENTIC);
  });

  test("with a claimed person, only a match with that person is authentic", () => {
    const other = (llr: number) => check({ llr, threshold: 7, reliability: 1 }, "b");
    const claimed = new Set(["a", "a-mobile"]);
    expect(decideSession([match], claimed)).toMatchObject({ decision: Decision.AUTHENTIC, matchedProfileId: "a" });
    const mobile = check({ llr: 20, threshold: 7, reliability: 1 }, "a-mobile");
    expect(decideSession([mobile], claimed)).toMatchObject({ decision: Decision.AUTHENTIC, profileId: "a-mobile" });
    const stranger = decideSession([match, other(20)], claimed);
    expect(stranger).toMatchObject({ decision: Decision.NO_MATCH, matchedProfileId: "b" });
    expect(riskFigures(stranger.risk!).risk).toBe(1000);
    // Also right at the threshold, and if the claimed person has no print.
    expect(decideSession([other(7)], claimed).decision).toBe(Decision.NO_MATCH);
    expect(decideSession([match], new Set()).decision).toBe(Decision.NO_MATCH);
    // A no-match with somebody else is no evidence against the claimed person.
    expect(decideSession([match, other(-20)], claimed).decision).toBe(Decision.AUTHENTIC);
    expect(decideSession([other(-20)], claimed).decision).toBe(Decision.NO_MATCH);
    fc.assert(
      fc.property(fc.array(evidence, { minLength: 1, maxLength: 5 }), (given) => {
        const { decision } = decideSession(
          given.map((one) => check(one, "b")),
          claimed,
        );
        expect(decision).not.toBe(Decision.AUTHENTIC);
      }),
    );
  });

  test("with a claimed person, the voices of other channels are other people's", () => {
    const claimed = new Set(["a"]);
    const [caller, stranger] = [match, noMatch].map((one) => ({ ...one, channel: 1 }));
    const agent = { ...check({ llr: 20, threshold: 7, reliability: 1 }, "agent"), channel: 2 };
    for (const checks of [
      [caller!, agent],
      [agent, caller!],
    ])
      expect(decideSession(checks, claimed)).toMatchObject({ decision: Decision.AUTHENTIC, matchedProfileId: "a" });
    expect(decideSession([stranger!, agent], claimed)).toMatchObject({
      decision: Decision.NO_MATCH,
      matchedProfileId: null,
    });
    // The agent's print could not be compared.
    const failed = { decision: Decision.FAILED, reason: DecisionReason.NO_SCORES };
    const unknown = { ...agent, outcome: failed, evidence: {}, failures: { authentication: failed.reason } };
    expect(decideSession([caller!, unknown], claimed).decision).toBe(Decision.AUTHENTIC);
    // The caller said too little.
    const short = { decision: Decision.UNCERTAIN, reason: DecisionReason.AUDIO_TOO_SHORT };
    const silent = { ...caller!, outcome: short, evidence: {} };
    expect(decideSession([silent, agent], claimed)).toMatchObject(short);
    // Signs of fraud count in every channel.
    const fraud = { llr: 30, threshold: 9, reliability: 1 };
    const known = { ...agent, outcome: decide("fraudster", fraud), evidence: { ...agent.evidence, fraud } };
    expect(decideSession([caller!, known], claimed).decision).toBe(Decision.FRAUD);
    // Another person in the claimed person's own channel, or in all channels mixed, is evidence against the claim.
    for (const channel of [1, null])
      expect(decideSession([caller!, { ...agent, channel }], claimed).decision).toBe(Decision.NO_MATCH);
    // Without a comparison with the claimed person, nobody knows whose channel it is.
    expect(decideSession([agent], claimed).decision).toBe(Decision.NO_MATCH);
  });

  test("if the latest check of a part failed, only FRAUD is still certain", () => {
    const broken = {
      outcome: { decision: Decision.UNCERTAIN, reason: DecisionReason.NO_SCORES },
      profileId: "a",
      evidence: match.evidence,
      failures: { fraud: DecisionReason.NO_SCORES },
    };
    const open = { decision: Decision.UNCERTAIN, reason: DecisionReason.NO_SCORES };
    expect(decideSession([broken])).toMatchObject(open);
    expect(decideSession([broken, match])).toMatchObject(open);
    const fraud = (llr: number) => ({ ...match, evidence: { fraud: { llr, threshold: 9, reliability: 1 } } });
    expect(decideSession([broken, fraud(-5)]).decision).toBe(Decision.AUTHENTIC);
    expect(decideSession([fraud(20), broken]).decision).toBe(Decision.FRAUD);
  });

  test("FRAUD stays FRAUD, whatever comes later", () => {
    fc.assert(
      fc.property(fc.array(evidence, { maxLength: 4 }), fc.nat(4), (others, at) => {
        const fraud = { llr: 30, threshold: 9, reliability: 1 };
        const checks = others.map((one) => check(one));
        checks.splice(at, 0, { outcome: decide("fraudster", fraud), profileId: "f", evidence: { fraud } } as never);
        expect(decideSession(checks).decision).toBe(Decision.FRAUD);
      }),
    );
  });

  test("a check that found fraud is not undone by a higher ratio with too little reliability", () => {
    const [sure, hasty] = [
      { llr: 5, threshold: 4.6, reliability: 0.95 },
      { llr: 5.5, threshold: 4.6, reliability: 0.3 },
    ];
    const outcomes = (part: "fraud" | "synthetic" | "playback") =>
      [sure, hasty].map((given) => (part === "fraud" ? decide("fraudster", given) : decideAttack(part, given).general));
    for (const part of ["fraud", "synthetic", "playback"] as const) {
      const [found, unsure] = outcomes(part);
      expect([found!.decision, unsure!.decision]).toEqual([Decision.FRAUD, Decision.UNCERTAIN]);
      const checks = [sure, hasty].map((given, i) => ({
        outcome: outcomes(part)[i]!,
        profileId: null,
        evidence: { [part]: given },
      }));
      expect(decideSession(checks)).toMatchObject(found!);
      expect(decideSession(checks.toReversed())).toMatchObject(found!);
    }
  });

  test("reports the check that exceeds its threshold most, not the one with the highest ratio", () => {
    const far = { llr: 5, threshold: 1, reliability: 1 };
    const near = { llr: 6, threshold: 4, reliability: 1 };
    for (const order of [
      [far, near],
      [near, far],
    ])
      expect([...order].sort(strongestFirst(judge))).toEqual([far, near]);
  });

  test("is as severe as the most severe of its risk checks", () => {
    const grave = [Decision.NO_RISK_DETECTED, Decision.UNCERTAIN, Decision.FRAUD];
    const part = fc.constantFrom("fraud" as const, "synthetic" as const, "playback" as const);
    const near = fc.record({
      llr: fc.integer({ min: -10, max: 10 }),
      reliability: fc.integer({ min: 0, max: 10 }).map((tenths) => tenths / 10),
      threshold: fc.constant(4.6),
    });
    fc.assert(
      fc.property(part, fc.array(near, { minLength: 1, maxLength: 5 }), (part, given) => {
        const outcomes = given.map((one) =>
          part === "fraud" ? decide("fraudster", one) : decideAttack(part, one).general,
        );
        const checks = given.map((one, i) => ({
          outcome: outcomes[i]!,
          profileId: null,
          evidence: { [part]: one },
        }));
        const gravest = Math.max(...outcomes.map(({ decision }) => grave.indexOf(decision)));
        expect(decideSession(checks).decision).toBe(grave[gravest]);
      }),
    );
  });
});

test("only checkpoints that the audio can reach count as looks, and so does the end", () => {
  expect(looksAt([])).toBe(1);
  expect(looksAt([2, 5])).toBe(3);
  expect(reachableCheckpoints([2, 5], 1.9)).toEqual([]);
  expect(reachableCheckpoints([2, 5], 2)).toEqual([]);
  expect(reachableCheckpoints([2, 5], 4)).toEqual([2]);
  expect(reachableCheckpoints([2, 5], Number.POSITIVE_INFINITY)).toEqual([2, 5]);
});

test("only a clear match ends a check before its audio does", () => {
  const decisions = [
    Decision.AUTHENTIC,
    Decision.NO_MATCH,
    Decision.FRAUD,
    Decision.NO_RISK_DETECTED,
    Decision.UNCERTAIN,
  ];
  expect(decisions.filter(endsEarly)).toEqual([Decision.AUTHENTIC, Decision.FRAUD]);
});
