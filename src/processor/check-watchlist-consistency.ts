import type { CheckWatchlistConsistencyRequest } from "../contract/index.js";
import { watchlistConsistency } from "../voiceprint/watchlist.js";
import {
  detailsOf,
  eachOnce,
  type FoundProfile,
  findGroups,
  isPrint,
  membersOf,
  someProfilesOf,
} from "./candidates.js";
import { openContext } from "./context.js";
import type { Dependencies, Implementation, OperationOptions } from "./dependencies.js";
import { calibrationModel, uniqueId } from "./messages.js";

/** Reports which prints can be scored here. A profile without a template is listed as well, because it detects nobody. */
export const checkWatchlistConsistency: Implementation<"checkWatchlistConsistency"> = async (
  deps,
  request,
  options,
) => {
  const { scopeId, set, engine } = await openContext(deps, request.context);
  const unique = eachOnce(await targets(deps, scopeId, request.target, options));
  const { compatible, incompatible, listed } = watchlistConsistency(
    unique.map((one) => ({ found: one, revision: isPrint(one) ? one.template.revision : null })),
    (revision) => deps.models.has(revision),
    set.maxIncompatiblePrintsListed,
  );
  return {
    totalNumberOfCompatiblePrints: compatible,
    totalNumberOfIncompatiblePrints: incompatible,
    incompatiblePrints: listed.map(({ found: one }) => ({
      voiceprintDetails: detailsOf(one),
      incompatibleCalibrationModel: isPrint(one)
        ? {
            gkCalibrationModelRevisionId: uniqueId(one.template.revision),
            calibrationModelId: one.template.calibrationModelId ?? "",
          }
        : undefined,
      fraudsterId: isPrint(one) ? one.ownerExternalId : one.owner.externalId,
    })),
    requiredCalibrationModel: calibrationModel(engine.model),
  };
};

async function targets(
  deps: Dependencies,
  scopeId: string,
  target: CheckWatchlistConsistencyRequest["target"],
  options: OperationOptions,
): Promise<FoundProfile[]> {
  if (target.case !== "watchlist") return someProfilesOf(deps, scopeId, target.value!, "fraudster", options);
  const { groups, tag } = await findGroups(deps, scopeId, "watchlist", target.value, "watchlist");
  return membersOf(deps, scopeId, groups, tag);
}
