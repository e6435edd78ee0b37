import { create, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it, vi } from "vitest";
import { stackOf } from "../../src/contract/error-causes.js";
import {
  AddMediaSegmentRequestSchema,
  AddMediaSegmentResponseSchema,
  Decision,
  ListenRequestSchema,
  ListenResponseSchema,
  StatusCode,
  StatusError,
} from "../../src/contract/index.js";
import { type LiveOperations, METHODS, type Operations } from "../../src/contract/operations.js";
import { asStatusError, callerGone, endedWith } from "../../src/server/call-errors.js";
import { type Call, Dispatcher, type DispatchLimits } from "../../src/server/dispatch.js";
import type { Guard } from "../../src/server/guard.js";
import { LiveCalls } from "../../src/server/limits/live-calls.js";
import { UploadBudget } from "../../src/server/limits/upload-budget.js";
import { QueueFull, WorkQueue } from "../../src/server/limits/work-queue.js";
import { jsonLog } from "../../src/server/log.js";
import { ServerMetrics } from "../../src/server/metrics.js";
import { headersOf, Refusal } from "../../src/server/refusal.js";
import { StoreError } from "../../src/store/errors.js";
import { CallRates } from "../../src/token/call-rates.js";

const upload = METHODS.find(({ name }) => name === "AddMediaSegment")!;
const verify = METHODS.find(({ name }) => name === "Verify")!;
const enroll = METHODS.find(({ name }) => name === "Enroll")!;
const train = METHODS.find(({ name }) => name === "Train")!;
const limits: DispatchLimits = {
  callSeconds: 60,
  mediaBytes: 1000,
  mediaIdleSeconds: 20,
  mediaReadSeconds: 60,
  liveBytesPerSecond: 1000,
  liveCallSeconds: 60,
  liveIdleSeconds: 60,
  liveSilenceSeconds: 60,
};
const guard: Guard = { admit: async () => ({ id: "bank", mayTouch: (scope) => !scope.startsWith("foreign") }) };

function dispatcherOf(
  operations: Record<string, (request: never) => Promise<unknown> | AsyncIterable<unknown>>,
  liveCalls = new LiveCalls(1),
  admission: Guard = guard,
) {
  const uploads = new UploadBudget(1500);
  const queue = new WorkQueue(1, 1);
  const metrics = new ServerMetrics(queue, liveCalls, async () => []);
  const lines: string[] = [];
  const dispatcher = new Dispatcher({
    operations: operations as unknown as Operations & LiveOperations,
    guard: admission,
    queue,
    rates: new CallRates(0, 1),
    uploads,
    liveCalls,
    metrics,
    log: jsonLog("info", (line) => lines.push(line)),
    limits,
  });
  const logged = () => lines.map((line): Record<string, unknown> => JSON.parse(line));
  return { dispatcher, uploads, queue, metrics, logged };
}

it("an unexpected failure is INTERNAL_ERROR, and the log has its causes", () => {
  const full = new Error("could not be written", { cause: new Error("ENOSPC: no space left on device") });
  expect(asStatusError(full)).toMatchObject({ code: StatusCode.INTERNAL_ERROR });
  expect(stackOf(asStatusError(full))).toContain("caused by: Error: ENOSPC: no space left on device");
});

it("causes that go round in a circle are logged up to the fifth", () => {
  const [one, other] = [new Error("one"), new Error("other")];
  one.cause = other;
  other.cause = one;
  expect(stackOf(one).match(/Error: (one|other)/g)).toEqual([
    "Error: one",
    "Error: other",
    "Error: one",
    "Error: other",
    "Error: one",
  ]);
  expect(stackOf(new Error("text", { cause: "the disk" }))).toMatch(/\ncaused by: the disk$/);
});

it.each([
  [Code.InvalidArgument, StatusCode.BAD_REQUEST],
  [Code.ResourceExhausted, StatusCode.TOO_LARGE],
  [Code.Canceled, StatusCode.CANCELLED],
  [Code.Aborted, StatusCode.CANCELLED],
  [Code.DeadlineExceeded, StatusCode.DEADLINE_EXCEEDED],
  [Code.Unimplemented, StatusCode.NOT_IMPLEMENTED],
  [Code.Internal, StatusCode.BAD_REQUEST],
])("code %i of the framework is status %i, with its message and headers", (code, status) => {
  const error = asStatusError(new ConnectError("protocol error", code, { "accept-encoding": "gzip" }));
  expect(error).toMatchObject({ code: status, message: "protocol error" });
  expect(headersOf(error)).toEqual({ "accept-encoding": "gzip" });
});

it("a response that cannot be serialized is our fault", () => {
  for (const message of ["serialize message: no", "internal error"])
    expect(asStatusError(new ConnectError(message, Code.Internal))).toMatchObject({ code: StatusCode.INTERNAL_ERROR });
  expect(asStatusError(new ConnectError("serialize message: no", Code.InvalidArgument))).toMatchObject({
    code: StatusCode.BAD_REQUEST,
  });
});

it("a caller that goes away ends its call, before or after it began", () => {
  const late = callerGone(new ConnectError("late", Code.DeadlineExceeded));
  expect(late).toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED, message: "the caller's deadline passed" });
  for (const reason of [new ConnectError("gone", Code.Canceled), new Error("gone")])
    expect(callerGone(reason)).toMatchObject({ code: StatusCode.CANCELLED, message: "the caller disconnected" });
  expect(endedWith(AbortSignal.abort()).signal.reason).toMatchObject({ code: StatusCode.CANCELLED });
  const leaving = new AbortController();
  const { signal } = endedWith(leaving.signal);
  expect(signal.aborted).toBe(false);
  leaving.abort();
  expect(signal.reason).toMatchObject({ code: StatusCode.CANCELLED });
});

it("a database that does not answer, also when only the token is checked, is BUSY", () => {
  const error = new StoreError("unavailable", "the database does not answer");
  expect(asStatusError(error)).toMatchObject({ code: StatusCode.BUSY, status: { retryAfter: { seconds: 5n } } });
});

it("an error has its headers, and its retry time rounded up to whole seconds", () => {
  const headers = { "www-authenticate": "Bearer" };
  expect(headersOf(new Refusal(StatusCode.NOT_AUTHORIZED, "no token"))).toEqual({});
  expect(headersOf(new Refusal(StatusCode.NOT_AUTHORIZED, "no token", { headers }))).toEqual(headers);
  const retryAfter = { seconds: 5n, nanos: 0 };
  const fromProcessor = new StatusError({
    statusCode: StatusCode.BUSY,
    message: "the database does not answer",
    retryAfter,
  });
  expect(headersOf(fromProcessor)).toEqual({ "retry-after": "5" });
  for (const [seconds, header] of [
    [0.01, "1"],
    [1, "1"],
    [2.1, "3"],
  ] as const) {
    const refusal = new Refusal(StatusCode.BUSY, "busy", { retryAfterSeconds: seconds, headers });
    expect(headersOf(refusal)).toEqual({ ...headers, "retry-after": header });
    const { seconds: whole, nanos } = refusal.status.retryAfter!;
    expect(Number(whole) + nanos / 1e9).toBeCloseTo(seconds, 9);
  }
});

it("the result of a live call counts as a decision; a checkpoint and an enrollment do not", async () => {
  const events: NonNullable<MessageInitShape<typeof ListenResponseSchema>["event"]>[] = [
    { case: "checkpoint", value: { decision: Decision.UNCERTAIN } },
    { case: "result", value: { result: { case: "enroll", value: {} } } },
    { case: "result", value: {} },
    { case: "result", value: { result: { case: "verify", value: { decision: Decision.AUTHENTIC } } } },
  ];
  const { dispatcher, metrics } = dispatcherOf({
    async *listen() {
      for (const event of events) yield create(ListenResponseSchema, { event });
    },
  });
  let heard = 0;
  for await (const _ of dispatcher.live(stream(), call())) heard++;
  expect(heard).toBe(events.length);
  const counted = (await metrics.text()).split("\n").filter((line) => line.startsWith("vivavoce_decisions_total"));
  expect(counted).toEqual(['vivavoce_decisions_total{operation="Listen",decision="AUTHENTIC"} 1']);
});

it("every kind of error has its status", () => {
  const cancelled = new DOMException("gone", "AbortError");
  const late = new DOMException("late", "TimeoutError");
  const refused = new Refusal(StatusCode.NOT_FOUND, "nothing there");
  expect(asStatusError(refused)).toBe(refused);
  expect(asStatusError(new QueueFull(7))).toMatchObject({ code: StatusCode.BUSY });
  expect(headersOf(asStatusError(new QueueFull(7)))).toEqual({ "retry-after": "7" });
  expect(asStatusError(new ConnectError("x", Code.InvalidArgument))).toMatchObject({ code: StatusCode.BAD_REQUEST });
  expect(asStatusError(cancelled)).toMatchObject({ code: StatusCode.CANCELLED });
  expect(asStatusError(late)).toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED });
  for (const other of ["text", null, new Error("unforeseen")])
    expect(asStatusError(other)).toMatchObject({ code: StatusCode.INTERNAL_ERROR });
});

const call = (): Call => ({
  protocol: "grpc",
  authorization: null,
  address: "127.0.0.1",
  requestId: "r1",
  ended: new AbortController(),
});

const piece = (bytes: number, scope?: string): Message =>
  create(AddMediaSegmentRequestSchema, {
    chunk: new Uint8Array(bytes),
    ...(scope === undefined ? {} : { context: { gkScopeId: { value: scope } } }),
  });

async function* stream(...messages: readonly Message[]): AsyncGenerator<Message> {
  yield* messages;
}

/** Reads the whole stream, as the operation does. */
const readAll = {
  async addMediaSegment(requests: AsyncIterable<Message>) {
    for await (const _ of requests);
    return create(AddMediaSegmentResponseSchema, { status: { statusCode: StatusCode.OK } });
  },
};

describe("an upload", () => {
  it("returns its bytes to the budget when it is answered, refused or fails", async () => {
    const { dispatcher, uploads } = dispatcherOf(readAll);
    for (let i = 0; i < 3; i++) {
      await dispatcher.clientStream(upload, stream(piece(500, "own"), piece(400)), call());
      expect(uploads.used).toBe(0);
    }
    const tooLong = dispatcher.clientStream(upload, stream(piece(600, "own"), piece(600)), call());
    await expect(tooLong).rejects.toMatchObject({ code: StatusCode.TOO_LARGE });
    expect(uploads.used).toBe(0);
    const failing = dispatcherOf({
      async addMediaSegment(requests: AsyncIterable<Message>) {
        for await (const _ of requests) throw new Error("the disk is full");
      },
    });
    const failed = failing.dispatcher.clientStream(upload, stream(piece(500, "own")), call());
    await expect(failed).rejects.toMatchObject({ code: StatusCode.INTERNAL_ERROR });
    expect(failing.uploads.used).toBe(0);
  });

  it("returns all its bytes to the budget when it is cut off and its sender goes on sending", async () => {
    const { dispatcher, uploads } = dispatcherOf(readAll);
    let send: (message: Message) => void = () => {};
    const next = new Promise<Message>((resolve) => {
      send = resolve;
    });
    let isRead: () => void = () => {};
    const read = new Promise<void>((resolve) => {
      isRead = resolve;
    });
    async function* endless() {
      yield piece(300, "own");
      isRead();
      yield await next;
    }
    const cut = call();
    const upload300 = dispatcher.clientStream(upload, endless(), cut);
    await read;
    expect(uploads.used).toBe(300);
    cut.ended.abort(new Refusal(StatusCode.DEADLINE_EXCEEDED, "the operation took longer than 60 s"));
    await expect(upload300).rejects.toMatchObject({ code: StatusCode.DEADLINE_EXCEEDED });
    expect(uploads.used).toBe(0);
    send(piece(400));
    await new Promise((wake) => setImmediate(wake));
    expect(uploads.used).toBe(0);
  });

  it("gets BUSY if all uploads together have too many bytes", async () => {
    const { dispatcher, uploads } = dispatcherOf(readAll);
    uploads.take(1200);
    const refused = dispatcher.clientStream(upload, stream(piece(400, "own")), call());
    await expect(refused).rejects.toMatchObject({ code: StatusCode.BUSY });
    expect(uploads.used).toBe(1200);
  });

  it("may be as long as the limit, besides the message with its context", async () => {
    const { dispatcher } = dispatcherOf(readAll);
    await dispatcher.clientStream(upload, stream(piece(0, "own"), piece(1000)), call());
    await dispatcher.clientStream(upload, stream(piece(64, "own"), piece(1000)), call());
    const longer = dispatcher.clientStream(upload, stream(piece(65, "own"), piece(1000)), call());
    await expect(longer).rejects.toMatchObject({
      code: StatusCode.TOO_LARGE,
      message: "the recording is larger than the 1000 bytes allowed",
    });
  });

  it("ends if its sender pauses for too long, but not while what was sent is processed", async () => {
    vi.useFakeTimers();
    try {
      let process = () => {};
      const { dispatcher } = dispatcherOf({
        async addMediaSegment(requests: AsyncIterable<Message>) {
          for await (const _ of requests)
            await new Promise<void>((resolve) => {
              process = resolve;
            });
        },
      });
      async function* pausing() {
        yield piece(10, "own");
        await new Promise(() => {});
      }
      const sent = call();
      const refused = dispatcher.clientStream(upload, pausing(), sent);
      const outcome = expect(refused).rejects.toMatchObject({
        code: StatusCode.DEADLINE_EXCEEDED,
        message: "nothing was received for 20 s",
      });
      await vi.advanceTimersByTimeAsync(30_000);
      expect(sent.ended.signal.aborted).toBe(false);
      process();
      await vi.advanceTimersByTimeAsync(19_000);
      expect(sent.ended.signal.aborted).toBe(false);
      await vi.advanceTimersByTimeAsync(1000);
      await outcome;
    } finally {
      vi.useRealTimers();
    }
  });

  it("of single bytes is charged per message, not per byte", async () => {
    const { dispatcher, uploads } = dispatcherOf(readAll);
    let sent = 0;
    async function* bytes() {
      yield piece(1, "own");
      for (sent = 1; sent < 1000; sent++) yield piece(1);
    }
    await expect(dispatcher.clientStream(upload, bytes(), call())).rejects.toMatchObject({
      code: StatusCode.TOO_LARGE,
    });
    expect(sent).toBeLessThan(20);
    expect(uploads.used).toBe(0);
  });

  it("that cannot be read is reported as the sender's fault", async () => {
    const { dispatcher } = dispatcherOf(readAll);
    async function* broken() {
      yield piece(10, "own");
      throw new ConnectError("protocol error: invalid wire type", Code.Internal);
    }
    const refused = dispatcher.clientStream(upload, broken(), call());
    await expect(refused).rejects.toMatchObject({ code: StatusCode.BAD_REQUEST });
  });

  it("may not name another caller's scope in any of its messages", async () => {
    const { dispatcher } = dispatcherOf(readAll);
    for (const messages of [
      [piece(10, "foreign")],
      [piece(10, "own"), piece(10, "foreign")],
      [piece(10, "own"), piece(10), piece(10, "foreign")],
    ]) {
      const refused = dispatcher.clientStream(upload, stream(...messages), call());
      await expect(refused).rejects.toMatchObject({ code: StatusCode.PERMISSION_DENIED });
    }
    await dispatcher.clientStream(upload, stream(piece(10, "own"), piece(10, "own")), call());
  });
});

describe("a call", () => {
  const request = (scope: string) => async () =>
    create(verify.input, { context: { gkScopeId: { value: scope } } } as never);

  it("is refused for another caller's scope, and never reaches the operation", async () => {
    let reached = 0;
    const { dispatcher } = dispatcherOf({
      async verify() {
        reached++;
        return create(verify.output);
      },
    });
    await expect(dispatcher.unary(verify, request("foreign"), call())).rejects.toMatchObject({
      code: StatusCode.PERMISSION_DENIED,
      message: expect.stringContaining('the scope "foreign"'),
    });
    expect(reached).toBe(0);
    await dispatcher.unary(verify, request("own"), call());
    expect(reached).toBe(1);
    expect(dispatcher.running).toBe(0);
  });

  it("is logged when it ends, with the bytes that it uploaded, if any", async () => {
    const { dispatcher, metrics, logged } = dispatcherOf({ ...readAll, verify: async () => create(verify.output) });
    await dispatcher.clientStream(upload, stream(piece(500, "own"), piece(400)), call());
    await dispatcher.unary(verify, request("own"), call());
    await dispatcher.unary(verify, request("foreign"), call()).catch(() => {});
    expect(await metrics.text()).toMatch(/^vivavoce_uploaded_bytes_total 900$/m);
    const about = logged().map(({ message, operation, status, bytes }) => [message, operation, status, bytes]);
    expect(about).toEqual([
      ["call", "AddMediaSegment", "OK", 900],
      ["call", "Verify", "OK", undefined],
      ["call", "Verify", "PERMISSION_DENIED", undefined],
    ]);
  });

  it("is logged with its client, and a refusal with its reason, a message beside a result too, but with nothing that the caller sent", async () => {
    const away = new StoreError("unavailable", "the database does not answer", {
      cause: Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }),
    });
    const failures: unknown[] = [away, new StatusError({ statusCode: StatusCode.NOT_FOUND, message: "no ada" })];
    const { dispatcher, logged } = dispatcherOf({
      verify: async () => {
        const failure = failures.pop();
        if (failure) throw failure;
        return create(verify.output, { status: { message: "one print cannot be opened" } });
      },
    });
    const stranger: Guard = {
      admit: async () => {
        throw new Refusal(StatusCode.NOT_AUTHORIZED, "the token has expired");
      },
    };
    for (const _ of [1, 2, 3]) await dispatcher.unary(verify, request("own"), call()).catch(() => {});
    const closed = dispatcherOf({}, undefined, stranger);
    await closed.dispatcher.unary(verify, request("own"), call()).catch(() => {});
    const about = [...logged(), ...closed.logged()].map(({ status, client, address, reason }) => [
      status,
      client ?? address,
      reason,
    ]);
    expect(about).toEqual([
      ["NOT_FOUND", "bank", undefined],
      ["BUSY", "bank", "the database does not answer; try again: the database does not answer: ECONNREFUSED"],
      ["OK", "bank", "one print cannot be opened"],
      ["NOT_AUTHORIZED", call().address, "the token has expired"],
    ]);
  });

  it("of strangers, and of a client that exceeds its rate, is logged a hundred times a minute and then summed up", async () => {
    vi.useFakeTimers();
    try {
      const stranger: Guard = {
        admit: async () => {
          throw new Refusal(StatusCode.NOT_AUTHORIZED, "the token has expired");
        },
      };
      const { dispatcher, logged } = dispatcherOf({}, undefined, stranger);
      const refused = { protocol: "websocket", address: "203.0.113.7", requestId: "r" } as const;
      const knock = async () => {
        for (let i = 0; i < 80; i++) {
          await dispatcher.unary(verify, request("own"), call()).catch(() => {});
          dispatcher.refused(refused, new Refusal(StatusCode.NOT_AUTHORIZED, "the token has expired"));
        }
      };
      await knock();
      expect(logged()).toHaveLength(100);
      vi.advanceTimersByTime(60_000);
      expect(logged().slice(100)).toMatchObject([{ level: "info", reason: '60 more like "call"' }]);
      await knock();
      expect(logged()).toHaveLength(201);
      const fast = dispatcherOf({
        verify: async () => {
          throw new Refusal(StatusCode.RATE_EXCEEDED, "too many calls");
        },
      });
      for (let i = 0; i < 160; i++) await fast.dispatcher.unary(verify, request("own"), call()).catch(() => {});
      expect(fast.logged()).toHaveLength(100);
    } finally {
      vi.useRealTimers();
    }
  });

  it("measures how long it waited, worked and took", async () => {
    vi.useFakeTimers();
    try {
      const result = { audioDetails: { grossAudio: { seconds: 4n, nanos: 0 } } };
      const { dispatcher, metrics, logged } = dispatcherOf({
        async verify() {
          await new Promise((resolve) => setTimeout(resolve, 2000));
          return create(verify.output, { result } as never);
        },
      });
      const both = [dispatcher.unary(verify, request("own"), call()), dispatcher.unary(verify, request("own"), call())];
      await vi.advanceTimersByTimeAsync(4000);
      await Promise.all(both);
      const [first, second] = logged();
      expect(first).toMatchObject({ milliseconds: 2000 });
      expect(first).not.toHaveProperty("queuedMilliseconds");
      expect(second).toMatchObject({ milliseconds: 4000, queuedMilliseconds: 2000 });
      const page = await metrics.text();
      expect(page).toContain('vivavoce_call_seconds_sum{operation="Verify",protocol="grpc",status="OK"} 6');
      expect(page).toContain("vivavoce_queue_wait_seconds_sum 2");
      expect(page).toContain("vivavoce_queue_wait_seconds_count 2");
      expect(page).toContain('vivavoce_real_time_factor_sum{operation="Verify"} 1');
    } finally {
      vi.useRealTimers();
    }
  });

  it("ends after the longest time", async () => {
    vi.useFakeTimers();
    try {
      const { dispatcher } = dispatcherOf({ verify: () => new Promise(() => {}) });
      const endless = call();
      const outcome = expect(dispatcher.unary(verify, request("own"), endless)).rejects.toMatchObject({
        code: StatusCode.DEADLINE_EXCEEDED,
        message: "the operation took longer than 60 s",
      });
      await vi.advanceTimersByTimeAsync(59_000);
      expect(endless.ended.signal.aborted).toBe(false);
      await vi.advanceTimersByTimeAsync(1000);
      await outcome;
    } finally {
      vi.useRealTimers();
    }
  });

  it("counts its decision, if it made one", async () => {
    const decisions = [Decision.AUTHENTIC, Decision.UNSPECIFIED, Decision.FRAUD, Decision.AUTHENTIC];
    const { dispatcher, metrics } = dispatcherOf({
      verify: async () => create(verify.output, { result: { decision: decisions.shift() } } as never),
      train: async () => create(train.output),
    });
    while (decisions.length > 0) await dispatcher.unary(verify, request("own"), call());
    await dispatcher.unary(train, async () => create(train.input), call());
    const counted = (await metrics.text()).split("\n").filter((line) => line.startsWith("vivavoce_decisions_total"));
    expect(counted).toEqual([
      'vivavoce_decisions_total{operation="Verify",decision="AUTHENTIC"} 2',
      'vivavoce_decisions_total{operation="Verify",decision="FRAUD"} 1',
    ]);
  });

  it("is not told the whole name of a scope that is too long to be one", async () => {
    const { dispatcher } = dispatcherOf({});
    const long = "foreign".padEnd(500, "-");
    const refused = dispatcher.unary(verify, request(long), call());
    await expect(refused).rejects.toMatchObject({ message: expect.stringContaining(`"${long.slice(0, 128)}"`) });
  });

  it.each([
    ["01900000-0000-7000-8000-00000000000", true],
    ["a text that is too long for a session", false],
  ])("that is retried in the session %s… keeps its place: %s", async (session, isKept) => {
    let open: () => void = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { dispatcher, queue } = dispatcherOf({ verify: () => opened.then(() => create(verify.output)) });
    const ask = (id: string) => {
      const context = { gkScopeId: { value: "own" }, gkSessionId: { value: id } };
      return dispatcher.unary(verify, async () => create(verify.input, { context } as never), call());
    };
    const told = (id: string) =>
      ask(id).then(
        () => null,
        ({ status }: StatusError) => status.retryAfter!.nanos,
      );
    const taken = [ask("running"), ask("waiting")];
    await expect.poll(() => queue.waiting).toBe(1);
    const [first, second] = [await told(`${session}1`), await told(`${session}2`)];
    expect(second! > first!).toBe(isKept);
    expect(await told(`${session}1`)).toBe(first);
    open();
    await Promise.all(taken);
  });

  it("adds the length of the audio that it heard to the metrics", async () => {
    const result = { audioDetails: { grossAudio: { seconds: 2n, nanos: 500_000_000 } } };
    const { dispatcher, metrics } = dispatcherOf({
      verify: async () => create(verify.output, { result } as never),
      enroll: async () => create(enroll.output, { result } as never),
    });
    await dispatcher.unary(verify, request("own"), call());
    // It repeats what ProcessAudio has measured.
    await dispatcher.unary(enroll, async () => create(enroll.input), call());
    const counted = (await metrics.text()).match(/^vivavoce_audio_seconds_total\{.*$/gm);
    expect(counted).toEqual(['vivavoce_audio_seconds_total{operation="Verify"} 2.5']);
  });

  it("of a caller that disconnected while its message was read is cancelled, whatever the operation returns", async () => {
    const { dispatcher, logged } = dispatcherOf({ train: async () => create(train.output) });
    const gone = call();
    const read = async () => {
      gone.ended.abort(callerGone(new Error("the connection closed")));
      return create(train.input);
    };
    await expect(dispatcher.unary(train, read, gone)).rejects.toMatchObject({ code: StatusCode.CANCELLED });
    expect(logged()).toMatchObject([{ operation: "Train", status: "CANCELLED" }]);
  });

  it("is never started if its caller disconnects while it waits", async () => {
    let begun = 0;
    let open: () => void = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { dispatcher, queue } = dispatcherOf({
      async verify() {
        begun++;
        await opened;
        return create(verify.output);
      },
    });
    const first = dispatcher.unary(verify, request("own"), call());
    const leaving = call();
    const second = dispatcher.unary(verify, request("own"), leaving);
    await expect.poll(() => queue.waiting).toBe(1);
    leaving.ended.abort(new Error("gone"));
    await expect(second).rejects.toMatchObject({ status: { requestId: "r1" } });
    open();
    await first;
    expect(begun).toBe(1);
    expect([queue.running, queue.waiting, dispatcher.running]).toEqual([0, 0, 0]);
  });
});

describe("a server that stops", () => {
  const refusal = { code: StatusCode.BUSY, message: "the box is stopping", status: { retryAfter: { seconds: 1n } } };
  const operations = {
    ...readAll,
    verify: async () => create(verify.output),
    async *listen(requests: AsyncIterable<Message>) {
      for await (const _ of requests) yield create(ListenResponseSchema);
    },
  };
  const asked = (dispatcher: Dispatcher, read: () => Promise<Message>) => [
    dispatcher.unary(verify, read, call()),
    dispatcher.clientStream(upload, stream(piece(10, "own")), call()),
    dispatcher.live(stream(), call()).next(),
  ];

  it("refuses new calls, and reads nothing of them", async () => {
    const { dispatcher } = dispatcherOf(operations);
    await dispatcher.stop(60);
    expect(dispatcher.stopping).toBe(true);
    let isRead = false;
    const read = async () => {
      isRead = true;
      return create(verify.input);
    };
    for (const refused of asked(dispatcher, read)) await expect(refused).rejects.toMatchObject(refusal);
    expect(isRead).toBe(false);
  });

  it("leaves no timer behind when its calls end before the time for live calls", async () => {
    vi.useFakeTimers();
    try {
      let open: () => void = () => {};
      const opened = new Promise<void>((resolve) => {
        open = resolve;
      });
      const { dispatcher } = dispatcherOf({ verify: () => opened.then(() => create(verify.output)) });
      const running = dispatcher.unary(verify, async () => create(verify.input), call());
      await vi.advanceTimersByTimeAsync(1);
      const stopped = dispatcher.stop(60);
      open();
      await Promise.all([running, stopped]);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("refuses a call whose token it has verified only then", async () => {
    let open: () => void = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const slow: Guard = { admit: (...given) => opened.then(() => guard.admit(...given)) };
    const { dispatcher } = dispatcherOf(operations, undefined, slow);
    const [unary, , live] = asked(dispatcher, async () => create(verify.input)) as [
      Promise<unknown>,
      Promise<unknown>,
      Promise<unknown>,
    ];
    const outcome = Promise.all([unary, live].map((refused) => expect(refused).rejects.toMatchObject(refusal)));
    let isStopped = false;
    const stopped = dispatcher.stop(60).then(() => {
      isStopped = true;
    });
    await new Promise(setImmediate);
    expect(isStopped).toBe(false);
    open();
    await outcome;
    await stopped;
    expect(dispatcher.running).toBe(0);
  });
});

describe("a live call", () => {
  /** Answers the first message, then reads to the end. */
  const answering = {
    async *listen(requests: AsyncIterable<Message>) {
      for await (const _ of requests) yield create(ListenResponseSchema, { event: { case: "started", value: {} } });
    },
  };
  const started = (scope: string) =>
    create(ListenRequestSchema, { content: { case: "start", value: { context: { gkScopeId: { value: scope } } } } });

  /** A call that has sent these messages and stays connected. */
  function calling(dispatcher: Dispatcher, ...messages: readonly Message[]) {
    let hangUp = () => {};
    const hungUp = new Promise<void>((resolve) => {
      hangUp = resolve;
    });
    async function* sent() {
      yield* messages;
      await hungUp;
    }
    return { answers: dispatcher.live(sent(), call()), hangUp };
  }

  it("gets BUSY if its scope has all its places, and leaves the others to other scopes", async () => {
    const { dispatcher } = dispatcherOf(answering, new LiveCalls(3, 2));
    const [one, two] = [calling(dispatcher, started("own")), calling(dispatcher, started("own"))];
    for (const { answers } of [one, two]) expect((await answers.next()).done).toBe(false);
    const third = calling(dispatcher, started("own")).answers.next();
    await expect(third).rejects.toMatchObject({
      code: StatusCode.BUSY,
      message: "all 2 live calls of this scope are in use; try again later",
      status: { retryAfter: { seconds: 5n } },
    });
    const other = calling(dispatcher, started("other"));
    expect((await other.answers.next()).done).toBe(false);
    await expect(calling(dispatcher, started("last")).answers.next()).rejects.toMatchObject({
      code: StatusCode.BUSY,
      message: "all 3 live calls are in use; try again later",
    });
    one.hangUp();
    expect((await one.answers.next()).done).toBe(true);
    const next = calling(dispatcher, started("own"));
    expect((await next.answers.next()).done).toBe(false);
    for (const { answers, hangUp } of [two, other, next]) {
      hangUp();
      await answers.next();
    }
  });

  it("goes on when its token ends: a token is checked when a call begins", async () => {
    let isValid = true;
    const admission: Guard = {
      admit: async (...given) => {
        if (!isValid) throw new Refusal(StatusCode.NOT_AUTHORIZED, "the token was revoked");
        return guard.admit(...given);
      },
    };
    const { dispatcher } = dispatcherOf(answering, new LiveCalls(2), admission);
    const { answers, hangUp } = calling(dispatcher, started("own"), started("own"));
    expect((await answers.next()).done).toBe(false);
    isValid = false;
    expect((await answers.next()).done).toBe(false);
    const next = calling(dispatcher, started("own")).answers.next();
    await expect(next).rejects.toMatchObject({ code: StatusCode.NOT_AUTHORIZED });
    hangUp();
    expect((await answers.next()).done).toBe(true);
  });

  it("may go on for the time that the stop leaves it, then it is decided", async () => {
    vi.useFakeTimers();
    try {
      const { dispatcher } = dispatcherOf({
        async *listen(requests: AsyncIterable<{ content: { case: string } }>) {
          for await (const { content } of requests) yield create(ListenResponseSchema, { party: content.case });
        },
      });
      const { answers } = calling(dispatcher, started("own"));
      expect((await answers.next()).value).toMatchObject({ party: "start" });
      const stopped = dispatcher.stop(8);
      let isDecided = false;
      const last = answers.next().then((answer) => {
        isDecided = true;
        return answer;
      });
      await vi.advanceTimersByTimeAsync(7900);
      expect(isDecided).toBe(false);
      await vi.advanceTimersByTimeAsync(100);
      expect((await last).value).toMatchObject({ party: "end" });
      await answers.next();
      await stopped;
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("that has not sent its first message takes no place, and is refused when the server stops", async () => {
    const { dispatcher } = dispatcherOf(answering);
    const silent = calling(dispatcher).answers.next();
    const refused = expect(silent).rejects.toMatchObject({ code: StatusCode.BUSY, message: "the box is stopping" });
    const talking = calling(dispatcher, started("own"));
    expect((await talking.answers.next()).done).toBe(false);
    const stopped = dispatcher.stop(60);
    await refused;
    talking.hangUp();
    expect((await talking.answers.next()).done).toBe(true);
    await stopped;
  });
});
