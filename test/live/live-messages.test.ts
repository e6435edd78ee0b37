/** Packets of a call are joined in order before its check, and none is lost. */
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type ListenRequest, ListenRequestSchema } from "../../src/contract/index.js";
import { LiveMessages } from "../../src/server/live-messages.js";

const mulaw = { encoding: "mulaw", rate: 8000, channels: 1 };
const key = create(ListenRequestSchema, { content: { case: "dtmf", value: "5" } });
const packet = (length: number, value = 1) => new Uint8Array(length).fill(value);

async function read(messages: LiveMessages): Promise<ListenRequest["content"][]> {
  messages.end();
  const found: ListenRequest["content"][] = [];
  for await (const { content } of messages) found.push(content);
  return found;
}

const audioOf = (found: readonly ListenRequest["content"][]): Uint8Array[] =>
  found.flatMap((content) => (content.case === "audio" ? [content.value] : []));

it("packets of 20 ms are joined in fives, the rest at the end", async () => {
  const messages = new LiveMessages(64, null);
  messages.expect(mulaw);
  for (let i = 0; i < 12; i++) messages.audio(packet(160));
  expect(audioOf(await read(messages)).map(({ length }) => length)).toEqual([800, 800, 320]);
});

it("a packet does not wait for the next if they do not fit together", async () => {
  const messages = new LiveMessages(64, null);
  messages.expect(mulaw);
  const reading = messages[Symbol.asyncIterator]();
  for (let i = 0; i < 3; i++) messages.audio(packet(240));
  messages.audio(packet(300));
  expect((await reading.next()).value.content.value).toHaveLength(720);
  messages.audio(packet(500));
  expect((await reading.next()).value.content.value).toHaveLength(300);
  expect((await reading.next()).value.content.value).toHaveLength(500);
});

it("a pressed key keeps its position in the audio", async () => {
  const messages = new LiveMessages(64, null);
  messages.expect(mulaw);
  messages.audio(packet(160));
  messages.push(key);
  messages.audio(packet(160));
  expect((await read(messages)).map((content) => content.case)).toEqual(["audio", "dtmf", "audio"]);
});

it("tiny packets are counted individually, and nothing is joined while the format is unknown", async () => {
  const messages = new LiveMessages(64, null);
  messages.audio(packet(160));
  messages.expect(mulaw);
  for (let i = 0; i < 3; i++) messages.audio(packet(31));
  for (let i = 0; i < 3; i++) messages.audio(packet(32));
  messages.expect({ encoding: "opus", rate: 8000, channels: 1 });
  messages.audio(packet(160));
  expect(audioOf(await read(messages)).map(({ length }) => length)).toEqual([160, 31, 31, 31, 96, 160]);
});

it("no byte is lost, changed or moved, whatever the packets", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(1000), { maxLength: 60 }), async (lengths) => {
      const messages = new LiveMessages(1000, null);
      messages.push(create(ListenRequestSchema, { content: { case: "start", value: mulaw } }));
      const sent = lengths.map((length, i) => packet(length, i + 1));
      for (const [i, bytes] of sent.entries()) {
        if (i % 2 === 0) messages.audio(bytes);
        else messages.push(create(ListenRequestSchema, { content: { case: "audio", value: bytes } }));
        // The socket reuses the memory for the next packet.
        bytes.fill(0);
      }
      const expected = lengths.flatMap((length, i) => Array.from(packet(length, i + 1)));
      expect(audioOf(await read(messages)).flatMap((bytes) => Array.from(bytes))).toEqual(expected);
    }),
  );
});

it("packets are joined to a tenth of a second, whatever the format", async () => {
  for (const [format, packetBytes, joined] of [
    [{ encoding: "pcm16", rate: 8000, channels: 2 }, 640, 3200],
    [{ encoding: "pcm16", rate: 16_000, channels: 1 }, 640, 3200],
    [{ encoding: "mulaw", rate: 8000, channels: 0 }, 160, 800],
    // Nobody speaks so fast: not worth the memory.
    [{ encoding: "pcm16", rate: 10_000_000, channels: 1 }, 160, 160],
  ] as const) {
    const messages = new LiveMessages(64, null);
    messages.push(create(ListenRequestSchema, { content: { case: "start", value: format } }));
    for (let i = 0; i < 5; i++)
      messages.push(create(ListenRequestSchema, { content: { case: "audio", value: packet(packetBytes) } }));
    expect(audioOf(await read(messages))[0]).toHaveLength(joined);
  }
});

it("a sender is paused when a megabyte waits, and goes on when half of it was read", async () => {
  const flow: string[] = [];
  const messages = new LiveMessages(64, { pause: () => flow.push("pause"), resume: () => flow.push("resume") });
  messages.audio(packet(2 ** 20 - 1));
  expect(flow).toEqual([]);
  messages.audio(packet(1));
  expect(flow).toEqual(["pause"]);
  await messages[Symbol.asyncIterator]().next();
  expect(flow).toEqual(["pause", "resume"]);
});

it("audio that a sender cannot hold back is lost audio for the reader, where it is missing", async () => {
  const messages = new LiveMessages(2, null);
  messages.expect({ encoding: "l16", rate: 8000, channels: 1 });
  const reading = messages[Symbol.asyncIterator]();
  for (let i = 1; i <= 4; i++) messages.audio(packet(1600, i));
  messages.push(create(ListenRequestSchema, { content: { case: "lostSamples", value: 100 } }));
  expect(messages.droppedSamples).toBe(1600);
  await reading.next();
  messages.audio(packet(1600, 5));
  messages.audio(packet(1600, 6));
  expect(messages.droppedSamples).toBe(2400);
  const left = await read(messages);
  expect(left.map(({ case: kind, value }) => (kind === "audio" ? value[0] : value))).toEqual([2, 1700, 5, 800]);
});

it("a sender that can be paused loses nothing", async () => {
  const messages = new LiveMessages(2, { pause() {}, resume() {} });
  messages.expect(mulaw);
  for (let i = 1; i <= 4; i++) messages.audio(packet(800, i));
  expect(messages.droppedSamples).toBe(0);
  expect(audioOf(await read(messages)).map(([value]) => value)).toEqual([1, 2, 3, 4]);
});
