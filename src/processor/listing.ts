/** Lists the contents of a scope page by page. The page token is the last id of the previous page. */
import { OwnerType, VoiceprintProfileStatus } from "../contract/index.js";
import { isUuid } from "../contract/mandatory.js";
import type { Id, ListedProfile, OwnerKind, Store } from "../store/port.js";
import { checkOptionalContext } from "./context.js";
import type { GroupImplementation, Implementation } from "./dependencies.js";
import { invalid } from "./failures.js";
import { consentMessage, ownerType, uniqueId } from "./messages.js";
import { statusOf } from "./profiles.js";

const USUAL_PAGE = 100;
const LONGEST_PAGE = 500;

function pageSizeOf({ pageSize }: { readonly pageSize: number }): number {
  if (pageSize === 0) return USUAL_PAGE;
  if (pageSize >= 1 && pageSize <= LONGEST_PAGE) return pageSize;
  throw invalid("page_size", "out_of_range", `page_size must be 1 to ${LONGEST_PAGE}, got ${pageSize}`);
}

/** `null` for the first page. Any other text would be read as a place in the list, and give an empty or incomplete one. */
function placeOf({ pageToken }: { readonly pageToken: string }): Id | null {
  if (pageToken === "" || isUuid(pageToken)) return pageToken || null;
  const got = JSON.stringify(pageToken.slice(0, 40));
  throw invalid("page_token", "malformed", `page_token must be a next_page_token of this list, got ${got}`);
}

/** `found` has one entry more than a page if there is a next page. */
function pageOf<T extends { readonly id: Id }>(found: readonly T[], size: number) {
  const page = found.slice(0, size);
  return { page, nextPageToken: found.length > size ? page.at(-1)!.id : "" };
}

/** `null`: both. */
const KINDS: Readonly<Record<OwnerType, OwnerKind | null>> = {
  [OwnerType.UNSPECIFIED]: null,
  [OwnerType.PERSON]: "person",
  [OwnerType.FRAUDSTER]: "fraudster",
};

export const listGroups: GroupImplementation<"listGroups"> = async (deps, kind, request) => {
  const size = pageSizeOf(request);
  const after = placeOf(request);
  const scopeId = await checkOptionalContext(deps, request.context);
  const { page, nextPageToken } = pageOf(await deps.store.groups.sizes(scopeId, kind, after, size + 1), size);
  return {
    groups: page.map(({ id, tag, profiles, owners }) => ({
      gkGroupId: uniqueId(id),
      tag,
      numberOfProfiles: profiles,
      numberOfOwners: owners,
    })),
    nextPageToken,
  };
};

export const listVoiceprintProfiles: Implementation<"listVoiceprintProfiles"> = async (deps, request) => {
  const size = pageSizeOf(request);
  const after = placeOf(request);
  if (OwnerType[request.ownerType] === undefined)
    throw invalid("owner_type", "unknown", `owner_type must be PERSON (1) or FRAUDSTER (2), got ${request.ownerType}`);
  const scopeId = await checkOptionalContext(deps, request.context);
  const kind = KINDS[request.ownerType];
  const found =
    request.ownerId === ""
      ? await deps.store.profiles.list(scopeId, after, size + 1, kind)
      : (await profilesOfOwner(deps.store, scopeId, request.ownerId, kind)).filter(
          ({ id }) => after === null || id > after,
        );
  const { page, nextPageToken } = pageOf(found, size);
  return {
    profiles: page.map((profile) => ({
      gkVoiceprintProfileId: uniqueId(profile.id),
      gkOwnerId: uniqueId(profile.owner.id),
      ownerType: ownerType(profile.owner.kind),
      ownerId: profile.owner.externalId,
      profileTag: profile.tag,
      status: "damage" in profile ? VoiceprintProfileStatus.UNSPECIFIED : statusOf(deps, profile),
      printVersion: profile.printVersion,
      consent: consentMessage(profile.consent),
    })),
    nextPageToken,
  };
};

/** A person and a fraudster may have the same name. Sorted by id. */
export async function profilesOfOwner(
  { owners, profiles }: Pick<Store, "owners" | "profiles">,
  scopeId: Id,
  name: string,
  kind: OwnerKind | null = null,
): Promise<ListedProfile[]> {
  const kinds: readonly OwnerKind[] = kind ? [kind] : ["person", "fraudster"];
  const found = await Promise.all(kinds.map((one) => owners.find(scopeId, one, name)));
  const ids = found.flatMap((owner) => owner?.id ?? []);
  return (await profiles.ofOwners(scopeId, ids)).sort((a, b) => (a.id < b.id ? -1 : 1));
}
