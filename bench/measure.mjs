/**
 * Measuring on shared machines: process CPU time, short slices of both sides in turn, medians of paired ratios.
 *
 * A row of the report: { work, peer, ratio, target, met, detail }. `ratio` is the peer's time over ours unless `unit` says otherwise;
 * `target` is the ratio to reach ("atLeast") or to stay under ("atMost").
 */

/** Milliseconds of CPU that this process has used, all its threads together. */
export function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = share * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}

async function slice(work, repeats) {
  const before = cpuMs();
  for (let i = 0; i < repeats; i++) {
    const pending = work();
    if (pending?.then) await pending;
  }
  return (cpuMs() - before) / repeats;
}

/**
 * Times every case against `reference`: each round runs the reference, the case, and the reference again.
 * Returns per case { ms, ratio, low, high }: its median time, and the median and quartiles of its time over the reference's.
 */
export async function compare(cases, reference, { rounds = 25, sliceMs = 4, warmMs = 150 } = {}) {
  const repeats = {};
  for (const [name, work] of Object.entries(cases)) {
    const end = cpuMs() + warmMs;
    do await slice(work, 1);
    while (cpuMs() < end);
    let fastest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 5; i++) fastest = Math.min(fastest, await slice(work, 1));
    repeats[name] = Math.max(1, Math.round(sliceMs / Math.max(fastest, 1e-3)));
  }
  const times = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  const ratios = Object.fromEntries(Object.keys(cases).map((name) => [name, []]));
  const timed = (name) => slice(cases[name], repeats[name]);
  for (let round = 0; round < rounds; round++) {
    for (const name of Object.keys(cases)) {
      if (name === reference) continue;
      const before = await timed(reference);
      const time = await timed(name);
      const after = await timed(reference);
      times[reference].push(before, after);
      times[name].push(time);
      ratios[name].push(time / ((before + after) / 2));
    }
  }
  ratios[reference] = [1];
  return Object.fromEntries(
    Object.keys(cases).map((name) => [
      name,
      {
        ms: median(times[name]),
        ratio: median(ratios[name]),
        low: quantile(ratios[name], 0.25),
        high: quantile(ratios[name], 0.75),
      },
    ]),
  );
}

export function atLeast(work, peer, ratio, target, detail = "", unit = "×") {
  return { work, peer, ratio, target: `≥ ${target}${unit}`, met: ratio >= target, unit, detail };
}

export function atMost(work, peer, ratio, target, detail = "", unit = "") {
  return { work, peer, ratio, target: `≤ ${target}${unit}`, met: ratio <= target, unit, detail };
}

/** A peer that cannot run here is reported as missing, not as beaten. */
export function absent(work, peer, reason) {
  return { work, peer, ratio: null, target: "", met: null, unit: "", detail: String(reason).split("\n")[0] };
}

/** The same numbers in every run. */
export { mulberry32 as random } from "../dist/demo/voice.js";
