import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CreateVoiceprintProfileRequest,
  CreateVoiceprintProfileResponseSchema,
  DeleteVoiceprintProfileRequest,
  DeleteVoiceprintProfileResponseSchema,
  GetGkVoiceprintProfileIdRequest,
  GetGkVoiceprintProfileIdResponseSchema,
} from "../contract/gen/vendor/biosec/v1/profiles_pb.js";
import { VoiceprintProfileStatus } from "../contract/gen/vendor/biosec/v1/voiceprints_pb.js";
import { StatusCode } from "../contract/gen/vendor/rpc/status_pb.js";
import { fieldViolation } from "../contract/mandatory.js";
import { StatusError } from "../contract/status-error.js";
import { checkOptionalContext } from "./context.js";
import type { Dependencies } from "./dependencies.js";
import { notFound } from "./failures.js";
import { uniqueId } from "./messages.js";
import { ownerOf } from "./profiles.js";

export async function createVoiceprintProfile(
  deps: Dependencies,
  request: CreateVoiceprintProfileRequest,
): Promise<MessageInitShape<typeof CreateVoiceprintProfileResponseSchema>> {
  const { kind, externalId, tag } = ownerOf(request.owner, request.profileTag);
  const scopeId = await checkOptionalContext(deps, request.context);
  const profile = await deps.store.profiles.create({
    id: deps.ids.next(),
    scopeId,
    owner: { id: deps.ids.next(), scopeId, kind, externalId },
    tag,
    printType: null,
    printVersion: 0,
    template: null,
    status: VoiceprintProfileStatus.NOT_TRAINED,
    createdAt: deps.clock.now(),
  });
  if (profile) return { gkVoiceprintProfileId: uniqueId(profile.id), gkOwnerId: uniqueId(profile.owner.id) };
  const message = `this ${kind} already has a profile with this tag`;
  throw new StatusError({
    statusCode: StatusCode.ALREADY_EXISTS,
    message,
    fieldViolations: [fieldViolation("profile_tag", "exists", message)],
  });
}

/** Answers without an id when the owner has no such profile. */
export async function getGkVoiceprintProfileId(
  deps: Dependencies,
  request: GetGkVoiceprintProfileIdRequest,
): Promise<MessageInitShape<typeof GetGkVoiceprintProfileIdResponseSchema>> {
  const { kind, externalId, tag } = ownerOf(request.owner, request.profileTag);
  const scopeId = await checkOptionalContext(deps, request.context);
  const profile = await deps.store.profiles.find(scopeId, kind, externalId, tag);
  return profile ? { gkVoiceprintProfileId: uniqueId(profile.id), gkOwnerId: uniqueId(profile.owner.id) } : {};
}

/** Erases segments, audio models and template, in the store and in loaded galleries. */
export async function deleteVoiceprintProfile(
  deps: Dependencies,
  request: DeleteVoiceprintProfileRequest,
): Promise<MessageInitShape<typeof DeleteVoiceprintProfileResponseSchema>> {
  const scopeId = await checkOptionalContext(deps, request.context);
  const id = request.gkVoiceprintProfileId!.value;
  if (!(await deps.store.profiles.erase(scopeId, id)))
    throw notFound("gk_voiceprint_profile_id", "there is no such profile in this scope");
  deps.galleries.drop(scopeId, id);
  deps.prints.drop(scopeId, id);
  return {};
}
