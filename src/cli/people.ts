/** Who is known: lists of persons and fraudsters, and erasing one. */
import type { Command } from "commander";
import { OwnerType, VoiceprintProfileStatus, type VoiceprintProfileSummary } from "../contract/index.js";
import type { Operations } from "../contract/operations.js";
import { CommandError } from "./command-error.js";
import { openOperations } from "./operations.js";
import { createOutput, table, words } from "./output.js";
import { type PlaceOptions, withPlace } from "./shared-options.js";

/** All profiles of a scope and kind, whatever their number. */
export async function profilesIn(
  operations: Operations,
  scope: string,
  ownerType: OwnerType,
): Promise<VoiceprintProfileSummary[]> {
  const context = { gkScopeId: { value: scope } };
  const found: VoiceprintProfileSummary[] = [];
  for (let pageToken = ""; ; ) {
    const page = await operations.listVoiceprintProfiles({ context, ownerType, pageSize: 500, pageToken });
    found.push(...page.profiles);
    if (page.nextPageToken === "") return found;
    pageToken = page.nextPageToken;
  }
}

export function peopleCommands(program: Command): void {
  for (const [name, ownerType, description] of [
    ["people", OwnerType.PERSON, "list the persons that have voiceprints"],
    ["fraudsters", OwnerType.FRAUDSTER, "list the known fraudsters"],
  ] as const)
    withPlace(program.command(name).description(description)).action(async (options: PlaceOptions) => {
      const { operations, close } = await openOperations(options);
      try {
        const rows = (await profilesIn(operations, options.scope, ownerType))
          .map(({ ownerId, profileTag, status, printVersion, gkVoiceprintProfileId }) => ({
            name: ownerId,
            tag: profileTag,
            status: VoiceprintProfileStatus[status]!,
            printVersion,
            profileId: gkVoiceprintProfileId!.value,
          }))
          .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
        createOutput(options.json ?? false).answer(rows, () =>
          rows.length === 0
            ? "nobody is enrolled"
            : table(
                ["name", "tag", "status", "print version"],
                rows.map((row) => [row.name, row.tag, words(row.status), row.printVersion]),
              ),
        );
      } finally {
        await close();
      }
    });

  withPlace(
    program
      .command("erase")
      .description("erase all voiceprints of a person, and the recordings and keys behind them")
      .argument("<name>", "whom")
      .option("--fraudster", "the name is a fraudster's"),
  ).action(async (name: string, options: PlaceOptions & { fraudster?: boolean }) => {
    const { operations, close } = await openOperations(options);
    try {
      const ownerType = options.fraudster ? OwnerType.FRAUDSTER : OwnerType.PERSON;
      const all = await profilesIn(operations, options.scope, ownerType);
      const theirs = all.filter(({ ownerId }) => ownerId === name);
      if (theirs.length === 0)
        throw new CommandError(`no ${options.fraudster ? "fraudster" : "person"} "${name}" is known here`);
      const context = { gkScopeId: { value: options.scope } };
      for (const { gkVoiceprintProfileId } of theirs)
        await operations.deleteVoiceprintProfile({ context, gkVoiceprintProfileId: gkVoiceprintProfileId! });
      createOutput(options.json ?? false).answer({ erased: name, profiles: theirs.length }, () => `${name} is erased.`);
    } finally {
      await close();
    }
  });
}
