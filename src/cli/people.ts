/** Lists persons and fraudsters, and erases one. */
import type { Command } from "commander";
import { VoiceprintProfileStatus } from "../contract/index.js";
import { Voiceprints } from "../voiceprints.js";
import { profilesIn } from "../workflow.js";
import { CommandError } from "./command-error.js";
import { withOperations } from "./operations.js";
import { createOutput, table, words } from "./output.js";
import { type PlaceOptions, withPlace } from "./shared-options.js";

export function peopleCommands(program: Command): void {
  for (const [name, kind, description] of [
    ["people", "person", "list the people who have voiceprints"],
    ["fraudsters", "fraudster", "list the known fraudsters"],
  ] as const)
    withPlace(program.command(name).description(description)).action((options: PlaceOptions) =>
      withOperations(options, async ({ operations }) => {
        const rows = (await profilesIn(operations, options.scope, kind))
          .map(({ id, status, ...profile }) => ({
            ...profile,
            status: status === VoiceprintProfileStatus.UNSPECIFIED ? "DAMAGED" : VoiceprintProfileStatus[status]!,
            profileId: id,
          }))
          .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
        const cells = rows.map((row) => [row.name || row.profileId, row.tag, words(row.status), row.printVersion]);
        createOutput(options.json).answer(rows, () =>
          rows.length === 0
            ? `no ${kind} is enrolled in the scope "${options.scope}"`
            : table(["name", "tag", "status", "print version"], cells),
        );
      }),
    );

  withPlace(
    program
      .command("erase")
      .description("erase all voiceprints of a person, with their recordings and keys")
      .argument("<name>", "name of the person")
      .option("--fraudster", "the name is a fraudster's"),
  ).action((name: string, options: PlaceOptions & { fraudster?: boolean }) =>
    withOperations(options, async ({ operations }) => {
      const kind = options.fraudster ? "fraudster" : "person";
      const profiles = (await profilesIn(operations, options.scope, kind, name)).length;
      const voices = new Voiceprints(operations, options);
      const erased = await (options.fraudster ? voices.eraseFraudster(name) : voices.erase(name));
      if (!erased) throw new CommandError(`no ${kind} "${name}" is enrolled here`);
      createOutput(options.json).answer({ erased: name, profiles }, () => `${name} is erased.`);
    }),
  );
}
