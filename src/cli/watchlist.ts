import type { Command } from "commander";
import type { Operations } from "../contract/operations.js";
import { inSession, type SessionContext } from "../workflow.js";
import { fraudster, listOf, listsIn, namesIn, profileOf } from "./calls.js";
import { type CheckOptions, check, compared, RECORDING, withCheck } from "./checks.js";
import { ExitCode } from "./exit-code.js";
import type { StoreUse } from "./local-store.js";
import { withOperations } from "./operations.js";
import { createOutput, facts, type Output, table } from "./output.js";
import { type PlaceOptions, withPlace } from "./shared-options.js";

/** Help of `<watchlist>`. */
const WATCHLIST = "name (tag) or id of the watchlist";

export function watchlistCommand(program: Command): void {
  const watchlist = program
    .command("watchlist")
    .description("manage watchlists of known fraudsters, and check recordings against them");
  const onOne = (name: string, description: string, work: (id: string, call: ListCall) => Promise<void>) =>
    withPlace(watchlist.command(name).description(description).argument("<watchlist>", WATCHLIST)).action(
      (given: string, options: PlaceOptions) =>
        onList(options, async (call) => work(await listOf(call.operations, call.scope, "watchlist", given), call)),
    );

  withPlace(
    watchlist
      .command("create")
      .description("create a watchlist and print its id")
      .argument("[fraudsters...]", "names of its first members (enroll them with --fraudster)")
      .option("--tag <tag>", "name of the list"),
  ).action((names: string[], options: PlaceOptions & { tag?: string }) =>
    onList({ ...options, creates: names.length === 0 }, async ({ operations, context, output }) => {
      const ids = await profilesOf(operations, options.scope, names);
      const { gkGroupId } = await operations.createWatchlist({
        context,
        tag: options.tag ?? "",
        gkVoiceprintProfileIds: ids,
      });
      output.answer({ watchlistId: gkGroupId!.value, members: ids.uniqueIds.length }, () => gkGroupId!.value);
    }),
  );

  withPlace(watchlist.command("list").description("list the watchlists of a scope")).action((options: PlaceOptions) =>
    withOperations(options, async ({ operations }) => {
      const lists = (await listsIn(operations, options.scope, "watchlist")).map(({ id, ...list }) => ({
        watchlistId: id,
        ...list,
      }));
      createOutput(options.json).answer(lists, () =>
        lists.length === 0
          ? `there is no watchlist in the scope "${options.scope}"`
          : table(
              ["watchlist", "tag", "members"],
              lists.map(({ watchlistId, tag, profiles, owners }) => [watchlistId, tag, profiles + owners]),
            ),
      );
    }),
  );

  for (const [verb, operation, description] of [
    ["add", "addWatchlistMembers", "add fraudsters to a watchlist"],
    ["remove", "removeWatchlistMembers", "remove fraudsters from a watchlist"],
  ] as const)
    withPlace(
      watchlist
        .command(verb)
        .description(description)
        .argument("<watchlist>", WATCHLIST)
        .argument("<fraudsters...>", "names of the fraudsters"),
    ).action((given: string, names: string[], options: PlaceOptions) =>
      onList(options, async ({ operations, context, output }) => {
        const id = await listOf(operations, options.scope, "watchlist", given);
        const ids = await profilesOf(operations, options.scope, names);
        await operations[operation]({ context, gkGroupId: { value: id }, gkVoiceprintProfileIds: ids });
        output.answer(
          { watchlistId: id, changed: names },
          () => `${verb === "add" ? "added" : "removed"}: ${names.join(", ")}`,
        );
      }),
    );

  onOne("show", "list the members of a watchlist", async (id, { operations, context, scope, output }) => {
    const list = await operations.getWatchlist({ context, gkGroupId: { value: id } });
    const members = (list.gkVoiceprintProfileIds?.uniqueIds ?? []).map(({ value }) => value);
    const owners = (list.gkOwnerIds?.uniqueIds ?? []).map(({ value }) => value);
    const known = await namesIn(operations, scope, "fraudster");
    const names = members.map((value) => known.get(value) ?? null);
    output.answer({ watchlistId: id, tag: list.tag, profileIds: members, names, ownerIds: owners }, () =>
      table(
        ["member", "name", "kind"],
        [
          ...members.map((value, i) => [value, names[i], "voiceprint"]),
          ...owners.map((value) => [value, null, "owner"]),
        ],
      ),
    );
  });

  onOne("delete", "delete a watchlist; its voiceprints are kept", async (id, { operations, context, output }) => {
    await operations.deleteWatchlist({ context, gkGroupId: { value: id } });
    output.answer({ watchlistId: id, deleted: true }, () => "deleted");
  });

  onOne(
    "consistency",
    "check whether all voiceprints of a watchlist were made by the current model",
    async (id, { operations, context, scope, output }) => {
      const found = await operations.checkWatchlistConsistency({
        context,
        target: { case: "watchlist", value: { uniqueId: { value: id } } },
      });
      const answer = {
        watchlistId: id,
        compatible: found.totalNumberOfCompatiblePrints ?? 0,
        incompatible: found.totalNumberOfIncompatiblePrints ?? 0,
        incompatibleProfiles: found.incompatiblePrints.map(
          (print) => print.voiceprintDetails?.gkVoiceprintProfileId?.value ?? "",
        ),
      };
      const names = await namesIn(operations, scope, "fraudster");
      output.answer(answer, () =>
        facts([
          ["compatible", answer.compatible],
          ["incompatible", answer.incompatible],
          ...answer.incompatibleProfiles.map((profile) => ["  enroll again", names.get(profile) ?? profile] as const),
        ]),
      );
      if (answer.incompatible > 0) process.exitCode = ExitCode.no;
    },
  );

  withCheck(
    watchlist
      .command("check")
      .description("check whether a fraudster on the list is speaking")
      .argument("<watchlist>", WATCHLIST)
      .argument("<file>", RECORDING),
  ).action(async (given: string, file: string, options: CheckOptions) => {
    await check(options, file, async ({ operations, context, audio }) => {
      const id = await listOf(operations, options.scope, "watchlist", given);
      const { result, status } = await operations.detectKnownFraudsters({
        context,
        target: { case: "watchlist", value: { uniqueId: { value: id } } },
        ...audio,
      });
      const names = await namesIn(operations, options.scope, "fraudster");
      return { ...compared(result!, names), score: result!.fraudDetectionScore, notCompared: status?.message };
    });
  });
}

interface ListCall {
  readonly operations: Operations;
  readonly context: SessionContext;
  readonly scope: string;
  readonly output: Output;
}

function onList(options: PlaceOptions & StoreUse, work: (call: ListCall) => Promise<void>): Promise<void> {
  const output = createOutput(options.json);
  return withOperations(options, ({ operations }) =>
    inSession(operations, options, (context) => work({ operations, context, scope: options.scope, output })),
  );
}

async function profilesOf(operations: Operations, scope: string, names: readonly string[]) {
  const uniqueIds = [];
  for (const name of names) uniqueIds.push({ value: await profileOf(operations, scope, fraudster(name)) });
  return { uniqueIds };
}
