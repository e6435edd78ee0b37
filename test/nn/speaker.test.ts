import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { random, randomTensors } from "../../bench/nn/random-model.mjs";
import {
  EMBEDDED,
  NOT_FINITE,
  NOT_LOADED,
  TOO_FEW_FRAMES,
  TOO_MANY_FRAMES,
} from "../../src/engine/gen/kernel-exports.js";
import { FIXED_ARCHITECTURES, type FixedArchitecture, speakerTensors } from "../../src/engine/speaker-tensors.js";
import { COMPILING_MS, compile, Kernels } from "./kernels.js";

const BINS = 80;
const FLOOR = 1e-6;

let wasm: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  wasm = await compile("speaker/abi");
}, COMPILING_MS);

/** Values like log-mel with structure over time and frequency, from integers only: the same bits everywhere. */
function features(frames: number, seed: number): Float32Array {
  const next = random(seed);
  const x = new Float32Array(frames * BINS);
  const walk = new Float32Array(BINS);
  const liveliness = Float32Array.from(walk, () => next() * 6);
  for (let t = 0; t < frames; t++) {
    for (let b = 0; b < BINS; b++) {
      walk[b] = Math.fround(walk[b]! * 0.875) + Math.fround((next() - 0.5) * liveliness[b]!);
      x[t * BINS + b] = walk[b]! - 7;
    }
  }
  return x;
}

function embed(k: Kernels, x: Float32Array): Float32Array {
  k.write(k.run.speakerFeatures!(), x);
  expect(k.run.speakerEmbed!(x.length / BINS)).toBe(EMBEDDED);
  return k.floats(k.run.speakerEmbedding!(), k.run.speakerDimensions!());
}

const sha256 = (x: Float32Array) => createHash("sha256").update(new Uint8Array(x.buffer)).digest("hex");
const cosine = (x: Float32Array, y: Float32Array) => x.reduce((sum, v, i) => sum + v * y[i]!, 0);

/** Embeddings of a number of frames, and the capacity of the network. */
const NETWORKS: Record<FixedArchitecture, { golden: Record<number, string>; mostMegabytes: number }> = {
  "campplus-1": {
    golden: {
      50: "e8059d422673e1c66849a2934399e89cfdf75dbfa024c0fe271f07ddb8ea6b76",
      51: "758149360df7b86be9e19376e6f463826bad946d47018182d99ce48fc9926211",
      200: "3558a9114e0be46c10b994f4248bdb3a11266e1a5943bc876bde3ef7a2dae9a4",
      399: "d0f61dad01c21fe8081dd102b0f514fe3916bc7134dc5ddf7ed40b937cc52159",
    },
    mostMegabytes: 28,
  },
  "resnet34-1": {
    golden: {
      50: "dbdf34362cd89bce311b3f5b808588e25ead8d47b6b5f3f238740fb2b94c2340",
      51: "438ecc49e3b37d6ad7b501ab9217e873a3ef8d22d619e9b0ed3d1833d93d49b2",
      200: "74a91ba62ec2e6b683b758ef578551033e0e07d1dc0dc080b77e157085fd3283",
      399: "c787b6c7892c5b7e93482b0bf34ca2d42c6f37337ade8ff8459372ad0cea80cb",
    },
    mostMegabytes: 44,
  },
};

describe.each(FIXED_ARCHITECTURES)("%s:", (architecture) => {
  const kind = FIXED_ARCHITECTURES.indexOf(architecture);
  const { golden, mostMegabytes } = NETWORKS[architecture];
  const specs = speakerTensors(architecture);
  const tensors: { bytes: Uint8Array }[] = randomTensors(specs, 7);

  function reserved(maxFrames: number): Kernels {
    const k = new Kernels(wasm);
    expect(k.run.speakerReserve!(kind, maxFrames, FLOOR)).toBe(1);
    return k;
  }

  function loaded(maxFrames: number): Kernels {
    const k = reserved(maxFrames);
    for (const [i, { bytes }] of tensors.entries()) {
      k.write(k.run.speakerStaging!(), new Int8Array(bytes.buffer));
      expect(k.run.speakerTake!(i)).toBe(1);
    }
    k.run.seal!();
    return k;
  }

  describe("loading", () => {
    test("asks for the tensors of the model file, in order and size", () => {
      const k = reserved(50);
      const widths = { i8: 1, i16: 2, f32: 4 };
      const bytes = specs.map(({ dtype, shape }) => shape.reduce((product, size) => product * size, widths[dtype]));
      expect(k.run.speakerTensors!()).toBe(specs.length);
      for (const [i, size] of bytes.entries()) expect(k.run.speakerTensorBytes!(i), specs[i]!.name).toBe(size);
      expect(k.run.speakerTensorBytes!(specs.length)).toBe(0);
      expect(k.run.speakerTensorBytes!(-1)).toBe(0);
    });

    test("takes each tensor once and in order, and embeds only after the last", () => {
      const k = reserved(50);
      expect(k.run.speakerTake!(1)).toBe(0);
      expect(k.run.speakerTake!(0)).toBe(1);
      expect(k.run.speakerTake!(0)).toBe(0);
      expect(k.run.speakerReady!()).toBe(0);
      expect(k.run.speakerEmbed!(50)).toBe(NOT_LOADED);
    });

    test("has no tensors before it is reserved", () => {
      const { run } = new Kernels(wasm);
      expect([run.speakerTensors!(), run.speakerTensorBytes!(0), run.speakerTake!(0), run.speakerReady!()]).toEqual([
        0, 0, 0, 0,
      ]);
      expect(run.speakerEmbed!(50)).toBe(NOT_LOADED);
      run.speakerWipe!();
    });

    test("reserves once, for half a second to ten", () => {
      for (const frames of [-1, 0, 49, 1001])
        expect(new Kernels(wasm).run.speakerReserve!(kind, frames, FLOOR)).toBe(0);
      expect(reserved(1000).run.speakerReserve!(kind, 1000, FLOOR)).toBe(0);
    });

    test("reserves nothing for an unknown network or an invalid floor", () => {
      // 2 is a network whose layers are described; here there is no description.
      for (const unknown of [-1, 2, 3]) expect(new Kernels(wasm).run.speakerReserve!(unknown, 400, FLOOR)).toBe(0);
      for (const floor of [Number.NaN, -1e-6, 1])
        expect(new Kernels(wasm).run.speakerReserve!(kind, 400, floor)).toBe(0);
    });

    test(`model and scratch of six seconds stay under ${mostMegabytes} MB`, () => {
      expect(reserved(600).bytes).toBeLessThan(mostMegabytes * 1e6);
    });
  });

  describe("an embedding", () => {
    test("has these bits on every engine", () => {
      const k = loaded(400);
      const got = Object.fromEntries(
        Object.keys(golden).map((n) => [n, sha256(embed(k, features(Number(n), Number(n))))]),
      );
      expect(got).toEqual(golden);
    });

    test("has unit length and depends on the input", () => {
      const k = loaded(300);
      const [a, b] = [embed(k, features(300, 1)), embed(k, features(300, 2))];
      expect(Math.abs(cosine(a, a) - 1)).toBeLessThan(1e-6);
      expect(sha256(a)).not.toBe(sha256(b));
      for (const v of a) expect(Number.isFinite(v)).toBe(true);
    });

    test("does not depend on earlier input or the reserved length", () => {
      const used = loaded(320);
      embed(used, features(320, 3));
      for (const frames of [50, 77, 201, 319]) {
        const x = features(frames, frames);
        expect(sha256(embed(used, x))).toBe(sha256(embed(loaded(frames), x)));
      }
    });

    test("does not change with the level of the recording: a constant added to every bin", () => {
      const k = loaded(120);
      const x = features(120, 5);
      const plain = embed(k, x);
      // The mean is removed in f32: the rest differs by about 2⁻²⁰, which sometimes changes a rounding.
      expect(
        cosine(
          plain,
          embed(
            k,
            x.map((v) => v + 3),
          ),
        ),
      ).toBeGreaterThan(0.9999);
    });

    test("of silence is finite", () => {
      const k = loaded(60);
      const silent = embed(k, new Float32Array(60 * BINS).fill(-15.9));
      for (const v of silent) expect(Number.isFinite(v)).toBe(true);
    });

    test("of features far beyond speech is finite", () => {
      const k = loaded(60);
      const wild = embed(
        k,
        features(60, 9).map((v) => v * 1e30),
      );
      for (const v of wild) expect(Number.isFinite(v)).toBe(true);
    });
  });

  describe("no embedding", () => {
    test("of too few or too many frames", () => {
      const k = loaded(100);
      for (const frames of [-5, 0, 1, 49]) expect(k.run.speakerEmbed!(frames)).toBe(TOO_FEW_FRAMES);
      for (const frames of [101, 2 ** 30]) expect(k.run.speakerEmbed!(frames)).toBe(TOO_MANY_FRAMES);
    });

    test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])("of features with a %d", (bad) => {
      const k = loaded(50);
      for (const at of [0, 1234, 50 * BINS - 1]) {
        const x = features(50, 1);
        x[at] = bad;
        k.write(k.run.speakerFeatures!(), x);
        expect(k.run.speakerEmbed!(50)).toBe(NOT_FINITE);
      }
    });
  });

  test("a forward pass does not grow memory", () => {
    const k = loaded(100);
    const before = k.bytes;
    embed(k, features(100, 1));
    expect(k.bytes).toBe(before);
  });
});
