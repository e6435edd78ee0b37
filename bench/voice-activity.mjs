// Compares voice activity frame by frame with the Silero network in @ricky0123/vad-web, run by onnxruntime.
// DEV speech with pauses in between, in noise at 20 and 5 dB SNR; and sounds without speech.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import wavefile from "wavefile";
import { noise } from "../dist/demo/voice.js";

const rateHz = 16000;
const takes = 3;
const takeSeconds = 30;
const hop = 160;
const chunk = 512;
const holdMusic = "/usr/share/asterisk/moh";

/** Our decision for every frame: 1 means speech. */
function ours(kernels, x) {
  kernels.streamStart(rateHz, 0, 0);
  const marks = [];
  const note = () => {
    const ring = new Uint8Array(kernels.memory.buffer, kernels.marksPtr(), kernels.marksCapacity());
    while (marks.length < kernels.streamDecidedFrames()) marks.push(ring[marks.length % ring.length]);
  };
  for (let from = 0; from < x.length; from += rateHz) {
    const part = x.subarray(from, from + rateHz);
    new Float32Array(kernels.memory.buffer, kernels.inputPtr(), part.length).set(part);
    for (let at = 0; at < part.length; ) {
      at += kernels.streamPush(at, part.length - at);
      kernels.streamTake();
      note();
    }
  }
  kernels.streamFinish();
  note();
  return marks;
}

/** Silero's decision for the chunk that holds the middle of each of our frames. */
async function silero({ Tensor, session }, x, frames) {
  let state = new Tensor("float32", new Float32Array(2 * 128), [2, 1, 128]);
  const sr = new Tensor("int64", BigInt64Array.of(BigInt(rateHz)), []);
  const speech = [];
  for (let at = 0; at + chunk <= x.length; at += chunk) {
    // It also gets 64 samples of the previous chunk.
    const heard = new Float32Array(64 + chunk);
    heard.set(x.subarray(Math.max(0, at - 64), at + chunk), at === 0 ? 64 : 0);
    const { output, stateN } = await session.run({ input: new Tensor("float32", heard, [1, heard.length]), state, sr });
    state = stateN;
    speech.push(output.data[0] > 0.5 ? 1 : 0);
  }
  return Array.from(
    { length: frames },
    (_, f) => speech[Math.min(Math.floor((f * hop + 200) / chunk), speech.length - 1)],
  );
}

function read(path) {
  const file = new wavefile.WaveFile(readFileSync(path));
  if (file.fmt.sampleRate !== rateHz) file.toSampleRate(rateHz, { method: "sinc", LPF: true });
  const samples = file.getSamples(false, Float64Array);
  return Float32Array.from(Array.isArray(samples) ? samples[0] : samples, (x) => x / 32768);
}

/** A pseudo-random sequence in 0..1, the same in every run. */
function chances(seed) {
  let x = seed;
  return () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x / 2 ** 32;
  };
}

/** Recordings of a set one after the other, with pauses of 0.2 to 1.2 s. */
function strung(paths, chance) {
  const x = new Float32Array(takeSeconds * rateHz);
  for (let at = rateHz / 2; at < x.length; at += rateHz * (0.2 + chance())) {
    const part = read(paths[Math.floor(chance() * paths.length)]);
    x.set(part.subarray(0, x.length - Math.ceil(at)), Math.ceil(at));
    at += part.length;
  }
  return x;
}

function inNoise(x, speech, snrDb, seed) {
  const power = (from, counts) => {
    let sum = 0;
    let samples = 0;
    from.forEach((value, i) => {
      if (!counts(i)) return;
      sum += value ** 2;
      samples++;
    });
    return sum / Math.max(1, samples);
  };
  const colour = ["white", "pink", "brown"][seed % 3];
  const around = noise(takeSeconds, rateHz, seed, -30, colour);
  const wanted = power(x, (i) => speech[Math.min(Math.floor(i / hop), speech.length - 1)] === 1) / 10 ** (snrDb / 10);
  const gain = Math.sqrt(wanted / power(around, () => true));
  return x.map((value, i) => value + gain * around[i]);
}

function tones(kind, chance) {
  const x = new Float32Array(takeSeconds * rateHz);
  const pick = (list) => list[Math.floor(chance() * list.length)];
  for (let at = 0; at < x.length; ) {
    const dtmf = kind === "DTMF";
    const pair = dtmf
      ? [pick([697, 770, 852, 941]), pick([1209, 1336, 1477, 1633])]
      : [pick([350, 425, 440, 950]), pick([440, 480, 620, 1400])];
    const length = Math.round(rateHz * (dtmf ? 0.06 + 0.2 * chance() : 0.3 + 2 * chance()));
    for (let i = at; i < Math.min(x.length, at + length); i++) {
      for (const hz of pair) x[i] += 0.1 * Math.sin((2 * Math.PI * hz * i) / rateHz);
    }
    at += length + Math.round(rateHz * (dtmf ? 0.04 + 0.2 * chance() : 0.2 + 2 * chance()));
  }
  return x;
}

function wavs(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".wav"))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** Rows { sound, frames, agreement, speech, target, met }; agreement is null for sounds without speech. */
export async function voiceActivity(corpora, sets) {
  const { InferenceSession, Tensor } = await import("onnxruntime-node");
  const network = fileURLToPath(import.meta.resolve("@ricky0123/vad-web/dist/silero_vad_v6.onnx"));
  const session = await InferenceSession.create(network, { intraOpNumThreads: 1 });
  const { instance } = await WebAssembly.instantiate(
    readFileSync(new URL("../dist/engine/vivavoce.wasm", import.meta.url)),
    {},
  );
  const kernels = instance.exports;
  kernels.seal();
  const rows = [];
  const count = (list, of) => list.reduce((n, value, i) => n + (of(value, i) ? 1 : 0), 0);

  for (const set of sets) {
    const paths = wavs(join(corpora, set));
    const sums = { 20: [0, 0, 0], 5: [0, 0, 0] };
    for (let take = 0; take < takes; take++) {
      const clean = strung(paths, chances(take + 1));
      const frames = Math.floor((clean.length - 400) / hop) + 1;
      const spoken = await silero({ Tensor, session }, clean, frames);
      for (const snrDb of [20, 5]) {
        const x = inNoise(clean, spoken, snrDb, take);
        const [mine, theirs] = [ours(kernels, x), await silero({ Tensor, session }, x, frames)];
        const sum = sums[snrDb];
        sum[0] += frames;
        sum[1] += count(theirs, (on, f) => on === mine[f]);
        sum[2] += count(mine, (on) => on === 1);
      }
    }
    for (const [snrDb, least] of [
      [20, 0.9],
      [5, 0.85],
    ]) {
      const [frames, same, speech] = sums[snrDb];
      rows.push({
        sound: `${set}, noise ${snrDb} dB below`,
        frames,
        agreement: same / frames,
        speech: speech / frames,
        target: `≥ ${100 * least} % agree`,
        met: same / frames >= least,
      });
    }
  }

  const silent = [];
  for (let i = 0; i < 6; i++)
    silent.push(["noise", noise(takeSeconds, rateHz, 50 + i, -45 + 6 * i, ["white", "pink", "brown"][i % 3])]);
  for (let i = 0; i < 3; i++)
    silent.push(["tones", tones("call progress", chances(90 + i))], ["DTMF", tones("DTMF", chances(70 + i))]);
  if (existsSync(holdMusic))
    for (const path of wavs(holdMusic)) silent.push(["music on hold", read(path).subarray(0, 60 * rateHz)]);
  else console.error("no music on hold: asterisk-moh-opsound-wav is not installed");
  for (const sound of new Set(silent.map(([name]) => name))) {
    const marks = silent.filter(([name]) => name === sound).flatMap(([, x]) => ours(kernels, x));
    const speech = count(marks, (on) => on === 1) / marks.length;
    const most = sound === "music on hold" ? 0.1 : 0.01;
    rows.push({
      sound,
      frames: marks.length,
      agreement: null,
      speech,
      target: `≤ ${100 * most} % speech`,
      met: speech <= most,
    });
  }
  return rows;
}
