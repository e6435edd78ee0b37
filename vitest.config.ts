import { defineConfig } from "vitest/config";

/** Tests of the compiled library: real worker threads, the command line as a process, processes that are killed. */
export const library = [
  "test/audio/few-descriptors.test.ts",
  "test/bench/conditions.test.ts",
  "test/cli/documents.test.ts",
  "test/cli/local.test.ts",
  "test/cli/output-file.test.ts",
  "test/contract/package-root.test.ts",
  "test/dsp/quality.test.ts",
  "test/engine/attack.test.ts",
  "test/engine/calibration-file.test.ts",
  "test/engine/engine.test.ts",
  "test/engine/pool.test.ts",
  "test/engine/separated-voices.test.ts",
  "test/engine/shipped-model.test.ts",
  "test/live/same-score.test.ts",
  "test/live/silent.test.ts",
  "test/processor/attack-checks.test.ts",
  "test/processor/easy-door.test.ts",
  "test/processor/model-update.test.ts",
  "test/processor/two-models.test.ts",
  "test/python/client.test.ts",
  "test/model-import/import-model.test.ts",
  "test/model-import/tdnn.test.ts",
  "test/server/log.test.ts",
  "test/server/page-calibration.test.ts",
  "test/store/crash.test.ts",
  "test/store/embedded.test.ts",
  "test/store/postgres.test.ts",
  "test/structure/campaigns.test.ts",
];

/** Tests of what browsers load and of the package as it is published. */
export const bundles = [
  "test/engine/browser.test.ts",
  "test/examples/examples.test.ts",
  "test/structure/package.test.ts",
  "test/trials/trials.test.ts",
  "test/web/bundle.test.ts",
  "test/web/bundlers.test.ts",
  "test/web/microphone.test.ts",
  "test/web/operator-interruptions.test.ts",
  "test/web/operator-troubles.test.ts",
  "test/web/operator.test.ts",
  "test/web/page-interruptions.test.ts",
  "test/web/page-troubles.test.ts",
  "test/web/page.test.ts",
  "test/web/size.test.ts",
];

/** Before its tests, each project builds what they need and what is not up to date. test/structure checks the lists above. */
const project = (
  name: string,
  build: "kernels" | "library" | "bundles",
  tests: { include: string[]; exclude?: string[] },
) => ({
  extends: true as const,
  test: { name, globalSetup: `test/setup/${build}.ts`, ...tests },
});

export default defineConfig({
  test: {
    // The kernels and the store tests keep a core busy each: more workers only make time limits flaky.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A second, the default, is too short on a busy machine.
    expect: { poll: { timeout: 30_000 } },
    projects: [
      project("sources", "kernels", { include: ["test/**/*.test.ts"], exclude: [...library, ...bundles] }),
      project("library", "library", { include: library }),
      project("bundles", "bundles", { include: bundles }),
    ],
  },
});
