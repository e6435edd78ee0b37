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
