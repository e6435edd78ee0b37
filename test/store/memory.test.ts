import { expect, test } from "vitest";
import { createMemoryStore } from "../../src/store/memory.js";
import { describeStoreContract } from "./contract.js";
import { jobOf } from "./fixtures.js";

describeStoreContract("memory", { open: async (options) => createMemoryStore(options) });

test("a job added at the moment the last one ends is run", async () => {
  for (let steps = 0; steps < 20; steps++) {
    const store = createMemoryStore();
    const jobs = [jobOf("scope"), jobOf("scope")];
    const worked: string[] = [];
    let firstEnds = () => {};
    const first = new Promise<void>((resolve) => {
      firstEnds = resolve;
    });
    await store.jobs.work(async ({ id }) => {
      worked.push(id);
      firstEnds();
    });
    await store.jobs.create(jobs[0]!);
    await first;
    for (let step = 0; step < steps; step++) await null;
    await store.jobs.create(jobs[1]!);
    await new Promise((wake) => setTimeout(wake));
    expect(worked).toEqual(jobs.map(({ id }) => id));
    await store.close();
  }
});

test("expired documents are removed within a minute of use, also after the clock was set back", async () => {
  let now = Date.UTC(2026, 10, 16);
  const { documents } = createMemoryStore({ now: () => now });
  for (const ahead of [0, 400 * 86_400_000]) {
    now += ahead;
    await documents.put("codes", "other", {});
    now -= ahead;
    await documents.put("codes", "expiring", {}, now + 1000);
    now += 60_000;
    await documents.put("codes", "other", {});
    // Reading it in time would remove it too: only a clock before its expiry shows whether it is still there.
    now -= 60_000;
    expect(await documents.get("codes", "expiring")).toBeNull();
    now += 60_000;
  }
});
