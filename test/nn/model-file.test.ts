import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { modelFile, NETWORK, RESNET, randomModel, randomTensors, section } from "../../bench/nn/random-model.mjs";
import { readModelFile, tensorValues } from "../../src/engine/model-file.js";
import { ModelFileError, type ModelFileErrorCode } from "../../src/engine/model-file-error.js";
import { speakerTensors } from "../../src/engine/speaker-tensors.js";

const tensors = randomTensors(speakerTensors("campplus-1"), 1);
const network = { name: "network", bytes: section(NETWORK, tensors) };
const floats = (name: string, values: number[]) => ({
  name,
  dtype: "f32",
  shape: [values.length],
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});
const voiceClass = {
  name: "voice-class",
  bytes: section({}, [floats("axis", [0.5, -0.5]), floats("quantiles", [-1, 0, 1])]),
};
const calibration = { name: "calibration", bytes: section({ terms: [["one", "one", -3]] }, []) };
const whole: Uint8Array = modelFile([network, voiceClass, calibration]);

async function refusal(bytes: Uint8Array): Promise<ModelFileErrorCode> {
  try {
    await readModelFile(bytes);
  } catch (error) {
    if (error instanceof ModelFileError && error.message.length > 20) return error.code;
    throw error;
  }
  throw new Error("the file was accepted");
}

/** The same file with a valid digest, as a forger would write it. */
function resealed(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  copy.set(createHash("sha256").update(copy.subarray(0, -32)).digest(), copy.length - 32);
  return copy;
}

describe("a model file", () => {
  test("gives back its tensors, sections and revision", async () => {
    const model = await readModelFile(whole);
    expect(model.family).toBe("random");
    expect(model.revision).toBe(createHash("sha256").update(network.bytes).digest("hex"));
    expect(model.network.tensors).toHaveLength(tensors.length);
    for (const [i, tensor] of model.network.tensors.entries()) {
      expect(Buffer.compare(tensor.bytes, tensors[i]!.bytes), tensor.name).toBe(0);
      expect((tensor.bytes.byteOffset - whole.byteOffset) % 16).toBe(0);
    }
    expect(model.voiceClass).toEqual({ axis: Float32Array.of(0.5, -0.5), quantiles: Float32Array.of(-1, 0, 1) });
    expect(model.calibration).toMatchObject({ terms: [["one", "one", -3]] });
    expect(tensorValues(model.network.tensors[0]!)).toEqual(new Int16Array(tensors[0]!.bytes.buffer));
  });

  test("has the same revision with another calibration, and another with another weight", async () => {
    const alone = await readModelFile(modelFile([network]));
    expect(alone.revision).toBe((await readModelFile(whole)).revision);
    expect(alone.calibration).toBeNull();
    const other = { name: "network", bytes: section(NETWORK, randomTensors(speakerTensors("campplus-1"), 2)) };
    expect((await readModelFile(modelFile([other]))).revision).not.toBe(alone.revision);
  });

  test("is read from the middle of a larger buffer", async () => {
    const room = new Uint8Array(whole.length + 48);
    room.set(whole, 16);
    expect((await readModelFile(room.subarray(16, 16 + whole.length))).revision).toBe(
      (await readModelFile(whole)).revision,
    );
  });
});

test("a ResNet34 model file describes itself and its front end", async () => {
  const model = await readModelFile(randomModel(speakerTensors("resnet34-1"), 1, RESNET));
  expect(model).toMatchObject({ architecture: "resnet34-1", frontEnd: { rows: "hamming", floor: 1e-6 } });
  expect(await readModelFile(whole)).toMatchObject({ architecture: "campplus-1", frontEnd: { rows: "mel" } });
});

describe("refused, with the reason:", () => {
  test("bytes that are not a model", async () => {
    expect(await refusal(new Uint8Array())).toBe("NOT_A_MODEL");
    expect(await refusal(new TextEncoder().encode("RIFF….WAVEfmt and a long tail of other things"))).toBe(
      "NOT_A_MODEL",
    );
  });

  test("another version", async () => {
    expect(await refusal(modelFile([network], { version: 2 }))).toBe("OTHER_VERSION");
  });

  test("every truncation", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 8, max: whole.length - 1 }), async (length) => {
        expect(await refusal(whole.subarray(0, length))).toBe("TRUNCATED");
      }),
      { numRuns: 60, examples: [[8], [15], [16], [17], [100], [whole.length - 1]] },
    );
  });

  test("any altered byte", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: whole.length - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (at, bits) => {
          const copy = whole.slice();
          copy[at]! ^= bits;
          const allowed =
            at < 8 ? ["NOT_A_MODEL"] : at < 12 ? ["OTHER_VERSION"] : ["ALTERED", "TRUNCATED", "MALFORMED"];
          expect(allowed).toContain(await refusal(copy));
        },
      ),
      {
        numRuns: 25,
        examples: [
          [0, 1],
          [9, 1],
          [12, 1],
          [20, 1],
          [whole.length - 1, 1],
        ],
      },
    );
  });

  test("bytes after the end", async () => {
    const longer = new Uint8Array(whole.length + 1);
    longer.set(whole);
    expect(await refusal(longer)).toBe("ALTERED");
  });

  test("a swapped section with a valid file digest", async () => {
    const copy = whole.slice();
    copy[copy.length - 100]! ^= 1;
    expect(await refusal(resealed(copy))).toBe("ALTERED");
  });

  test("another architecture", async () => {
    const other = section({ ...NETWORK, architecture: "resnet-34" }, tensors);
    expect(await refusal(modelFile([{ name: "network", bytes: other }]))).toBe("OTHER_ARCHITECTURE");
  });

  test("the tensors of the other architecture", async () => {
    const other = section({ ...NETWORK, architecture: "resnet34-1" }, tensors);
    expect(await refusal(modelFile([{ name: "network", bytes: other }]))).toBe("MALFORMED");
  });

  test.each([
    [{ window: "hann" }, "window must be povey or hamming, got hann"],
    [{ window: "constructor" }, "window must be povey or hamming, got constructor"],
    [{ rateHz: 8000 }, "rateHz must be 16000, got 8000"],
    [{ bins: 64 }, "bins must be 80, got 64"],
    [{ relativeFloor: -1 }, "relativeFloor must be at least 0 and below 1, got -1"],
    [{ relativeFloor: null }, "relativeFloor must be at least 0 and below 1, got null"],
  ])("a front end with %j", async (frontEnd, words) => {
    const other = section({ ...NETWORK, frontEnd }, tensors);
    await expect(readModelFile(modelFile([{ name: "network", bytes: other }]))).rejects.toThrow(
      `this engine cannot compute the model's front end: ${words}`,
    );
  });

  test.each([
    ["no network", () => modelFile([voiceClass])],
    ["a missing tensor", () => modelFile([{ name: "network", bytes: section(NETWORK, tensors.slice(1)) }])],
    [
      "tensors in another order",
      () => modelFile([{ name: "network", bytes: section(NETWORK, [...tensors].reverse()) }]),
    ],
    [
      "a tensor of another shape",
      () => {
        const [first, ...rest] = tensors;
        return modelFile([{ name: "network", bytes: section(NETWORK, [{ ...first, shape: [3, 32, 4] }, ...rest]) }]);
      },
    ],
    [
      "a shape that its bytes do not fill",
      () => {
        const [first, ...rest] = tensors;
        return modelFile([{ name: "network", bytes: section(NETWORK, [{ ...first, shape: [32, 3, 5] }, ...rest]) }]);
      },
    ],
    ["a section twice", () => modelFile([network, voiceClass, voiceClass])],
    ["a header without sections", () => modelFile([network], { sections: null })],
    [
      "sections beyond the file",
      () => modelFile([network], { sections: [{ name: "network", offset: 0, bytes: 2 ** 40, sha256: "" }] }),
    ],
    ["no front end", () => modelFile([{ name: "network", bytes: section({ architecture: "campplus-1" }, tensors) }])],
  ])("%s", async (_, build) => {
    expect(await refusal(build())).toBe("MALFORMED");
  });

  test("a page without WebCrypto", async () => {
    const { crypto } = globalThis;
    Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true });
    try {
      expect(await refusal(whole)).toBe("NO_DIGEST");
    } finally {
      Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
    }
  });
});
