// 80-bin log-mel of a second of speech: compared with the same steps in JavaScript around each peer's FFT.
import { createRequire } from "node:module";
import { kernelsModule, speech } from "./material.mjs";
import { absent, atLeast, atMost, compare } from "./measure.mjs";

const require = createRequire(import.meta.url);
const [frame, hop, points, bins, rate] = [400, 160, 512, 80, 16_000];
const frames = 98;
const floor = 2 ** -23;

const povey = Float32Array.from(
  { length: frame },
  (_, i) => (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (frame - 1))) ** 0.85,
);

function triangles() {
  const mel = (hz) => 1127 * Math.log(1 + hz / 700);
  const step = (mel(rate / 2) - mel(20)) / (bins + 1);
  return Array.from({ length: bins }, (_, bin) => {
    const left = mel(20) + bin * step;
    const weights = [];
    let first = -1;
    for (let k = 0; k < points / 2; k++) {
      const at = (mel((k * rate) / points) - left) / step;
      const weight = at <= 1 ? at : 2 - at;
      if (weight <= 0) continue;
      if (first < 0) first = k;
      weights.push(weight);
    }
    return { first, weights };
  });
}

/** The steps around a transform; compiled separately for each peer, so that types of one peer do not slow down another. */
function pipeline(samples, input, transform) {
  const mels = triangles();
  const starts = Int32Array.from(mels, ({ first }) => first);
  const counts = Int32Array.from(mels, ({ weights }) => weights.length);
  const weights = Float32Array.from(mels.flatMap(({ weights }) => weights));
  const body = `
    const out = new Float32Array(frames * bins), power = new Float32Array(257), x = new Float32Array(frame);
    return () => {
      for (let f = 0; f < frames; f++) {
        const at = f * hop;
        let mean = 0;
        for (let i = 0; i < frame; i++) mean += samples[at + i];
        mean /= frame;
        for (let i = 0; i < frame; i++) x[i] = samples[at + i] - mean;
        for (let i = frame - 1; i > 0; i--) input[i] = (x[i] - 0.97 * x[i - 1]) * window[i];
        input[0] = (x[0] - 0.97 * x[0]) * window[0];
        const spectrum = transform();
        for (let k = 0; k <= 256; k++) power[k] = spectrum[2 * k] * spectrum[2 * k] + spectrum[2 * k + 1] * spectrum[2 * k + 1];
        for (let m = 0, w = 0; m < bins; m++) {
          let sum = 0;
          for (let i = 0; i < counts[m]; i++) sum += weights[w++] * power[starts[m] + i];
          out[f * bins + m] = Math.log(sum > floor ? sum : floor);
        }
      }
      return out;
    }; // ${Math.random()}`;
  const names = [
    "samples",
    "input",
    "transform",
    "window",
    "starts",
    "counts",
    "weights",
    "frames",
    "bins",
    "frame",
    "hop",
    "floor",
  ];
  return new Function(...names, body)(
    samples,
    input,
    transform,
    povey,
    starts,
    counts,
    weights,
    frames,
    bins,
    frame,
    hop,
    floor,
  );
}

function ours(samples) {
  const { exports } = new WebAssembly.Instance(kernelsModule());
  const x = exports.reserve(samples.length * 4);
  const out = exports.reserve(frames * bins * 4);
  const [input, output] = [
    new Float32Array(exports.memory.buffer, x, samples.length),
    new Float32Array(exports.memory.buffer, out, frames * bins),
  ];
  const result = new Float32Array(frames * bins);
  return () => {
    input.set(samples);
    exports.logMel(out, x, samples.length);
    result.set(output);
    return result;
  };
}

const peers = {
  async "pffft-wasm"(samples) {
    const pffft = await (await import("@echogarden/pffft-wasm/simd")).default();
    const setup = pffft._pffft_new_setup(points, 0);
    const [from, to, work] = [0, 1, 2].map(() => pffft._pffft_aligned_malloc(points * 4));
    const input = pffft.HEAPF32.subarray(from / 4, from / 4 + points).fill(0);
    const output = pffft.HEAPF32.subarray(to / 4, to / 4 + points);
    const spectrum = new Float32Array(points + 2);
    return pipeline(samples, input, () => {
      pffft._pffft_transform_ordered(setup, from, to, work, 0);
      spectrum.set(output);
      spectrum[512] = output[1]; // half the sampling rate comes packed with 0 Hz
      spectrum[1] = 0;
      return spectrum;
    });
  },
  async "fft.js"(samples) {
    const FFT = require("fft.js");
    const fft = new FFT(points);
    const input = Array.from({ length: points }, () => 0.5).fill(0);
    const spectrum = fft.createComplexArray();
    return pipeline(samples, input, () => {
      fft.realTransform(spectrum, input);
      return spectrum;
    });
  },
};

/** The peer's own framing, transform, filters and logarithm; the window is the one that our network was trained with. */
async function weSpeaker(samples) {
  const { WeSpeakerFeatureExtractor } = await import("@huggingface/transformers");
  const extractor = new WeSpeakerFeatureExtractor({
    sampling_rate: rate,
    num_mel_bins: bins,
    min_num_frames: 1,
    fbank_centering_span: null,
  });
  extractor.window = Float64Array.from(povey);
  const { data, dims } = (await extractor(samples)).input_features;
  return { data, frames: dims[1] };
}

function centered(values) {
  const out = Float32Array.from(values);
  for (let b = 0; b < bins; b++) {
    let mean = 0;
    for (let f = 0; f < frames; f++) mean += values[f * bins + b] / frames;
    for (let f = 0; f < frames; f++) out[f * bins + b] -= mean;
  }
  return out;
}

const furthest = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);

export default async function frontEnd() {
  // Speech with noise: silence would compare the floors, which differ with the scale of the samples.
  let state = 1;
  const hiss = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 4294967296 - 0.5) * 0.05;
  };
  const samples = speech(3)
    .slice(rate, rate + (frames - 1) * hop + frame)
    .map((value) => value + hiss());
  const work = "log-mel, 80 bins, 98 frames";
  const cases = { ours: ours(samples) };
  const reference = cases.ours().slice();
  const out = [];
  for (const [name, make] of Object.entries(peers)) {
    try {
      cases[name] = await make(samples);
      const apart = furthest(reference, cases[name]());
      if (!(apart < 2e-3)) throw new Error(`${name} gives another result: it differs by ${apart}`);
    } catch (error) {
      delete cases[name];
      out.push(absent(work, name, error));
    }
  }
  try {
    const module = require("meyda");
    const meyda = module.default ?? module;
    Object.assign(meyda, { bufferSize: points, sampleRate: rate, melBands: bins, windowingFunction: "hamming" });
    cases.meyda = () => {
      for (let f = 0; f + 1 < frames; f++) meyda.extract("melBands", samples.subarray(f * hop, f * hop + points));
    };
    cases.meyda();
  } catch (error) {
    delete cases.meyda;
    out.push(absent(work, "meyda", error));
  }
  try {
    const { Essentia, EssentiaWASM } = require("essentia.js");
    const essentia = new Essentia(EssentiaWASM.EssentiaWASM ?? EssentiaWASM);
    const padded = new Float32Array(points);
    cases["essentia.js"] = () => {
      for (let f = 0; f < frames; f++) {
        padded.set(samples.subarray(f * hop, f * hop + frame));
        const vector = essentia.arrayToVector(padded);
        const windowed = essentia.Windowing(vector, false, points, "hamming").frame;
        const { spectrum } = essentia.Spectrum(windowed, points);
        const { bands } = essentia.MelBands(spectrum, 7600, points / 2 + 1, true, 20, "unit_max", bins, rate, "power");
        essentia.vectorToArray(bands);
        for (const held of [vector, windowed, spectrum, bands]) held.delete();
      }
    };
    cases["essentia.js"]();
  } catch (error) {
    delete cases["essentia.js"];
    out.push(absent(work, "essentia.js", error));
  }
  const timed = await compare(cases, "ours", { rounds: 31 });
  const targets = { "pffft-wasm": 4, "fft.js": 9, meyda: 300, "essentia.js": 300 };
  for (const [name, target] of Object.entries(targets)) {
    if (!timed[name]) continue;
    const detail = `${((timed.ours.ms * 1000) / frames).toFixed(2)} µs a frame, ${name} ${((timed[name].ms * 1000) / frames).toFixed(1)} µs`;
    out.push(atLeast(work, name, timed[name].ratio, target, detail));
  }
  try {
    const theirs = await weSpeaker(samples);
    if (theirs.frames !== frames) throw new Error(`it makes ${theirs.frames} frames`);
    const apart = furthest(centered(reference), theirs.data);
    out.push(
      atMost(
        work,
        "WeSpeakerFeatureExtractor, furthest apart",
        apart,
        2e-3,
        "in ln, mean removed; it computes in f64",
        "",
      ),
    );
  } catch (error) {
    out.push(absent(work, "WeSpeakerFeatureExtractor", error));
  }
  return out;
}
