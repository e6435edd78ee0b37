/** Messages between a socket and its reader: bounded, in order, and ended as the socket ended. */
import { describe, expect, test, vi } from "vitest";
import { MessageQueue } from "../../src/server/message-queue.js";

const flow = () => ({ pause: vi.fn(), resume: vi.fn() });
const readerOf = (queue: MessageQueue<number>) => queue[Symbol.asyncIterator]();
const done = { done: true, value: undefined };
const read = (value: number) => ({ done: false, value });

describe("a queue", () => {
  test("pauses its sender when it is full, and resumes it when half has been read", async () => {
    const socket = flow();
    const queue = new MessageQueue<number>(4, socket);
    const reader = readerOf(queue);
    for (const message of [1, 2, 3]) queue.push(message);
    expect(socket.pause).not.toHaveBeenCalled();
    // Messages that were already under way when the sender was paused are kept.
    for (const message of [4, 5]) queue.push(message);
    expect(socket.pause).toHaveBeenCalledTimes(1);
    for (const message of [1, 2]) expect(await reader.next()).toEqual(read(message));
    expect(socket.resume).not.toHaveBeenCalled();
    expect(await reader.next()).toEqual(read(3));
    expect(socket.resume).toHaveBeenCalledTimes(1);
    for (const message of [4, 5]) expect(await reader.next()).toEqual(read(message));
    expect(socket.resume).toHaveBeenCalledTimes(1);
  });

  test("pauses its sender also when few messages have too many bytes", async () => {
    const socket = flow();
    const queue = new MessageQueue<number>(100, socket, (bytes) => bytes, 10);
    const reader = readerOf(queue);
    queue.push(4);
    expect(socket.pause).not.toHaveBeenCalled();
    queue.push(6);
    queue.push(1);
    expect(socket.pause).toHaveBeenCalledTimes(1);
    expect(await reader.next()).toEqual(read(4));
    expect(socket.resume).not.toHaveBeenCalled();
    expect(await reader.next()).toEqual(read(6));
    expect(socket.resume).toHaveBeenCalledTimes(1);
    queue.push(20);
    expect(socket.pause).toHaveBeenCalledTimes(2);
    queue.fail(new Error("over"));
    expect(socket.resume).toHaveBeenCalledTimes(2);
  });

  test("is full when as many messages wait as it has places", async () => {
    const queue = new MessageQueue<number>(2, null);
    const reader = readerOf(queue);
    queue.push(1);
    expect(queue.isFull).toBe(false);
    queue.push(2);
    expect(queue.isFull).toBe(true);
    await reader.next();
    expect(queue.isFull).toBe(false);
  });

  test("passes a message to a waiting reader", async () => {
    const queue = new MessageQueue<number>(1, null);
    const waiting = readerOf(queue).next();
    queue.push(1);
    expect(queue.isFull).toBe(false);
    expect(await waiting).toEqual(read(1));
  });

  test("can still be read after its end, but takes no new messages", async () => {
    const queue = new MessageQueue<number>(4, null);
    queue.push(1);
    queue.end();
    queue.push(2);
    const reader = readerOf(queue);
    expect([await reader.next(), await reader.next()]).toEqual([read(1), done]);
  });

  test("gives its reader the error after a failure, not the waiting messages", async () => {
    const queue = new MessageQueue<number>(4, null);
    queue.push(1);
    queue.fail(new Error("the line broke"));
    queue.end();
    await expect(readerOf(queue).next()).rejects.toThrow("the line broke");
  });

  test("lets a paused sender go on once nobody reads any more", async () => {
    const socket = flow();
    const queue = new MessageQueue<number>(2, socket);
    for (const message of [1, 2]) queue.push(message);
    await readerOf(queue).return!();
    expect([socket.pause, socket.resume].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
    queue.push(3);
    expect(queue.isFull).toBe(false);
    await expect(readerOf(queue).next()).rejects.toThrow("the reader closed the stream");
  });

  test("tells a waiting reader of its end or failure", async () => {
    const [ended, failed] = [new MessageQueue<number>(4, null), new MessageQueue<number>(4, null)];
    const waiting = [readerOf(ended).next(), readerOf(failed).next()];
    ended.end();
    failed.fail(new Error("the line broke"));
    expect(await waiting[0]).toEqual(done);
    await expect(waiting[1]).rejects.toThrow("the line broke");
  });
});
