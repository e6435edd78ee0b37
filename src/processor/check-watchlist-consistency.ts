import type { CheckWatchlistConsistencyRequest } from "../contract/index.js";
import { eachOnce, type FoundProfile, findGroups, findProfiles, membersOf, someProfilesOf } from "./candidates.js";
import { type CallScope, openContext } from "./context.js";
import type { Implementation } from "./dependencies.js";
import { calibrationModel, printDetails, uniqueId } from "./messages.js";

/** Reports which prints can be scored here. A profile without a template is listed as well, because it detects nobody. */
export const checkWatchlistConsistency: Implementation<"checkWatchlistConsistency"> = async (
  deps,
  request,
  options,
) => {
  const context = await openContext(deps, request.context, options);
  const unique = eachOnce(await targets(context, request.target));
  const incompatible = unique.filter(({ template }) => template === null || !deps.models.has(template.revision));
  return {
    totalNumberOfCompatiblePrints: unique.length - incompatible.length,
    totalNumberOfIncompatiblePrints: incompatible.length,
    incompatiblePrints: incompatible.slice(0, context.set.maxIncompatiblePrintsListed).map((one) => ({
      voiceprintDetails: printDetails(one),
      incompatibleCalibrationModel: one.template
        ? {
            gkCalibrationModelRevisionId: uniqueId(one.template.revision),
            calibrationModelId: one.template.calibrationModelId ?? "",
          }
        : undefined,
      fraudsterId: one.ownerExternalId,
    })),
    requiredCalibrationModel: calibrationModel(context.engine.model),
  };
};

async function targets(scope: CallScope, target: CheckWatchlistConsistencyRequest["target"]): Promise<FoundProfile[]> {
  if (target.case !== "watchlist") return someProfilesOf(scope, target.value!, "fraudster", findProfiles);
  const { groups, tag } = await findGroups(scope, "watchlist", target.value, "watchlist");
  return membersOf(scope, groups, tag);
}
