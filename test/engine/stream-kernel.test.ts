import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { Kernels } from "../../src/engine/kernels.js";
import { type FrameRows, type StreamFormat, StreamKernel, type StreamState } from "../../src/engine/stream-kernel.js";
import { utter } from "../voice.js";

const module = new WebAssembly.Module(readFileSync(new URL("../../dist/engine/vivavoce.wasm", import.meta.url)));
const { samples, rateHz } = utter({ speaker: 6, seconds: 9, rateHz: 8000 });

/** The result of one thread, or of several in turn. */
function heard(listeners: readonly StreamKernel[], rows: FrameRows | undefined) {
  const format: StreamFormat = { rateHz, maxSpeechSeconds: 0, windowFrames: 320, ...(rows && { rows }) };
  const windows = [];
  let state: StreamState | null = null;
  for (let at = 0, turn = 0; at < samples.length; at += rateHz, turn++) {
    const part = listeners[turn % listeners.length]!.advance(state, format, samples.subarray(at, at + rateHz));
    state = part.state;
    windows.push(...part.windows);
  }
  const { measures, tail } = listeners[0]!.peek(state, format);
  return { measures, windows: tail ? [...windows, tail] : windows };
}

const listener = () => new StreamKernel(new Kernels(module), 400, "mel");

test("a stream stops where its net speech has reached the requested seconds, however they are rounded", () => {
  const format: StreamFormat = { rateHz, maxSpeechSeconds: 0 };
  const kernel = listener();
  const beyond = (seconds: number) => seconds * (1 + Number.EPSILON);
  for (let frames = 30; frames < 300; frames++) {
    for (const seconds of [frames / 100, beyond(frames / 100)]) {
      const { netSpeechSeconds, rest } = kernel.advance(null, format, samples, seconds);
      expect(netSpeechSeconds, `${seconds} s`).toBeGreaterThanOrEqual(seconds);
      expect(rest).not.toBeNull();
    }
  }
});

test("the speech found so far does not depend on the length of windows, wherever the audio is cut", () => {
  const spoken = (windowFrames: number) => {
    const kernel = listener();
    const found: number[] = [];
    let state: StreamState | null = null;
    for (let at = 0; at < samples.length; at += 256) {
      const format: StreamFormat = { rateHz, maxSpeechSeconds: 0, windowFrames };
      const step = kernel.advance(state, format, samples.subarray(at, at + 256));
      state = step.state;
      found.push(step.netSpeechSeconds);
    }
    return found;
  };
  const inOneWindow = spoken(1000);
  for (const windowFrames of [50, 61, 127]) expect(spoken(windowFrames)).toEqual(inOneWindow);
});

test("the shortest limit of net speech is still a limit", () => {
  const step = listener().advance(null, { rateHz, maxSpeechSeconds: 0.004 }, samples);
  expect(step).toMatchObject({ ended: true, netSpeechSeconds: 0.01 });
});

describe("windows", () => {
  it("have rows of the requested kind, log-mel by default, cut at the same places", () => {
    const [plain, mel, detail] = ([undefined, "mel", "detail"] as const).map((rows) => heard([listener()], rows));
    expect(mel).toEqual(plain);
    expect(plain!.windows[0]!.features.length).toBe(320 * 80);
    expect(detail!.windows[0]!.features.length).toBe(320 * 288);
    expect(detail!.measures).toEqual(plain!.measures);
    const times = ({ windows }: typeof plain & object) => windows.map(({ features: _, ...rest }) => rest);
    expect(times(detail!)).toEqual(times(plain!));
  });

  it("of details are the same when the stream goes from thread to thread", () => {
    const alone = heard([listener()], "detail");
    const inTurn = heard([listener(), listener(), listener()], "detail");
    expect(inTurn.windows.length).toBe(alone.windows.length);
    for (const [i, { features }] of inTurn.windows.entries()) {
      expect(Buffer.compare(Buffer.from(features.buffer), Buffer.from(alone.windows[i]!.features.buffer))).toBe(0);
    }
  });

  it("that the kernels do not support are refused", () => {
    const format: StreamFormat = { rateHz, maxSpeechSeconds: 0, windowFrames: 401, rows: "detail" };
    expect(() => listener().advance(null, format, samples)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
    expect(() => listener().advance(null, { ...format, rateHz: 1 }, samples)).toThrow(
      expect.objectContaining({ code: "BAD_RATE" }),
    );
  });
});

describe("a stop at an amount of speech", () => {
  // Two of them are just above a whole number of frames, as products and sums of seconds often are.
  it.each([0.69, 0.69 + 2 ** -53, 1.38, 1.38 + 2 ** -52])("of %d s has that much", (seconds) => {
    const format: StreamFormat = { rateHz, maxSpeechSeconds: 0 };
    const { rest, netSpeechSeconds } = listener().advance(null, format, samples, seconds);
    expect(rest).not.toBeNull();
    expect(netSpeechSeconds).toBeGreaterThanOrEqual(seconds);
  });
});
