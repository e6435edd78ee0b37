/** Models and their prints: moves prints to another model. */
import { setTimeout as wait } from "node:timers/promises";
import type { Command } from "commander";
import {
  RetrainingOutcome,
  VoiceprintProfilesStatusJobState as State,
  type VoiceprintProfileRetraining,
} from "../contract/index.js";
import type { Operations } from "../contract/operations.js";
import { namesIn } from "./calls.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { modelFileCommands } from "./model-import.js";
import { withOperations } from "./operations.js";
import { createOutput, facts } from "./output.js";
import { createProgress } from "./progress.js";
import { type PlaceOptions, withPlace } from "./shared-options.js";

export function modelCommand(program: Command): void {
  const model = program
    .command("model")
    .description("import and compare models, and move voiceprints to another model");
  withPlace(
    model
      .command("migrate")
      .description("retrain the voiceprints of a scope with its current model, from the recordings that were kept")
      .option("--dry-run", "only show what would happen to each print"),
  )
    .addHelpText(
      "after",
      "\nThe settings model, scopeModels and olderModels of the box name the models. If no recordings of a person were kept,\ntheir voiceprint stays on the older model until three later calls have matched it.",
    )
    .action(migrate);
  modelFileCommands(model);
}

async function migrate(options: PlaceOptions & { readonly dryRun?: boolean }): Promise<void> {
  const output = createOutput(options.json);
  const dryRun = options.dryRun ?? false;
  await withOperations(options, async ({ operations, workOnJobs }) => {
    await workOnJobs?.();
    const report = await moved(operations, options, dryRun, !output.json);
    output.answer({ dryRun, ...report }, () =>
      [
        dryRun ? "Nothing was changed. A migration would have this result:" : "Prints of this scope:",
        facts([
          [dryRun ? "would move" : "moved", report.moved],
          ["already use the new model", report.already],
          ["scored by their own model until later calls move them", report.waitingForCalls],
          ["to be enrolled again", report.enrollmentNeeded],
          ["failed", report.failed],
        ]),
        ...report.profiles.map(({ profileId, name, outcome }) => `  ${name ?? profileId}  ${outcome}`),
      ].join("\n"),
    );
    if (report.failed > 0) process.exitCode = ExitCode.failed;
  });
}

const pollMs = 500;

async function moved(operations: Operations, place: PlaceOptions, dryRun: boolean, shown: boolean) {
  const context = { gkScopeId: { value: place.scope }, configsetId: place.configset };
  const { gkJobId } = await operations.startVoiceprintProfilesRetrainingJob({ context, dryRun });
  const progress = createProgress(shown);
  progress.start("percent", 100);
  try {
    for (;;) {
      const job = await operations.getVoiceprintProfilesRetrainingJob({ context, gkJobId: gkJobId! });
      if (job.state === State.FAILED)
        throw new CommandError("the migration failed; the box's log says why", undefined, ExitCode.failed);
      if (job.state === State.COMPLETED) {
        const names = job.profiles.some(isUnmoved)
          ? await namesIn(operations, place.scope, "person", "fraudster")
          : new Map();
        return reportOf(job.profiles, names);
      }
      progress.set(Math.round(100 * job.progress));
      await wait(pollMs);
    }
  } finally {
    progress.stop();
  }
}

const isUnmoved = ({ outcome }: VoiceprintProfileRetraining): boolean =>
  outcome === RetrainingOutcome.ENROLLMENT_NEEDED || outcome === RetrainingOutcome.FAILED;

function reportOf(profiles: readonly VoiceprintProfileRetraining[], names: ReadonlyMap<string, string>) {
  const count = (outcome: RetrainingOutcome) => profiles.filter((one) => one.outcome === outcome).length;
  return {
    moved: count(RetrainingOutcome.RETRAINED),
    already: count(RetrainingOutcome.NOT_NEEDED),
    waitingForCalls: count(RetrainingOutcome.WAITING_FOR_CALLS),
    enrollmentNeeded: count(RetrainingOutcome.ENROLLMENT_NEEDED),
    failed: count(RetrainingOutcome.FAILED),
    /** Those that must enroll again, or failed. */
    profiles: profiles.filter(isUnmoved).map(({ gkVoiceprintProfileId, outcome }) => ({
      profileId: gkVoiceprintProfileId!.value,
      name: names.get(gkVoiceprintProfileId!.value) ?? null,
      outcome: outcome === RetrainingOutcome.FAILED ? "failed" : "to be enrolled again",
    })),
  };
}
