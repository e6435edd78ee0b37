/** Many callers at once, like IVRs: a session, an upload, a check, the end; after BUSY they wait as long as the box says and retry. */
import { cpuMs, median, quantile } from "../measure.mjs";
import { prepare, RECORDING, requestOf } from "./world.mjs";

/** Warm-up, not counted: until all callers have joined and the box's code is compiled. A box runs for weeks. */
const RAMP_SECONDS = 15;

export async function underLoad({ client, ask, seconds, callers }) {
  const world = await prepare(client);
  const counts = { answered: 0, busy: 0, failed: 0 };
  /** Checks answered while all callers were active: time, and latency. */
  const checks = [];
  const memory = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;

  const attempt = async (work) => {
    const from = performance.now();
    try {
      await work();
      return performance.now() - from;
    } catch (error) {
      if (error.status !== 503 && error.status !== 429) {
        counts.failed++;
        console.error(error);
        return null;
      }
      counts.busy++;
      const wait = Number.parseFloat(error.retryAfter ?? "0.5") * (0.75 + 0.5 * Math.random());
      await new Promise((wake) => setTimeout(wake, wait * 1000));
      return null;
    }
  };
  const caller = async () => {
    while (performance.now() < until) {
      // A separate call, like an IVR's: its audio is deleted when it ends.
      let context = null;
      let media = null;
      const begun = await attempt(async () => {
        const { gkSessionId, gkEngagementId } = await client.call("startSession", {
          context: { gkScopeId: world.context.gkScopeId },
        });
        context = { ...world.context, gkSessionId, gkEngagementId };
        media = (await client.upload(context, RECORDING)).gkMediaSegmentId;
      });
      if (begun === null) continue;
      // After BUSY the recording is already uploaded: only the check is repeated until it is answered.
      const request = requestOf("verify", { ...world, context, gkMediaSegmentId: media });
      let took = null;
      while (took === null && performance.now() < until + 60_000)
        took = await attempt(() => client.call("verify", request));
      await attempt(() => client.call("stopSession", { context }));
      if (took === null) continue;
      counts.answered++;
      checks.push({ at: (performance.now() - startedAt) / 1000, took });
    }
  };

  const window = { from: Math.min(RAMP_SECONDS, seconds / 4), to: seconds };
  const cpuAt = async (second) => {
    await new Promise((wake) => setTimeout(wake, second * 1000));
    return { box: await ask("cpuSeconds"), callers: cpuMs() / 1000 };
  };
  const sampling = setInterval(async () => memory.push(await ask("memory")), 1000);
  const cpu = Promise.all([cpuAt(window.from), cpuAt(window.to)]);
  await Promise.all(Array.from({ length: callers }, caller));
  clearInterval(sampling);

  const [cpuFrom, cpuTo] = await cpu;
  const counted = checks.filter(({ at }) => at >= window.from && at < window.to);
  const perSecond = counted.length / (window.to - window.from);
  const third = Math.max(1, Math.floor(memory.length / 3));
  const [second, last] = [memory.slice(third, 2 * third), memory.slice(2 * third, 3 * third)];
  const typicalMb = (samples) => median(samples.map(({ rss }) => rss)) / 1e6;
  // The minimum of a third is what remains after a garbage collection.
  const liveMb = (samples) => Math.min(...samples.map(({ live }) => live)) / 1e6;
  return {
    callers,
    seconds,
    ...counts,
    perSecond,
    cpuSecondsEach: (cpuTo.box - cpuFrom.box) / counted.length,
    callersCpuSecondsEach: (cpuTo.callers - cpuFrom.callers) / counted.length,
    medianMs: median(checks.map(({ took }) => took)),
    p99Ms: quantile(
      checks.map(({ took }) => took),
      0.99,
    ),
    rssMb: [typicalMb(second), typicalMb(last)],
    liveMb: [liveMb(second), liveMb(last)],
  };
}
