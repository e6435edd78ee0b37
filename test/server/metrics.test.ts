/** What a monitoring system reads: the measures of calls and recordings. */
import { expect, it } from "vitest";
import { LiveCalls } from "../../src/server/limits/live-calls.js";
import { WorkQueue } from "../../src/server/limits/work-queue.js";
import { ServerMetrics } from "../../src/server/metrics.js";
import { countOfCall, fieldRates } from "../../src/voiceprint/field-rates.js";

const opened = () => new ServerMetrics(new WorkQueue(1, 1), new LiveCalls(1), async () => []);

/** Upper bounds and counts of a histogram's buckets, in the order of the page. */
const bucketsIn = (page: string, name: string) =>
  [...page.matchAll(new RegExp(`^${name}_bucket\\{.*?le="([^"]+)".*\\} (\\d+)$`, "gm"))].map(
    ([, bound, count]): [number, number] => [
      bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound),
      Number(count),
    ],
  );

it("a measure counts in every bucket that is large enough for it, and the buckets ascend", async () => {
  const metrics = opened();
  metrics.call("Verify", "http", "OK", 0.3);
  metrics.queued(0.3);
  metrics.audio("Verify", 10, 3);
  const page = await metrics.text();
  for (const name of ["vivavoce_call_seconds", "vivavoce_queue_wait_seconds", "vivavoce_real_time_factor"]) {
    const buckets = bucketsIn(page, name);
    const bounds = buckets.map(([bound]) => bound);
    expect(bounds.length).toBeGreaterThan(5);
    expect(bounds).toEqual([...bounds].sort((a, b) => a - b));
    expect(buckets).toEqual(bounds.map((bound) => [bound, bound >= 0.3 ? 1 : 0]));
  }
});

it("a histogram keeps its buckets: dashboards and recorded measures name them", async () => {
  const metrics = opened();
  metrics.call("Verify", "http", "OK", 1);
  metrics.audio("Verify", 1, 1);
  const page = await metrics.text();
  const boundsOf = (name: string) => bucketsIn(page, name).map(([bound]) => bound);
  const last = Number.POSITIVE_INFINITY;
  expect(boundsOf("vivavoce_call_seconds")).toEqual([
    ...[0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    last,
  ]);
  expect(boundsOf("vivavoce_queue_wait_seconds")).toEqual([0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, last]);
  expect(boundsOf("vivavoce_real_time_factor")).toEqual([0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1, 2, last]);
});

it("the model, the queue and the operations of the last hour are shown", async () => {
  const queue = new WorkQueue(1, 1);
  const liveCalls = new LiveCalls(4);
  for (const id of ["1", "2", "3"]) liveCalls.enter(id, "grpc", "bank", "caller", () => {});
  const model = { revision: "r2", calibrationRevision: "c7" };
  const metrics = new ServerMetrics(queue, liveCalls, async () => [], model);
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const calls = [1, 2].map(() => queue.run(new AbortController().signal, () => ended));
  const page = await metrics.text();
  expect(page).toContain('vivavoce_model{revision="r2",calibration="c7"} 1');
  expect(page).toMatch(/^vivavoce_queue_running 1$/m);
  expect(page).toMatch(/^vivavoce_queue_waiting 1$/m);
  expect(page).toMatch(/^vivavoce_live_calls 3$/m);
  expect(page).toMatch(/^vivavoce_process_cpu_seconds_total /m);
  expect(await opened().text()).not.toContain("vivavoce_model");
  end();
  await Promise.all(calls);
  metrics.call("Verify", "http", "OK", 1);
  metrics.call("Train", "http", "OK", 1);
  metrics.audio("Verify", 2, 1);
  expect([metrics.load.spanMs, metrics.load.most]).toEqual([10_000, 360]);
  expect(metrics.load.since(0)).toMatchObject([{ calls: 1, latency: {}, realTimeFactor: {} }]);
});

it("promised rates are those of the last look at the store; while it does not answer there are none", async () => {
  let now = 0;
  const counted = [{ ...countOfCall(1000, 300), calls: 500 }];
  let rates = async () => fieldRates("watchlist", counted);
  const metrics = new ServerMetrics(
    new WorkQueue(1, 1),
    new LiveCalls(1),
    () => rates(),
    undefined,
    () => now,
  );
  const shown = async () => {
    now += 1000;
    const page = await metrics.text();
    return /^vivavoce_impostor_exceeded\{/m.test(page);
  };
  expect(await shown()).toBe(true);
  rates = () => Promise.reject(new Error("the store is gone"));
  expect(await shown()).toBe(false);
});

it("the length of recordings is added up; one without a length has no real-time factor", async () => {
  const metrics = opened();
  metrics.audio("Verify", 10, 3);
  metrics.audio("Verify", 2.5, 3);
  metrics.audio("Verify", 0, 3);
  metrics.audio("Verify", Number.NaN, 3);
  const page = await metrics.text();
  expect(page).toContain('vivavoce_audio_seconds_total{operation="Verify"} 12.5');
  expect(page).toContain('vivavoce_real_time_factor_count{operation="Verify"} 2');
});

it("decisions and uploads are counted", async () => {
  const metrics = opened();
  for (const decision of ["AUTHENTIC", "AUTHENTIC", "NO_MATCH"]) metrics.decision("Verify", decision);
  metrics.uploaded(1000);
  metrics.uploaded(24);
  const page = await metrics.text();
  expect(page).toContain('vivavoce_decisions_total{operation="Verify",decision="AUTHENTIC"} 2');
  expect(page).toContain('vivavoce_decisions_total{operation="Verify",decision="NO_MATCH"} 1');
  expect(page).toMatch(/^vivavoce_uploaded_bytes_total 1024$/m);
});

it("the page is written at most once a second, whoever asks, and is then up to date", async () => {
  let now = 0;
  let asked = 0;
  const rates = async () => {
    asked++;
    return [];
  };
  const metrics = new ServerMetrics(new WorkQueue(1, 1), new LiveCalls(1), rates, undefined, () => now);
  const first = metrics.text();
  metrics.uploaded(7);
  now = 999;
  expect(await metrics.text()).toBe(await first);
  expect(asked).toBe(1);
  now = 1000;
  expect(await metrics.text()).toMatch(/^vivavoce_uploaded_bytes_total 7$/m);
});
