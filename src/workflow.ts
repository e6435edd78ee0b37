/** Steps common to all workflows of the contract. They work on any `Operations`, in process or on a box. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AddMediaSegmentRequestSchema,
  type AuthenticationScore,
  type Context,
  type ContextSchema,
  type FraudDetectionScore,
  OwnerType,
  SessionType,
  StatusCode,
  StatusError,
  statusError,
  type UniqueId,
  type VoiceprintProfileSummary,
} from "./contract/index.js";
import { MOST_IDS } from "./contract/mandatory.js";
import type { OperationOptions, Operations } from "./contract/operations.js";

/** Where the calls of the easy door work. */
export interface Settings {
  readonly scope: string;
  readonly configset: string;
}

export type SessionContext = Extract<MessageInitShape<typeof ContextSchema>, { $typeName?: never }> &
  Pick<Context, "gkEngagementId" | "gkSessionId">;

/** Starts a session and its engagement. They contain no name, because sessions are kept after a person is erased. */
export async function startSession(
  operations: Operations,
  { scope, configset }: Settings,
  options?: OperationOptions,
): Promise<SessionContext> {
  const scopeOnly = { gkScopeId: { value: scope } };
  const request = { context: scopeOnly, sessionType: SessionType.OTHER };
  const { gkSessionId, gkEngagementId } = await operations.startSession(request, options);
  return { ...scopeOnly, gkSessionId: gkSessionId!, gkEngagementId: gkEngagementId!, configsetId: configset };
}

/** Ends the engagement and its session, and deletes the audio that was sent in it. */
export async function stopSession(
  operations: Operations,
  context: SessionContext,
  options?: OperationOptions,
): Promise<void> {
  await operations.stopEngagement({ context }, options);
}

/** A box that does not answer must not hold up the error that ended a call. */
const longestCleanUpMs = 5_000;

/** Stops the session of a call that failed, also if its signal ended it. */
export const abandonSession = (operations: Operations, context: SessionContext): Promise<void> =>
  stopSession(operations, context, { signal: AbortSignal.timeout(longestCleanUpMs) });

/** Runs `work` in a new session, which is always stopped afterwards. `options` limit all of it. */
export async function inSession<T>(
  operations: Operations,
  settings: Settings,
  work: (context: SessionContext) => Promise<T>,
  options: OperationOptions = {},
): Promise<T> {
  const context = await startSession(operations, settings, options);
  const stopped = async () => {
    const result = await work(context);
    await stopSession(operations, context, options);
    return result;
  };
  return orCleanUp(stopped(), () => abandonSession(operations, context));
}

/** Cleans up if the work fails. The error of the work is the one that is thrown, even if the cleaning up fails too. */
export async function orCleanUp<T>(work: Promise<T>, cleanUp: () => Promise<void>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    await cleanUp().catch(() => {});
    throw error;
  }
}

/** Whose print, and which of their prints (`tag`). */
export interface Owner {
  readonly kind: "person" | "fraudster";
  readonly name: string;
  readonly tag: string;
}

const owned = (scope: string, { kind, name, tag }: Owner) => ({
  context: { gkScopeId: { value: scope } },
  owner: { case: kind === "person" ? "personId" : "fraudsterId", value: name } as const,
  profileTag: tag,
});

type ProfileFinder = Pick<Operations, "getGkVoiceprintProfileId">;
type ProfileMaker = ProfileFinder & Pick<Operations, "createVoiceprintProfile">;

/** `null` when the owner has no such profile. */
export async function findProfile(
  operations: ProfileFinder,
  scope: string,
  owner: Owner,
  options?: OperationOptions,
): Promise<string | null> {
  const { gkVoiceprintProfileId } = await operations.getGkVoiceprintProfileId(owned(scope, owner), options);
  return gkVoiceprintProfileId?.value || null;
}

/** The owner's profile; throws if there is none. */
export async function existingProfile(
  operations: Operations,
  scope: string,
  owner: Owner,
  options?: OperationOptions,
): Promise<string> {
  const id = await findProfile(operations, scope, owner, options);
  if (id !== null) return id;
  const which = owner.tag === "" ? "" : ` with the tag "${owner.tag}"`;
  throw statusError(StatusCode.NOT_FOUND, `the ${owner.kind} "${owner.name}" has no voiceprint${which}`);
}

const MOST_TRIES = 10;

/** The owner's profile, created if there is none. */
export async function findOrCreateProfile(
  operations: ProfileMaker,
  scope: string,
  owner: Owner,
  options?: OperationOptions,
): Promise<string> {
  for (let tries = 1; ; tries++) {
    const found = await findProfile(operations, scope, owner, options);
    if (found !== null) return found;
    try {
      const { gkVoiceprintProfileId } = await operations.createVoiceprintProfile(owned(scope, owner), options);
      return gkVoiceprintProfileId!.value;
    } catch (error) {
      // Another caller created it at the same moment; it may be erased again when we look.
      const exists = error instanceof StatusError && error.code === StatusCode.ALREADY_EXISTS;
      if (!exists || tries === MOST_TRIES) throw error;
    }
  }
}

/** A profile and the name of its owner. */
export interface NamedProfile {
  readonly id: string;
  readonly name: string;
  readonly tag: string;
}

const longestPage = 500;

type ListedProfile = NamedProfile & Pick<VoiceprintProfileSummary, "status" | "printVersion">;

/** All profiles of a kind in the scope (all pages), or those of one owner. */
export async function profilesIn(...which: Parameters<typeof profilePages>): Promise<ListedProfile[]> {
  const found: ListedProfile[] = [];
  for await (const page of profilePages(...which)) found.push(...page);
  return found;
}

async function* profilePages(
  operations: Operations,
  scope: string,
  kind: Owner["kind"],
  name = "",
  options?: OperationOptions,
): AsyncGenerator<ListedProfile[]> {
  const context = { gkScopeId: { value: scope } };
  const ownerType = kind === "person" ? OwnerType.PERSON : OwnerType.FRAUDSTER;
  for (let pageToken = ""; ; ) {
    const request = { context, ownerType, ownerId: name, pageSize: longestPage, pageToken };
    const page = await operations.listVoiceprintProfiles(request, options);
    yield page.profiles.map(({ gkVoiceprintProfileId, ownerId, profileTag, status, printVersion }) => ({
      id: gkVoiceprintProfileId!.value,
      name: ownerId,
      tag: profileTag,
      status,
      printVersion,
    }));
    pageToken = page.nextPageToken;
    if (pageToken === "") return;
  }
}

/** Reading a page of the list takes about as long as finding this many names, or less. */
const namesPerPage = 100;

/**
 * The profiles of these owners, in order; throws if one has none. Many names are looked for in the list of all profiles first, but only so far that
 * a list that is much longer does not take more time than it saves.
 */
export async function profilesNamed(
  operations: Operations,
  scope: string,
  kind: Owner["kind"],
  names: readonly string[],
  tag: string,
  options?: OperationOptions,
): Promise<Pick<NamedProfile, "id" | "name">[]> {
  const listed = new Map<string, string>();
  let pagesLeft = Math.floor(names.length / namesPerPage);
  if (pagesLeft > 0)
    for await (const page of profilePages(operations, scope, kind, "", options)) {
      for (const one of page) if (one.tag === tag) listed.set(one.name, one.id);
      if (--pagesLeft === 0) break;
    }
  const found: Pick<NamedProfile, "id" | "name">[] = [];
  for (const name of names) {
    const id = listed.get(name) ?? (await existingProfile(operations, scope, { kind, name, tag }, options));
    found.push({ id, name });
  }
  return found;
}

/** All profiles of a kind, with this tag if there is one, to be compared in one call. */
export async function candidatesIn(
  operations: Operations,
  scope: string,
  kind: Owner["kind"],
  tag: string | undefined,
  options?: OperationOptions,
): Promise<NamedProfile[]> {
  const all = await profilesIn(operations, scope, kind, "", options);
  const found = all.filter((profile) => tag === undefined || profile.tag === tag);
  if (found.length <= MOST_IDS) return found;
  const list = kind === "person" ? "group (CreateGroup)" : "watchlist (CreateWatchlist)";
  throw statusError(
    StatusCode.INVALID_REQUEST,
    `${found.length} voiceprints are enrolled, and at most ${MOST_IDS} can be compared one by one; name some, or put them in a ${list}`,
  );
}

/** An uploaded recording, as requests refer to it. */
export interface Media {
  readonly case: "gkMediaSegmentId";
  readonly value: UniqueId;
}

export interface Recording
  extends Pick<
    Extract<MessageInitShape<typeof AddMediaSegmentRequestSchema>, { $typeName?: never }>,
    "encoding" | "rate" | "channels"
  > {
  readonly chunk: Uint8Array;
  /** The name of its source, for error messages. */
  readonly name?: string;
}

/** The fields of an upload that describe the recording itself. */
const RECORDING_FIELDS = new Set(["chunk", "encoding", "rate", "channels"]);

export async function upload(
  operations: Operations,
  context: SessionContext,
  { name, ...recording }: Recording,
  options?: OperationOptions,
): Promise<Media> {
  try {
    const { gkMediaSegmentId } = await operations.addMediaSegment({ context, ...recording }, options);
    return { case: "gkMediaSegmentId", value: gkMediaSegmentId! };
  } catch (error) {
    if (name === undefined || !(error instanceof StatusError)) throw error;
    const { fieldViolations } = error.status;
    if (fieldViolations.length === 0 || !fieldViolations.every(({ field }) => RECORDING_FIELDS.has(field))) throw error;
    const named = fieldViolations.map((violation) => ({ ...violation, message: `${name}: ${violation.message}` }));
    const message = `${name}: ${error.message}`;
    throw new StatusError({ ...error.status, message, fieldViolations: named }, { cause: error });
  }
}

/** For audio with several channels: 1 is the first, 0 mixes all. */
export const channelSelector = (channel: number | undefined) =>
  channel === undefined ? {} : { channelSelector: { channel } };

/** The comparison that the decision is based on; all fields are `null` when nothing was compared. */
export interface Comparison {
  /** Cosine, -1..1. */
  readonly score: number | null;
  /** The calibrated score: natural logarithm of how much more likely it is the same person than another. */
  readonly ratio: number | null;
  /** The lowest ratio that is a match, in this call and for audio of this quality. */
  readonly threshold: number | null;
  /** The target rate behind the threshold: the share of impostor calls that are accepted. */
  readonly falseAcceptRate: number | null;
}

export const comparisonOf = (score: AuthenticationScore | FraudDetectionScore | undefined): Comparison => ({
  score: score?.biometricScore ?? null,
  ratio: score?.ratio ?? null,
  threshold: score?.threshold ?? null,
  falseAcceptRate: score?.falseAcceptRate === undefined ? null : decimalOf(score.falseAcceptRate),
});

/** A rate that was set as 0.01 travels as a 32-bit float; six digits of it are exact, and 0.01 again. */
const decimalOf = (rate: number): number => Number(rate.toPrecision(6));
