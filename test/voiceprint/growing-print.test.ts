import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { grownVoice, type MemberVoice, type SessionMember, withSession } from "../../src/voiceprint/growing-print.js";
import { gaussian, random } from "../voice.js";

const dimensions = 32;
const unit = (vector: Float32Array) => {
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
  return vector.map((x) => x / length);
};
const direction = (seed: number) => unit(Float32Array.from({ length: dimensions }, gaussian(random(seed))));
const near = (of: Float32Array, seed: number, apart: number) => unit(of.map((x, i) => x + apart * direction(seed)[i]!));
const cosine = (one: Float32Array, other: Float32Array) => one.reduce((sum, x, i) => sum + x * other[i]!, 0);
const voice = (embedding: Float32Array, netSpeechSeconds = 4): MemberVoice => ({
  embedding,
  netSpeechSeconds,
  snrDb: 20,
  bandwidthHz: null,
});
const member = (embedding: Float32Array, sessionId: string, at: number, netSpeechSeconds = 4): SessionMember => ({
  ...voice(embedding, netSpeechSeconds),
  sessionId,
  at,
});

describe("sessions of a print", () => {
  test("are never more than allowed, and always include the newest", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.nat(100), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 6 }),
        (seeds, most) => {
          let sessions: readonly SessionMember[] = [];
          seeds.forEach((seed, i) => {
            sessions = withSession(sessions, member(direction(seed), `s${i}`, i), most);
            expect(sessions.length).toBeLessThanOrEqual(most);
            expect(sessions.at(-1)!.sessionId).toBe(`s${i}`);
          });
        },
      ),
    );
  });

  test("a call counts once, with its voice of most speech", () => {
    const first = withSession([], member(direction(1), "call", 1, 4), 4);
    for (const seconds of [3, 4]) expect(withSession(first, member(direction(1), "call", 2, seconds), 4)).toBe(first);
    const longer = withSession(first, member(direction(1), "call", 3, 9), 4);
    expect(longer.map(({ at }) => at)).toEqual([3]);
  });

  test("a recording that is played again, also over a line, counts once", () => {
    const own = [1, 2].map((i) => member(direction(i), `${i}`, i));
    const poisoned = withSession(own, member(direction(3), "3", 3), 3);
    for (const again of [direction(3), near(direction(3), 4, 0.3)])
      expect(withSession(poisoned, member(again, "4", 4), 3)).toBe(poisoned);
    expect(withSession(poisoned, member(near(direction(3), 4, 0.6), "4", 4), 3)).not.toBe(poisoned);
  });

  test("the oldest is dropped, so that no voice stays forever", () => {
    const sessions = [1, 2, 3].map((i) => member(direction(i), `${i}`, i));
    const after = withSession(sessions, member(direction(4), "4", 4), 3);
    expect(after.map(({ sessionId }) => sessionId)).toEqual(["2", "3", "4"]);
  });
});

describe("a grown print", () => {
  test("equals the enrolled voice without sessions", () => {
    const enrolled = voice(direction(1), 8);
    const grown = grownVoice({ enrolled, sessions: [] }, 4);
    expect(cosine(grown.embedding, enrolled.embedding)).toBeCloseTo(1, 6 /* 32-bit floats */);
    expect(grown).toMatchObject({ netSpeechSeconds: 8, snrDb: 20, bandwidthHz: null });
  });

  test("is more similar to the same person on another day", () => {
    const person = direction(1);
    const enrolled = voice(near(person, 2, 0.9));
    const sessions = [3, 4, 5, 6].map((seed) => member(near(person, seed, 0.9), `s${seed}`, seed));
    const grown = grownVoice({ enrolled, sessions }, 4);
    for (const seed of [7, 8, 9]) {
      const later = near(person, seed, 0.9);
      expect(cosine(grown.embedding, later)).toBeGreaterThan(cosine(enrolled.embedding, later));
    }
  });

  test("an impostor who got in once gains little, and never more than the person, because enrollment has half the weight", () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.integer({ min: 1, max: 8 }), (seed, most) => {
        const [person, impostor] = [direction(2 * seed + 1), direction(2 * seed + 2)];
        const enrolled = voice(person);
        const others = Array.from({ length: most - 1 }, (_, i) =>
          member(near(person, 5000 + seed + i, 0.3), `s${i}`, i),
        );
        const before = grownVoice({ enrolled, sessions: others }, most);
        const after = grownVoice({ enrolled, sessions: [...others, member(impostor, "x", 99)] }, most);
        // Each of `most` sessions has a weight of 1 / (2 · most); a single one, with `most` = 1, has a half.
        const gain = cosine(after.embedding, impostor) - cosine(before.embedding, impostor);
        expect(gain).toBeLessThan(1.5 / most);
        if (most > 1) expect(cosine(after.embedding, person)).toBeGreaterThan(cosine(after.embedding, impostor));
      }),
    );
  });

  test("two sessions that disagree both count, because it is unknown which is the person's", () => {
    const person = direction(1);
    const sessions = [member(near(person, 3, 0.3), "own", 1), member(direction(2), "other", 2)];
    expect(grownVoice({ enrolled: voice(person), sessions }, 4).netSpeechSeconds).toBe(12);
  });

  test("voices that cancel each other out give zeros, not NaN", () => {
    const person = direction(1);
    const opposite = member(
      person.map((x) => -x),
      "opposite",
      1,
    );
    const { embedding } = grownVoice({ enrolled: voice(person), sessions: [opposite] }, 1);
    expect(embedding.every((x) => x === 0)).toBe(true);
  });

  test("an impostor who got in has no weight once there are two calls of the person", () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.integer({ min: 2, max: 6 }), fc.nat(6), (seed, own, at) => {
        const [person, impostor] = [direction(2 * seed + 1), direction(2 * seed + 2)];
        fc.pre(cosine(person, impostor) < 0.5);
        const enrolled = voice(near(person, seed, 0.3));
        const sessions = Array.from({ length: own }, (_, i) => member(near(person, 5000 + seed + i, 0.3), `s${i}`, i));
        const poisoned = [...sessions.slice(0, at), member(impostor, "x", 99), ...sessions.slice(at)];
        expect(grownVoice({ enrolled, sessions: poisoned }, 8)).toEqual(grownVoice({ enrolled, sessions }, 8));
      }),
    );
  });

  test("in a print full of an impostor's calls, the enrolled voice still has at least half the weight", () => {
    const [person, impostor] = [direction(1), direction(2)];
    const sessions = [1, 2, 3, 4].map((i) => member(impostor, `x${i}`, i));
    const grown = grownVoice({ enrolled: voice(person), sessions }, 4);
    expect(cosine(grown.embedding, person)).toBeGreaterThanOrEqual(cosine(grown.embedding, impostor) - 1e-6);
  });
});
