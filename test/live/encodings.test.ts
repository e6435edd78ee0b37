/** Listen in every encoding, rate and channel gives the same answer as for samples from an independent decoder. */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import wavefile from "wavefile";
import { Decision, type ListenResult, LiveProcessor } from "../../src/contract/index.js";
import { take } from "../processor/fixture-engine.js";
import { pcm16 } from "../processor/world.js";
import { bytesOf, type LiveBox, pieces, startLiveBox, stopLiveBoxes } from "./live-box.js";

let live: LiveBox;
let ada: { value: string };
beforeAll(async () => {
  live = await startLiveBox();
  ada = await live.enroll("ada", 100);
});
afterAll(stopLiveBoxes);

async function verified(
  encoding: string,
  audio: Uint8Array,
  { rate = 8000, channels = 1, channelSelector = {} } = {},
): Promise<Extract<ListenResult["result"], { case: "verify" }>["value"]> {
  const client = createClient(LiveProcessor, createConnectTransport({ baseUrl: live.box.url, httpVersion: "2" }));
  const task = { case: "verify", value: { gkVoiceprintProfileId: ada } } as const;
  const start = {
    context: await live.openSession(),
    encoding,
    rate,
    channels,
    parties: [{ name: "caller", task, channelSelector }],
  };
  const requests = async function* () {
    yield { content: { case: "start", value: start } } as const;
    // Chunks that end inside a sample.
    for (const value of pieces(audio, 501)) yield { content: { case: "audio", value } } as const;
  };
  for await (const { event } of client.listen(requests()))
    if (event.case === "result" && event.value.result.case === "verify") return event.value.result.value;
  throw new Error("no result");
}

const told = ({ decision, authenticationScore, audioDetails }: Awaited<ReturnType<typeof verified>>) => ({
  decision,
  score: authenticationScore?.biometricScore,
  gross: audioDetails?.grossAudio,
  net: audioDetails?.netAudio,
});

const samples = take(100, 2.5);

describe("encodings", () => {
  it.each([
    ["alaw", "toALaw", "fromALaw"],
    ["mulaw", "toMuLaw", "fromMuLaw"],
  ] as const)("%s", async (encoding, encode, decode) => {
    const file = new wavefile.WaveFile();
    file.fromScratch(1, 8000, "16", new Int16Array(bytesOf(samples).buffer));
    file[encode]();
    const coded = new Uint8Array((file as unknown as { data: { samples: Uint8Array } }).data.samples);
    expect(coded.length).toBe(samples.length);
    file[decode]();
    const decoded = Float32Array.from(file.getSamples(false, Int16Array) as unknown as Int16Array, (x) => x / 32768);
    expect(told(await verified(encoding, coded))).toEqual(told(await verified("pcm16", bytesOf(decoded))));
  });

  it("l16 is big-endian, float32 little-endian", async () => {
    const expected = told(await verified("pcm16", bytesOf(samples)));
    expect(expected.decision).toBe(Decision.AUTHENTIC);
    const swapped = Buffer.from(bytesOf(samples)).swap16();
    expect(told(await verified("l16", new Uint8Array(swapped)))).toEqual(expected);
    const floats = new Uint8Array(new Float32Array(samples).buffer);
    expect(told(await verified("float32", floats))).toMatchObject({ decision: Decision.AUTHENTIC, net: expected.net });
  });

  it("a NaN sample is rejected with a clear error", async () => {
    const broken = new Float32Array(samples);
    broken[5000] = Number.NaN;
    await expect(verified("float32", new Uint8Array(broken.buffer))).rejects.toThrow(/not a finite number: NaN/);
  });
});

it.each([16_000, 44_100, 48_000])("%d Hz", async (rate) => {
  const result = await verified("pcm16", bytesOf(new Float32Array(2.5 * rate).fill(0.1)), { rate });
  expect(result).toMatchObject({
    decision: Decision.AUTHENTIC,
    audioDetails: { mediaSamplingRateHz: rate, netAudio: { seconds: 2n } },
  });
});

describe("of two channels", () => {
  const both = pcm16([take(100, 4), take(300, 4)]);
  it.each([
    [{ channel: 1 }, Decision.AUTHENTIC],
    [{ channel: 2 }, Decision.NO_MATCH],
    // The fixture engine takes the mean of both channels for a third voice.
    [{ channel: 0 }, Decision.NO_MATCH],
    [{}, Decision.NO_MATCH],
  ])("%j", async (channelSelector, decision) => {
    const result = await verified("pcm16", both, { channels: 2, channelSelector });
    expect(result).toMatchObject({ decision, audioDetails: { mediaNumberOfChannels: 2 } });
  });
});
