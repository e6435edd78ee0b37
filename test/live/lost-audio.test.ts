/** The replacement for lost audio, tested on a tone whose next samples are known. */
import { expect, test } from "vitest";
import { LostAudio } from "../../src/processor/live/lost-audio.js";

const rateHz = 8000;
const toneAt = (i: number) => Math.sin((2 * Math.PI * 100 * i) / rateHz);

function heard(samples: number, level = 1): LostAudio {
  const lost = new LostAudio(rateHz);
  lost.keep(Float32Array.from({ length: samples }, (_, i) => level * toneAt(i)));
  return lost;
}

test.each([1, 0.01])("repeats the last period of a tone with amplitude %f, and has faded out after 60 ms", (level) => {
  const filled = heard(800, level).fill(640);
  for (let i = 0; i < 80; i++)
    expect(Math.abs(filled[i]! / level - toneAt(800 + i))).toBeLessThan(1e-5 /* 32-bit floats */);
  // Halfway between 10 and 60 ms it is half as loud.
  expect(filled[300]! / level / toneAt(1100)).toBeCloseTo((480 - 300) / 400, 4);
  expect(filled.subarray(480).every((x) => x === 0)).toBe(true);
});

test("is the same whether the audio before came in one piece or in short packets", () => {
  const inPackets = new LostAudio(rateHz);
  for (let from = 0; from < 800; from += 40)
    inPackets.keep(Float32Array.from({ length: 40 }, (_, i) => toneAt(from + i)));
  expect(inPackets.fill(160)).toEqual(heard(800).fill(160));
});

test("is at most a fifth of a second long, and silent if too little audio came before", () => {
  expect(heard(800).fill(80_000)).toHaveLength(1600);
  expect(
    heard(100)
      .fill(160)
      .every((x) => x === 0),
  ).toBe(true);
});

test("needs the longest pitch period and 10 ms before the gap", () => {
  const needed = Math.ceil((1 / 66 + 0.01) * rateHz);
  const isSilent = (lost: LostAudio) => lost.fill(160).every((x) => x === 0);
  expect([isSilent(heard(needed - 1)), isSilent(heard(needed))]).toEqual([true, false]);
  for (const [samples, silent] of [
    [needed - 1, true],
    [needed, false],
  ] as const) {
    const again = heard(needed);
    again.fill(160);
    again.keep(Float32Array.from({ length: samples }, (_, i) => toneAt(i)));
    expect(isSilent(again)).toBe(silent);
  }
});

test("is silent if the previous gap was filled too", () => {
  const lost = heard(800);
  lost.fill(160);
  expect(lost.fill(160).every((x) => x === 0)).toBe(true);
});

test("is silent after a wipe", () => {
  const lost = heard(800);
  lost.wipe();
  expect(lost.fill(160).every((x) => x === 0)).toBe(true);
});
