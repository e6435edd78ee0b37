/** After a wipe, a kernel keeps nothing of a voice: its whole memory is the same whoever spoke, and for how long. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { AttackNetworks, attackModelsOf } from "../../src/engine/attack-network.js";
import { calibrationOf } from "../../src/engine/calibration.js";
import { Kernels } from "../../src/engine/kernels.js";
import { readModelFile } from "../../src/engine/model-file.js";
import { Network, weightsOf } from "../../src/engine/network.js";
import type { Voice } from "../../src/engine/port.js";
import { Scoring } from "../../src/engine/scoring.js";
import { accurateModel, shippedModel } from "../../src/engine/shipped-model.js";
import { type FrameRows, StreamKernel } from "../../src/engine/stream-kernel.js";
import { tdnnNetworkOf, tdnnProgram, tdnnTensors } from "../../src/engine/tdnn-layers.js";
import { kernelsModule, random, voice as randomVoice } from "../score/vectors.js";
import { speak } from "../voice.js";

const rateHz = 8000;
const windowFrames = 300;
/** Different in everything: voice, level, length. */
const recordings = [
  speak({ speaker: 1, seconds: 6, rateHz, seed: 1 }),
  speak({ speaker: 7, seconds: 2.5, rateHz, seed: 2, levelDb: -32 }),
];

/** The first window of a recording, or the part that exists. */
function features(samples: Float32Array, rows: FrameRows): Float32Array {
  const kernel = new StreamKernel(new Kernels(kernelsModule), windowFrames, rows);
  const format = { rateHz, maxSpeechSeconds: 0 };
  const { windows, state } = kernel.advance(null, format, samples);
  return (windows[0] ?? kernel.peek(state, format).tail!).features;
}

function differentWords(one: Uint8Array, other: Uint8Array): number {
  const [a, b] = [new Int32Array(one.buffer), new Int32Array(other.buffer)];
  let count = Math.abs(a.length - b.length);
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) count++;
  return count;
}

/** Each voice has its own instance. Before the wipe the instances must differ, otherwise the test shows nothing. */
function expectNothingLeft(instances: readonly Kernels[], wipe: (run: Kernels["run"]) => void): void {
  const compared = () => {
    const [one, other] = instances.map((kernels) => kernels.read(0, kernels.memoryBytes));
    return differentWords(one!, other!);
  };
  expect(compared()).toBeGreaterThan(0);
  for (const { run } of instances) wipe(run);
  expect(compared()).toBe(0);
}

const rowKinds: readonly FrameRows[] = ["mel", "detail", "hamming"];
const ends = ["pushed", "peeked", "finished"] as const;

test.each(rowKinds.flatMap((rows) => ends.map((end) => [rows, end] as const)))(
  "a stream of %s rows, %s",
  (rows, end) => {
    const instances = recordings.map((samples) => {
      const kernels = new Kernels(kernelsModule);
      const { run } = kernels;
      run.streamStart(rateHz, windowFrames, 0, rowKinds.indexOf(rows), 0);
      for (let first = 0; first < samples.length; first += run.inputCapacity()) {
        const chunk = samples.subarray(first, first + run.inputCapacity());
        kernels.writeFloats(run.inputPtr(), chunk);
        for (let at = 0; at < chunk.length; run.streamTake()) at += run.streamPushUntil(at, chunk.length - at, 1e9);
      }
      if (end === "peeked") run.streamPeek();
      if (end === "finished") run.streamFinish();
      return kernels;
    });
    expectNothingLeft(instances, (run) => run.streamWipe());
  },
);

test("a stream over which another one with smaller rows was written back", () => {
  const instances = recordings.map((samples) => {
    const kernels = new Kernels(kernelsModule);
    const { run } = kernels;
    run.streamStart(rateHz, windowFrames, 0, rowKinds.indexOf("mel"), 0);
    const saved = kernels.read(run.streamStatePtr(), run.streamStateBytes());
    run.streamStart(rateHz, windowFrames, 0, rowKinds.indexOf("detail"), 0);
    // Not enough for a decision, so that nothing is in the window yet.
    kernels.writeFloats(run.inputPtr(), samples.subarray(6000, 7024));
    run.streamPush(0, 1024);
    kernels.write(run.streamStatePtr(), saved);
    return kernels;
  });
  expectNothingLeft(instances, (run) => run.streamWipe());
});

test.each(["logMel", "hammingLogMel", "detail"] as const)("%s of a whole recording", (kernel) => {
  const instances = recordings.map((samples) => {
    const kernels = new Kernels(kernelsModule);
    const { run } = kernels;
    const [room, length] = [4 << 20, Math.max(...recordings.map((each) => each.length)) * 4];
    const [x, out] = [run.reserve(length), run.reserve(room)];
    // Not to the end, where all are silent.
    const spoken = samples.subarray(0, Math.round(samples.length / 2));
    kernels.writeFloats(x, spoken);
    run[kernel](out, x, spoken.length);
    // Input and output belong to the caller.
    kernels.write(x, new Uint8Array(length));
    kernels.write(out, new Uint8Array(room));
    return kernels;
  });
  expectNothingLeft(instances, (run) => run.streamWipe());
});

describe.each([shippedModel, accurateModel])("%s", async (name) => {
  const file = await readModelFile(new Uint8Array(readFileSync(new URL(`../../models/${name}`, import.meta.url))));
  const { architecture, frontEnd, program } = file;

  test("the speaker network", () => {
    const weights = weightsOf(file.network.tensors, (bytes) => new Uint8Array(bytes));
    const instances = recordings.map((samples) => {
      const kernels = new Kernels(kernelsModule);
      new Network(kernels, { architecture, frontEnd, program, weights }, windowFrames);
      const x = features(samples, frontEnd.rows);
      kernels.writeFloats(kernels.run.speakerFeatures(), x);
      expect(kernels.run.speakerEmbed(x.length / kernels.run.speakerBins())).toBe(0);
      return kernels;
    });
    expectNothingLeft(instances, (run) => run.speakerWipe());
  });

  test.each(attackModelsOf(file).map(({ kind, rows }, i) => [kind, rows, i] as const))(
    "the network for %s attacks",
    (_, rows, i) => {
      const instances = recordings.map((samples) => {
        const kernels = new Kernels(kernelsModule);
        new AttackNetworks(kernels, attackModelsOf(file));
        const { run } = kernels;
        const x = features(samples, rows);
        kernels.writeFloats(run.attackFeatures(), x);
        const bins = rows === "detail" ? run.detailBins() : run.featureBins();
        expect(run.attackScore(i, x.length / bins)).not.toBeNaN();
        return kernels;
      });
      expectNothingLeft(instances, (run) => run.attackWipe());
    },
  );
});

test("a network whose layers the model file describes, one layer of each kind", () => {
  const at = (line: number) => ({ line, channel: 0 });
  const [inputs, hidden] = [16, 8];
  const read = { inputs, taps: 3, dilation: 2 };
  const network = tdnnNetworkOf({
    lines: [80, 16, 16, 16],
    layers: [
      { kind: "convolution", name: "a", from: at(0), to: at(1), ...read, inputs: 80, outputs: 16, words: true },
      { kind: "depthwise", name: "b", from: at(1), to: at(2), ...read, mirrored: true },
      { kind: "convolution", name: "c", from: at(2), to: at(3), ...read, outputs: 16 },
      { kind: "add", name: "d", from: at(1), second: at(3), to: at(2), inputs },
      { kind: "gate", name: "e", from: at(2), second: at(3), to: at(1), inputs, hidden, rectified: true },
      { kind: "attention", name: "f", from: at(1), inputs, hidden, context: true },
      { kind: "map", name: "g", inputs: 2 * inputs },
    ],
    standardized: true,
  });
  const next = random(9);
  const kinds = { i8: Int8Array, i16: Int16Array, f32: Float32Array };
  const tensors = tdnnTensors(network).map(({ name, dtype, shape }) => {
    const values = new kinds[dtype](shape.reduce((product, size) => product * size, 1));
    const bound = name.endsWith(".low") ? -2000 : name.endsWith(".high") ? 2000 : null;
    const most = dtype === "f32" ? 0.01 : 100;
    for (let i = 0; i < values.length; i++) values[i] = bound ?? most * (dtype === "f32" ? next() : 2 * next() - 1);
    return { bytes: new Uint8Array(values.buffer) };
  });
  const weights = weightsOf(tensors, (bytes) => new Uint8Array(bytes));
  const frontEnd = { floor: 1e-6, rows: "mel" } as const;
  const instances = recordings.map((samples) => {
    const kernels = new Kernels(kernelsModule);
    new Network(kernels, { architecture: "tdnn-1", frontEnd, program: tdnnProgram(network), weights }, windowFrames);
    const x = features(samples, frontEnd.rows);
    kernels.writeFloats(kernels.run.speakerFeatures(), x);
    expect(kernels.run.speakerEmbed(x.length / kernels.run.speakerBins())).toBe(0);
    return kernels;
  });
  expectNothingLeft(instances, (run) => run.speakerWipe());
});

describe("scoring", async () => {
  const revision = "a".repeat(64);
  const model = await readModelFile(
    new Uint8Array(readFileSync(new URL(`../../models/${shippedModel}`, import.meta.url))),
  );
  const people = [3, 4].map((seed): Voice[] => {
    const next = random(seed);
    return Array.from({ length: seed }, () => ({
      embedding: randomVoice(next),
      netSpeechSeconds: 1 + seed * next(),
      snrDb: 20 * next(),
      bandwidthHz: 8000 * next(),
    }));
  });
  const instances = () =>
    people.map((voices) => {
      const kernels = new Kernels(kernelsModule);
      const scoring = new Scoring(kernels, {
        dimensions: 256,
        revision,
        voiceClass: model.voiceClass,
        calibration: calibrationOf(model.calibration),
      });
      return { kernels, scoring, voices };
    });

  test("of segments and windows", () => {
    const made = instances();
    for (const { scoring, voices } of made) {
      scoring.train(voices);
      scoring.summarize(voices.map((voice) => ({ ...voice, speechSeconds: 2, startSeconds: 0, endSeconds: 2 })));
      scoring.scores([{ ...voices[0]!, revision }], voices[1]!);
    }
    for (const { kernels } of made) expect(kernels.run.splitSmallerSpeech()).toBe(0);
    // The class wipes by itself, so its leftovers are put back first.
    for (const { kernels, voices } of made) {
      kernels.writeFloats(kernels.run.scoringRows(), voices[0]!.embedding);
      kernels.writeFloats(kernels.run.scoringProbe(), voices[1]!.embedding);
      kernels.run.setQuality(voices[0]!.netSpeechSeconds, 1, 2, 3, 4, 5);
    }
    expectNothingLeft(
      made.map(({ kernels }) => kernels),
      (run) => run.wipeScoring(),
    );
  });

  test.each([
    ["8 bits", 1],
    ["floats", 0],
  ])("a gallery of %s, its row wiped", (_, eightBits) => {
    const galleries = people.map((voices) => {
      const kernels = new Kernels(kernelsModule);
      const { run } = kernels;
      run.reserveGallery(256, eightBits);
      run.galleryGrow(64);
      kernels.writeFloats(run.galleryInput(), voices[0]!.embedding);
      run.galleryStore(5);
      kernels.writeFloats(run.galleryInput(), voices[1]!.embedding);
      run.galleryQuery();
      expect(run.gallerySearch(0, 64, -1)).toBe(64);
      return kernels;
    });
    expectNothingLeft(galleries, (run) => {
      run.galleryForgetQuery();
      run.galleryWipe(5);
    });
  });
});

test("a voice added to a gallery and removed again leaves nothing", () => {
  const galleries = [5, 6].map((seed) => {
    const kernels = new Kernels(kernelsModule);
    const { run } = kernels;
    run.reserveGallery(256, 1);
    run.galleryGrow(64);
    kernels.writeFloats(run.galleryInput(), randomVoice(random(seed)));
    run.galleryStore(0);
    return kernels;
  });
  expectNothingLeft(galleries, (run) => run.galleryWipe(0));
});
