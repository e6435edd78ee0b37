import { describe, expect, test } from "vitest";
import { CallRates } from "../../src/token/call-rates.js";

describe("calls of a client", () => {
  const opened = (perSecond: number, burst: number, capacity?: number) => {
    const clock = { seconds: 0 };
    return { clock, rates: new CallRates(perSecond, burst, () => clock.seconds, capacity) };
  };

  test("may come at once up to the burst, then at the rate", () => {
    const { clock, rates } = opened(4, 2);
    expect([rates.take("a"), rates.take("a"), rates.take("a")]).toEqual([null, null, 0.25]);
    clock.seconds = 0.125;
    expect(rates.take("a")).toBe(0.125);
    clock.seconds = 0.25;
    expect([rates.take("a"), rates.take("a")]).toEqual([null, 0.25]);
    // Saved up calls are not more than the burst.
    clock.seconds = 100;
    expect([rates.take("a"), rates.take("a"), rates.take("a")]).toEqual([null, null, 0.25]);
  });

  test("do not count for others", () => {
    const { rates } = opened(1, 1);
    expect([rates.take("a"), rates.take("b"), rates.take("a")]).toEqual([null, null, 1]);
  });

  test("have no limit at the rate 0", () => {
    const { rates } = opened(0, 1);
    for (let i = 0; i < 10; i++) expect(rates.take("a")).toBeNull();
  });

  test.each([
    ["is set back by years", -1e8],
    ["gives no number", Number.NaN],
  ])("are limited as before if the clock %s", (_, seconds) => {
    const { clock, rates } = opened(1, 2);
    expect([rates.take("a"), rates.take("a")]).toEqual([null, null]);
    clock.seconds = seconds;
    expect([rates.take("a"), rates.take("b")]).toEqual([1, null]);
    clock.seconds = 1e9;
    rates.take("a");
    clock.seconds += 10;
    expect([rates.take("a"), rates.take("a"), rates.take("a")]).toEqual([null, null, 1]);
  });

  test("of the clients who called least recently are forgotten first", () => {
    const { rates } = opened(1, 1, 2);
    for (const client of ["a", "b"]) expect(rates.take(client)).toBeNull();
    expect(rates.take("a")).toBe(1);
    expect(rates.take("c")).toBeNull();
    expect(rates.take("a")).toBe(1);
    expect(rates.take("b")).toBeNull();
  });

  test("are timed in seconds, by the clock of the process", () => {
    const rates = new CallRates(0.001, 1);
    expect(rates.take("a")).toBeNull();
    // A thousand seconds, less the time that this test has taken.
    expect(rates.take("a")).toBeGreaterThan(999);
  });
});
