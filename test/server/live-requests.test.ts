/** The messages of a live call within the limits on time and speed, on a clock that the test moves. */
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type ListenRequest, ListenRequestSchema, StatusCode } from "../../src/contract/index.js";
import { LiveRequests } from "../../src/server/live-requests.js";
import { MessageQueue } from "../../src/server/message-queue.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const audio = (bytes: number) =>
  create(ListenRequestSchema, { content: { case: "audio", value: new Uint8Array(bytes) } });
const start = create(ListenRequestSchema, { content: { case: "start", value: {} } });

function opened(limits = {}, checkStart = () => {}) {
  const messages = new MessageQueue<ListenRequest>(100, null);
  const ended = new AbortController();
  const standard = { liveBytesPerSecond: 1000, liveCallSeconds: 100, liveIdleSeconds: 20 };
  const requests = new LiveRequests(messages, ended, { ...standard, ...limits }, checkStart);
  const reader = requests.received();
  const next = async () => {
    const { done, value } = await reader.next();
    return done ? "done" : value.content.case;
  };
  return { messages, ended, requests, next };
}

it("passes messages on and counts the bytes of audio", async () => {
  const { messages, requests, next } = opened();
  for (const message of [start, audio(300), audio(20)]) messages.push(message);
  messages.end();
  expect([await next(), await next(), await next(), await next()]).toEqual(["start", "audio", "audio", "done"]);
  expect(requests.bytes).toBe(320);
});

it("ends the audio for a waiting reader, and for one that comes later", async () => {
  const waiting = opened();
  const read = waiting.next();
  waiting.requests.endAudio();
  expect([await read, await waiting.next()]).toEqual(["end", "done"]);
  const busy = opened();
  busy.messages.push(start);
  busy.messages.push(audio(1));
  expect(await busy.next()).toBe("start");
  busy.requests.endAudio();
  expect([await busy.next(), await busy.next()]).toEqual(["end", "done"]);
});

it("ends the audio after the longest call", async () => {
  const { next } = opened({ liveIdleSeconds: 1000 });
  let read: unknown = "waiting";
  void next().then((name) => {
    read = name;
  });
  await vi.advanceTimersByTimeAsync(99_999);
  expect(read).toBe("waiting");
  await vi.advanceTimersByTimeAsync(1);
  expect(read).toBe("end");
});

it("refuses a sender that is silent for too long, but not while its last message is processed", async () => {
  const { messages, ended, next } = opened();
  messages.push(start);
  expect(await next()).toBe("start");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ended.signal.aborted).toBe(false);
  const read = next().catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(ended.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await read).toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED, message: "nothing was received for 20 s" });
});

it("does not refuse a sender because the box itself stood still", async () => {
  const { messages, ended, next } = opened();
  const read = next();
  const before = performance.now();
  const clock = vi.spyOn(performance, "now").mockReturnValue(before + 60_000);
  await vi.advanceTimersByTimeAsync(1000);
  clock.mockRestore();
  expect(ended.signal.aborted).toBe(false);
  messages.push(start);
  expect(await read).toBe("start");
});

it("reads no faster than the limit after a burst of five seconds", async () => {
  const { messages, next } = opened({ liveBytesPerSecond: 100 });
  for (const message of [audio(500), audio(0), audio(1)]) messages.push(message);
  expect([await next(), await next()]).toEqual(["audio", "audio"]);
  let read: unknown = "waiting";
  void next().then((name) => {
    read = name;
  });
  // An empty message counts as 32 bytes.
  await vi.advanceTimersByTimeAsync(319);
  expect(read).toBe("waiting");
  await vi.advanceTimersByTimeAsync(1);
  expect(read).toBe("audio");
});

it("a pause saves up for what follows", async () => {
  const { messages, next } = opened({ liveBytesPerSecond: 100 });
  messages.push(audio(500));
  expect(await next()).toBe("audio");
  const afterPause = next();
  await vi.advanceTimersByTimeAsync(1000);
  for (const message of [audio(100), audio(100), audio(1)]) messages.push(message);
  expect([await afterPause, await next()]).toEqual(["audio", "audio"]);
  let read: unknown = "waiting";
  void next().then((name) => {
    read = name;
  });
  await vi.advanceTimersByTimeAsync(999);
  expect(read).toBe("waiting");
  await vi.advanceTimersByTimeAsync(1);
  expect(read).toBe("audio");
});

it("passes on no first message that the caller may not send", async () => {
  const { messages, next } = opened({}, () => {
    throw new Error("another caller's scope");
  });
  messages.push(start);
  await expect(next()).rejects.toThrow("another caller's scope");
  expect(vi.getTimerCount()).toBe(0);
});
