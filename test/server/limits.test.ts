import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { retrying } from "../../src/client/retry.js";
import { StatusCode, StatusError } from "../../src/contract/index.js";
import { ByteRate } from "../../src/server/limits/byte-rate.js";
import { UploadBudget } from "../../src/server/limits/upload-budget.js";
import { QueueFull, WorkQueue } from "../../src/server/limits/work-queue.js";
import { CallRates } from "../../src/token/call-rates.js";

const never = new AbortController().signal;

function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

describe("the queue", () => {
  it("runs a limited number of tasks at a time, in order of arrival", async () => {
    const queue = new WorkQueue(2, 10);
    const order: number[] = [];
    let most = 0;
    await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        queue.run(never, async () => {
          order.push(i);
          most = Math.max(most, queue.running);
          await new Promise((wake) => setTimeout(wake, 5));
        }),
      ),
    );
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(most).toBe(2);
    expect([queue.running, queue.waiting]).toEqual([0, 0]);
  });

  it("serves scopes in turn, so that a busy scope does not delay others", async () => {
    const queue = new WorkQueue(1, 4);
    const { open, opened } = gate();
    const order: string[] = [];
    const ask = (scope: string, caller: string) =>
      queue.run(never, async () => void order.push(caller), { scope, caller });
    const running = queue.run(never, () => opened);
    const calls = ["a1", "a2", "a3", "a4"].map((caller) => ask("a", caller));
    await expect(ask("a", "a5")).rejects.toBeInstanceOf(QueueFull);
    // The queue is full of one scope's calls; another still has its share.
    calls.push(ask("b", "b1"), ask("b", "b2"));
    await expect(ask("b", "b3")).rejects.toBeInstanceOf(QueueFull);
    open();
    await Promise.all([running, ...calls]);
    expect(order).toEqual(["a1", "b1", "a2", "b2", "a3", "a4"]);
    expect([queue.running, queue.waiting]).toEqual([0, 0]);
  });

  it("reserves a place for callers that were told to retry, so that newcomers do not overtake them", async () => {
    let now = 100;
    const queue = new WorkQueue(1, 2, () => now);
    const gates = [gate(), gate(), gate()];
    const calls = gates.map(({ opened }, i) => queue.run(never, () => opened, { scope: "a", caller: `first ${i}` }));
    const ask = (caller: string) => queue.run(never, async () => caller, { scope: "a", caller });
    await expect(ask("patient")).rejects.toBeInstanceOf(QueueFull);
    gates[0]!.open();
    await calls[0];
    // A place is free, and it is reserved for the caller that was told to retry.
    expect(queue.waiting).toBe(1);
    await expect(ask("newcomer")).rejects.toBeInstanceOf(QueueFull);
    const patient = ask("patient");
    expect(queue.waiting).toBe(2);
    gates[1]!.open();
    await calls[1];
    // A caller that does not return in time loses its place.
    now += 60;
    const another = ask("another");
    gates[2]!.open();
    expect(await Promise.all([patient, another])).toEqual(["patient", "another"]);
  });

  describe("with more callers than it can take, on a clock of its own", () => {
    const CAPACITY = 8;

    /** Callers that retry when they are told to, and how long each call waited. Every task takes a second. */
    function world() {
      let now = 0;
      const sleeping: { at: number; wake: () => void }[] = [];
      const sleep = (seconds: number) =>
        new Promise<void>((wake) => {
          sleeping.push({ at: now + seconds, wake });
        });
      const queue = new WorkQueue(1, CAPACITY, () => now);
      const ask = (scope: string, caller: string) =>
        queue.run(new AbortController().signal, () => sleep(1), { scope, caller });
      return {
        queue,
        sleep,
        ask,
        now: () => now,
        async call(scope: string, caller: string): Promise<number> {
          for (const askedAt = now; ; ) {
            try {
              await ask(scope, caller);
              return now - 1 - askedAt;
            } catch (error) {
              await sleep((error as QueueFull).retryAfterSeconds);
            }
          }
        },
        /** Lets the clock run until nobody sleeps. */
        async run(): Promise<void> {
          for (;;) {
            await new Promise(setImmediate);
            const next = sleeping.sort((one, other) => one.at - other.at).shift();
            if (!next) return;
            now = next.at;
            next.wake();
          }
        },
      };
    }

    it("serves them in order: nobody waits much longer than the others", async () => {
      const { call, run, sleep, now } = world();
      const waits: number[] = [];
      const callers = Array.from({ length: 40 }, async (_, i) => {
        await sleep(i / 100);
        for (let calls = 0; calls < 5; calls++) waits.push(await call("a", `a${i}`));
      });
      await run();
      await Promise.all(callers);
      expect(waits).toHaveLength(200);
      // Nothing is faster than one after the other, which takes 200 s: 40 s for everybody once.
      expect(now()).toBeLessThan(203);
      expect(Math.max(...waits)).toBeLessThan(45);
    });

    it("serves a caller of another scope next, however many wait", async () => {
      const { call, run, sleep } = world();
      const flood = Array.from({ length: 40 }, (_, i) => call("a", `a${i}`));
      const waits: number[] = [];
      const other = sleep(0.5).then(async () => {
        for (let calls = 0; calls < 10; calls++) waits.push(await call("b", "b1"));
      });
      await run();
      await Promise.all([...flood, other]);
      expect(Math.max(...waits)).toBeLessThanOrEqual(2);
    });

    it("works on when callers that were told to retry do not come back", async () => {
      const { ask, call, run, sleep, now, queue } = world();
      const refused: unknown[] = [];
      const flood = Array.from({ length: 40 }, (_, i) => ask("a", `a${i}`).catch((error) => refused.push(error)));
      const patient = sleep(0.5).then(() => call("a", "patient"));
      // When the queue is empty, a newcomer need not wait for those who will never come.
      const newcomer = sleep(CAPACITY + 0.5).then(() => ask("a", "newcomer").then(now));
      await run();
      await Promise.all(flood);
      expect(refused).toHaveLength(40 - 1 - CAPACITY);
      expect(await patient).toBeLessThan(50);
      expect(await newcomer).toBe(CAPACITY + 2);
      expect([queue.running, queue.waiting]).toEqual([0, 0]);
    });
  });

  it("refuses tasks that do not fit, with a retry time", async () => {
    const queue = new WorkQueue(1, 1);
    const { open, opened } = gate();
    const running = queue.run(never, () => opened);
    const waiting = queue.run(never, async () => {});
    const refused = await queue.run(never, async () => {}).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(QueueFull);
    expect((refused as QueueFull).retryAfterSeconds).toBeGreaterThan(0);
    open();
    await Promise.all([running, waiting]);
  });

  it("gives each caller a different, bounded retry time", async () => {
    const queue = new WorkQueue(2, 0, () => 100);
    const { open, opened } = gate();
    const running = [queue.run(never, () => opened), queue.run(never, () => opened)];
    const told: number[] = [];
    for (let i = 0; i < 1000; i++) {
      const asker = { scope: "a", caller: `a ${i}` };
      const refused = await queue.run(never, async () => {}, asker).catch((error: unknown) => error);
      told.push((refused as QueueFull).retryAfterSeconds);
    }
    for (let i = 1; i < 100; i++) expect(told[i]).toBeGreaterThan(told[i - 1]!);
    expect(Math.max(...told)).toBe(30);
    open();
    await Promise.all(running);
  });

  describe("that is full, on a clock that stands still", () => {
    let now: number;
    let open: () => void;
    let calls: Promise<unknown>[];
    let queue: WorkQueue;

    /** A queue with one call running, and calls of scope a in every place. */
    function full(capacity: number, concurrent = 1) {
      const held = gate();
      [now, open, calls] = [100, held.open, []];
      queue = new WorkQueue(concurrent, capacity, () => now);
      for (let i = 0; i < concurrent + capacity; i++)
        calls.push(queue.run(new AbortController().signal, () => held.opened, asker("a", null)));
    }
    const asker = (scope: string, caller: string | null) => ({ scope, caller });
    /** The seconds after which to retry; `null` if the call is taken. */
    async function told(scope: string, caller: string | null): Promise<number | null> {
      const waiting = queue.waiting;
      const call = queue.run(new AbortController().signal, async () => {}, asker(scope, caller));
      if (queue.waiting > waiting) {
        calls.push(call);
        return null;
      }
      return call.then(
        () => null,
        ({ retryAfterSeconds }: QueueFull) => retryAfterSeconds,
      );
    }
    afterEach(async () => {
      open();
      await Promise.all(calls);
    });

    it("tells each caller when half of the places are free and those ahead of it have theirs", async () => {
      full(2);
      // A quarter of a second each: two places, of which one is to be free.
      expect([await told("a", "1"), await told("a", "2"), await told("a", "3")]).toEqual([0.5, 0.75, 1]);
      expect(await told("a", "2")).toBe(0.75);
      // A caller that cannot be recognized is behind the others, and nobody is behind it.
      expect([await told("a", null), await told("a", null), await told("a", "4")]).toEqual([1.25, 1.25, 1.25]);
    });

    it("has twice the workers, half the time", async () => {
      full(2, 2);
      expect(await told("a", "1")).toBe(0.25);
    });

    it("learns how long calls take: a tenth of the difference with each", async () => {
      full(0);
      expect(await told("a", null)).toBe(0.25);
      now += 2.75;
      open();
      await Promise.all(calls);
      const held = gate();
      open = held.open;
      calls = [queue.run(new AbortController().signal, () => held.opened)];
      expect(await told("a", null)).toBe(0.5);
    });

    it("never tells less than a tenth of a second, nor remembers more than a thousand callers", async () => {
      full(0);
      open();
      await Promise.all(calls);
      for (let i = 0; i < 70; i++) await queue.run(new AbortController().signal, async () => {});
      const held = gate();
      open = held.open;
      calls = [queue.run(new AbortController().signal, () => held.opened)];
      expect(await told("a", "0")).toBe(0.1);
      let last = 0;
      for (let i = 1; i < 1000; i++) last = (await told("a", `${i}`))!;
      const [next, another] = [await told("a", "1000"), await told("a", "1001")];
      expect(next).toBeGreaterThan(last);
      expect(another).toBe(next);
    });

    it("keeps a place until half of the announced time and five seconds after it", async () => {
      for (const [later, isKept] of [
        [5.75, true],
        [5.8, false],
      ] as const) {
        full(2);
        expect(await told("a", "1")).toBe(0.5);
        now += later;
        expect(await told("a", "2")).toBe(isKept ? 0.75 : 0.5);
        open();
        await Promise.all(calls);
      }
    });

    it("lets in a scope that has nothing waiting, each up to its share, and never more than twice its places", async () => {
      full(2);
      expect(await told("b", "b1")).toBeNull();
      expect(await told("b", "b2")).not.toBeNull();
      open();
      await Promise.all(calls);
      full(12);
      const taken: Record<string, number> = {};
      for (const scope of ["b", "c", "d", "e"]) {
        taken[scope] = 0;
        while ((await told(scope, null)) === null) taken[scope]++;
      }
      expect(taken).toEqual({ b: 6, c: 4, d: 2, e: 0 });
      expect(queue.waiting).toBe(24);
    });
  });

  it("removes a caller that disconnects at once, and never runs its task", async () => {
    const queue = new WorkQueue(1, 5);
    const { open, opened } = gate();
    const running = queue.run(never, () => opened);
    const leaving = new AbortController();
    let ran = false;
    const left = queue.run(leaving.signal, async () => {
      ran = true;
    });
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    expect(queue.waiting).toBe(0);
    open();
    await running;
    expect(ran).toBe(false);
  });

  it("keeps a place taken until the task really ends, and frees it when the task fails", async () => {
    const queue = new WorkQueue(1, 0);
    await expect(queue.run(never, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    expect(queue.running).toBe(0);
    expect(await queue.run(never, async () => "next")).toBe("next");
  });
});

describe("rates", () => {
  it("never admit more than burst plus rate times time, and say when the next call may come", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 2, noNaN: true }), { minLength: 1, maxLength: 200 }),
        fc.integer({ min: 1, max: 20 }),
        fc.double({ min: 0.5, max: 50, noNaN: true }),
        (gaps, burst, perSecond) => {
          let now = 0;
          const rates = new CallRates(perSecond, burst, () => now);
          let passed = 0;
          for (const gap of gaps) {
            now += gap;
            const wait = rates.take("client");
            if (wait === null) passed++;
            else {
              expect(wait).toBeGreaterThan(0);
              // A caller that returns at the given time finds a place.
              now += wait + 1e-9;
              expect(rates.take("client")).toBeNull();
              passed++;
            }
          }
          expect(passed).toBeLessThanOrEqual(burst + now * perSecond + 1e-6);
        },
      ),
    );
  });

  it("say exactly how long to wait, on the clock of the machine", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      const rates = new CallRates(2, 1);
      expect([rates.take("a"), rates.take("a")]).toEqual([null, 0.5]);
      vi.advanceTimersByTime(250);
      expect(rates.take("a")).toBe(0.25);
      vi.advanceTimersByTime(250);
      expect(rates.take("a")).toBeNull();
    } finally {
      vi.useRealTimers();
    }
  });

  it("count each client separately, for a limited number of clients", () => {
    const rates = new CallRates(1, 1, () => 0, 2);
    expect(rates.take("a")).toBeNull();
    expect(rates.take("b")).toBeNull();
    expect(rates.take("a")).not.toBeNull();
    expect(rates.take("c")).toBeNull();
    expect(rates.take("b")).toBeNull(); // c was dropped
    expect(new CallRates(0, 1).take("anybody")).toBeNull();
  });
});

describe("a live call's bytes", () => {
  it("may come in a burst of five seconds, then as fast as the limit; a pause saves up for a burst, and no more", () => {
    let now = 10;
    const rate = new ByteRate(1000, undefined, () => now);
    expect(rate.take(5000)).toBe(0);
    expect(rate.take(500)).toBe(500);
    now += 0.5;
    expect(rate.take(1)).toBe(1);
    now += 60;
    expect(rate.take(5001)).toBe(1);
  });
});

describe("the upload budget", () => {
  it("is never exceeded", () => {
    const budget = new UploadBudget(100);
    expect(budget.take(60)).toBe(true);
    expect(budget.take(60)).toBe(false);
    expect(budget.used).toBe(60);
    budget.give(60);
    expect(budget.take(101)).toBe(false);
    expect(budget.take(100)).toBe(true);
    expect(budget.take(1)).toBe(false);
  });
});

describe("the client's retries", () => {
  const busy = (milliseconds: number) =>
    new StatusError({ statusCode: StatusCode.BUSY, retryAfter: { seconds: 0n, nanos: milliseconds * 1_000_000 } });

  it("come until the call is answered, and give up after a number of attempts", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const outcome = async (retries: number, isAnswered: (calls: number) => boolean) => {
        let calls = 0;
        const result = retrying(retries)(async () => {
          if (!isAnswered(++calls)) throw busy(1);
          return "answered";
        }).catch((error: StatusError) => error.code);
        await vi.runAllTimersAsync();
        return [await result, calls];
      };
      expect(await outcome(5, (calls) => calls === 3)).toEqual(["answered", 3]);
      expect(await outcome(2, () => false)).toEqual([StatusCode.BUSY, 3]);
      expect(await outcome(0, () => false)).toEqual([StatusCode.BUSY, 1]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("wait the requested time, longer with each retry if it is short, and give up if it exceeds half a minute", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const calledAt: number[] = [];
      let now = 0;
      const call = retrying(
        3,
        () => 0,
      )(() => {
        calledAt.push(now);
        return Promise.reject(busy(100));
      }).catch(() => "refused");
      for (; calledAt.length < 4; now += 100) await vi.advanceTimersByTimeAsync(100);
      expect(await call).toBe("refused");
      expect(calledAt).toEqual([0, 0, 1000, 4000]);
    } finally {
      vi.useRealTimers();
    }
    const later = new StatusError({ statusCode: StatusCode.BUSY, retryAfter: { seconds: 31n, nanos: 0 } });
    await expect(retrying(5)(() => Promise.reject(later))).rejects.toBe(later);
  });

  it("never repeat a call that may have been executed", async () => {
    let calls = 0;
    const failing = () => {
      calls++;
      return Promise.reject(new StatusError({ statusCode: StatusCode.INTERNAL_ERROR }));
    };
    await expect(retrying(5)(failing)).rejects.toThrow();
    expect(calls).toBe(1);
  });

  it("end when the caller aborts", async () => {
    const patience = new AbortController();
    const call = retrying(5)(() => Promise.reject(busy(20_000)), patience.signal);
    patience.abort();
    await expect(call).rejects.toMatchObject({ code: StatusCode.CANCELLED });
  });
});
