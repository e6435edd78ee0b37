import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { WasmGallery } from "../../src/engine/gallery.js";
import { Kernels } from "../../src/engine/kernels.js";
import { dimensions, dot, kernelsModule, like, random, voice } from "./vectors.js";

function gallery(precision: "int8" | "f32" = "int8"): WasmGallery {
  return new WasmGallery(kernelsModule, dimensions, precision);
}

// Half a step of 8 bits on each of 256 numbers, against a unit vector: about 6e-4 on average, six deviations allowed.
const tolerance = { int8: 4e-3, f32: 1e-6 };

for (const precision of ["int8", "f32"] as const) {
  describe(`${precision} gallery`, () => {
    test("gives the same order and scores as a plain search, over several batches", () => {
      const next = random(1);
      const voices = Array.from({ length: 6000 }, () => voice(next));
      const probe = like(voices[17]!, 0.7, next);
      const searched = gallery(precision);
      for (const [i, embedding] of voices.entries()) searched.set(`v${i}`, embedding);
      const plain = voices
        .map((embedding, i) => ({ id: `v${i}`, raw: dot(embedding, probe) }))
        .sort((a, b) => b.raw - a.raw);
      const found = searched.top(probe, 50);
      expect(found).toHaveLength(50);
      expect(found[0]!.id).toBe("v17");
      const truth = new Map(plain.map(({ id, raw }) => [id, raw]));
      for (const { id, raw } of found) expect(Math.abs(raw - truth.get(id)!)).toBeLessThan(tolerance[precision]);
      // No voice that is clearly better than the last one found is missing.
      const least = found.at(-1)!.raw + 2 * tolerance[precision];
      const ids = new Set(found.map(({ id }) => id));
      for (const { id, raw } of plain) if (raw > least) expect(ids.has(id), id).toBe(true);
      expect(found.map(({ raw }) => raw)).toEqual(found.map(({ raw }) => raw).sort((a, b) => b - a));
      if (precision === "f32") expect(found.map(({ id }) => id)).toEqual(plain.slice(0, 50).map(({ id }) => id));
    });

    test("searching all, a listed half and a full list give the same bits", () => {
      const next = random(2);
      const searched = gallery(precision);
      const ids = Array.from({ length: 5000 }, (_, i) => `v${i}`);
      for (const id of ids) searched.set(id, voice(next));
      const probe = voice(next);
      const all = searched.top(probe, 5000);
      expect(searched.top(probe, 5000, new Set(ids))).toEqual(all);
      const half = new Set(ids.filter((_, i) => i % 2 === 0));
      expect(searched.top(probe, 9, half)).toEqual(all.filter(({ id }) => half.has(id)).slice(0, 9));
      expect(searched.top(probe, 9, new Set(["nobody"]))).toEqual([]);
    });
  });
}

test("any sequence of set and delete has the same result as with a map", () => {
  const next = random(3);
  const voices = Array.from({ length: 12 }, () => voice(next));
  const step = fc.tuple(
    fc.constantFrom("set", "delete"),
    fc.integer({ min: 0, max: 7 }),
    fc.integer({ min: 0, max: 11 }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const searched = gallery();
      const model = new Map<string, number>();
      for (const [kind, person, which] of steps) {
        const id = `p${person}`;
        if (kind === "set") {
          searched.set(id, voices[which]!);
          model.set(id, which);
        } else expect(searched.delete(id)).toBe(model.delete(id));
      }
      expect(searched.size).toBe(model.size);
      const found = searched.top(voices[0]!, 20);
      expect(found.map(({ id }) => id).sort()).toEqual([...model.keys()].sort());
      for (const { id, raw } of found) {
        expect(Math.abs(raw - dot(voices[model.get(id)!]!, voices[0]!))).toBeLessThan(tolerance.int8);
      }
      searched.close();
    }),
    { numRuns: 50 },
  );
});

test("equal scores come in the order of their ids, in whatever order they were stored", () => {
  const embedding = voice(random(4));
  for (const ids of [
    ["a", "b", "c"],
    ["c", "a", "b"],
  ]) {
    const searched = gallery();
    for (const id of ids) searched.set(id, embedding);
    expect(searched.top(embedding, 2).map(({ id }) => id)).toEqual(["a", "b"]);
  }
});

test("a print takes at most 300 bytes", () => {
  const searched = gallery();
  const embedding = voice(random(5));
  const prints = 100_000;
  for (let i = 0; i < prints; i++) searched.set(String(i), embedding);
  expect(searched.memoryBytes / prints).toBeLessThan(300);
});

test("room beyond 4 GiB is refused each time, and a smaller gallery can still grow", () => {
  const { run } = new Kernels(kernelsModule);
  run.reserveGallery(dimensions, 1);
  // Just below 2^32 bytes: with what is reserved already, the end is beyond.
  const most = 64 * Math.floor(2 ** 32 / (64 * (dimensions + 4)));
  for (let i = 0; i < 3; i++) expect(() => run.galleryGrow(most)).toThrow();
  expect(run.galleryCapacity()).toBe(0);
  run.galleryGrow(64);
  expect(run.galleryCapacity()).toBe(64);
});

test("anything but a unit vector of 256 numbers is refused, and so is a closed gallery", () => {
  const searched = gallery();
  const bad = [
    new Float32Array(256),
    new Float32Array(255).fill(1 / 16),
    new Float32Array(256).fill(Number.NaN),
    new Float32Array(256).fill(1),
  ];
  for (const embedding of bad) {
    expect(() => searched.set("x", embedding)).toThrow(expect.objectContaining({ code: "BAD_EMBEDDING" }));
    expect(() => searched.top(embedding, 1)).toThrow(expect.objectContaining({ code: "BAD_EMBEDDING" }));
  }
  expect(searched.top(voice(random(6)), 3)).toEqual([]);
  expect(() => searched.top(voice(random(6)), -1)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
  searched.close();
  expect(() => searched.top(voice(random(6)), 3)).toThrow(expect.objectContaining({ code: "CLOSED" }));
});
