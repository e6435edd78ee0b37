/** The prints to compare audio with, given one by one or as a group or watchlist. */
import {
  DecisionReason,
  type DetectKnownFraudstersRequest,
  EnrollStatus,
  type IdentifyRequest,
  type ListOfUniqueId,
  type UniqueIdAndTag,
} from "../contract/index.js";
import type { Score, Template } from "../engine/port.js";
import {
  type Group,
  type GroupKind,
  type Id,
  type ListedProfile,
  mayBeUsed,
  type OwnerKind,
  type Print,
  printOf,
} from "../store/port.js";
import type { ConfigurationSet } from "../voiceprint/configuration-set.js";
import { enrollStatus } from "../voiceprint/enrollment.js";
import { audioModel, voiceOf } from "./audio-model.js";
import type { CallScope } from "./context.js";
import { engineOptions } from "./dependencies.js";
import { invalid, notFound, notInScope } from "./failures.js";
import type { GalleryMember, GroupPrints, LeftOut, LoadedGallery } from "./galleries.js";
import { analysisBy, type JointAnalysis } from "./joint-analysis.js";

export interface ScoredPrint {
  readonly print: Print;
  readonly score: Score;
}

export interface Candidates {
  readonly kind: OwnerKind;
  /** Number of prints that can be scored: trained, by a model that is installed here. */
  readonly count: number;
  /** Prints that are not compared. */
  readonly leftOut: readonly LeftOut[];
  /** Revisions of the models that made the prints. Each of these models must process the audio. */
  readonly revisions: ReadonlySet<string>;
  /** Best first. If there are many candidates, only the best are scored exactly. */
  score(analyzed: JointAnalysis): Promise<ScoredPrint[]>;
  /** Why nothing can be scored; call it when `count` is 0. Throws if a print cannot be opened. */
  whyNone(set: ConfigurationSet): Promise<DecisionReason>;
}

/** Up to this many prints are all scored exactly; beyond it, only the gallery's best `exactlyScored`. */
const mostScoredDirectly = 256;
const exactlyScored = 64;
/** A call reads them all. */
const mostGroupsWithTag = 256;

/** How many prints the audio was compared with. The gallery compares all of them, although only its best are listed. */
export const numberScored = ({ count }: Candidates, scored: readonly ScoredPrint[]): number =>
  scored.length > 0 && count > mostScoredDirectly ? count : scored.length;

const mostNamed = 10;

/** A status that names the prints that were left out, and says why and what to do. */
export const leftOutStatus = (leftOut: readonly LeftOut[]): { status?: { message: string } } =>
  leftOut.length === 0 ? {} : { status: { message: leftOutMessage(leftOut) } };

/** Empty if all were compared. */
export function leftOutMessage(leftOut: readonly LeftOut[]): string {
  const [damaged, obsolete] = [leftOut.filter(({ damage }) => damage), leftOut.filter(({ damage }) => !damage)];
  return [
    ...notCompared("prints that cannot be opened", damaged, "restore or delete them"),
    ...notCompared("prints of a model that is not installed here", obsolete, "install the model or enroll them again"),
  ].join("; ");
}

function notCompared(which: string, prints: readonly LeftOut[], advice: string): string[] {
  if (prints.length === 0) return [];
  const named = prints.slice(0, mostNamed).map(({ id }) => id);
  return [`${which} were not compared (${prints.length}); ${advice}: ${named.join(", ")}`];
}

/** The prints that a request names: one by one, or as a group or watchlist. */
export const candidatesByTarget = async (
  scope: CallScope,
  kind: OwnerKind,
  target: IdentifyRequest["target"] | DetectKnownFraudstersRequest["target"],
): Promise<Candidates> =>
  target.case === "group" || target.case === "watchlist"
    ? candidatesByGroup(scope, kind, target.value, target.case)
    : candidatesOf(scope, kind, await someProfilesOf(scope, target.value!, kind, profilesToCompare));

/** At least one profile, and all of this kind. */
export async function someProfilesOf<T extends Pick<NamedProfile, "kind">>(
  scope: CallScope,
  list: ListOfUniqueId,
  kind: OwnerKind,
  find: (scope: CallScope, list: ListOfUniqueId, field: string) => Promise<T[]>,
): Promise<T[]> {
  const field = "gk_voiceprint_profile_ids";
  if (list.uniqueIds.length === 0) throw invalid(field, "empty", "at least one profile is required");
  const profiles = await find(scope, list, field);
  for (const [i, profile] of profiles.entries()) assertKind(profile, kind, `${field}.unique_ids[${i}]`);
  return profiles;
}

/** The one profile that a field names. */
export async function findOneProfile({ deps, scopeId }: CallScope, id: Id, field: string): Promise<FoundProfile> {
  const [print] = await deps.prints.get(scopeId, [id]);
  if (print) return foundPrint(print);
  const profile = await deps.store.profiles.get(scopeId, id);
  if (!profile) throw notInScope(field, "profile", id);
  return asFound(profile);
}

export function assertKind(profile: Pick<NamedProfile, "kind">, kind: OwnerKind, field: string): void {
  if (profile.kind !== kind)
    throw invalid(field, "wrong_kind", `expected the profile of a ${kind}, got the profile of a ${profile.kind}`);
}

/** A profile that a request names. */
export interface NamedProfile extends Pick<Print, "profileId" | "kind"> {
  /** Revision of the model that made its print; `null` if it cannot be compared. */
  readonly revision: string | null;
  /** Of a profile that cannot be compared. */
  readonly listed?: ListedProfile;
}

/** As it is stored, with the template if it can be compared. */
export interface FoundProfile extends NamedProfile, Omit<Print, "template"> {
  readonly template: Template | null;
}

/** Without repeated profiles. */
export const eachOnce = <T extends NamedProfile>(profiles: readonly T[]): T[] => [
  ...new Map(profiles.map((found) => [found.profileId, found])).values(),
];

/** Returns one entry for each given id, in order; repeated ids give repeated entries. Throws if an id is not in the scope. */
export async function findProfiles(scope: CallScope, list: ListOfUniqueId, field: string): Promise<FoundProfile[]> {
  const found = await profilesAmong(scope, idsIn(list));
  return inOrder(list, field, found);
}

/** As `findProfiles`. Of a long list, only profiles that no gallery has are read from the store. */
export async function profilesToCompare(
  scope: CallScope,
  list: ListOfUniqueId,
  field: string,
): Promise<NamedProfile[]> {
  const ids = idsIn(list);
  if (ids.length <= mostScoredDirectly) return findProfiles(scope, list, field);
  const known: NamedProfile[] = [];
  for (const kind of ["person", "fraudster"] as const)
    await scope.deps.galleries.search(scope.scopeId, kind, ({ members }) => {
      for (const profileId of ids) {
        const member = members.get(profileId);
        if (member) known.push({ profileId, kind, revision: member.revision });
      }
    });
  const inGallery = new Set(known.map(({ profileId }) => profileId));
  const others = ids.filter((id) => !inGallery.has(id));
  return inOrder(list, field, [...known, ...(others.length > 0 ? await profilesAmong(scope, others) : [])]);
}

const idsIn = (list: ListOfUniqueId): Id[] => list.uniqueIds.map(({ value }) => value);

function inOrder<T extends NamedProfile>(list: ListOfUniqueId, field: string, found: readonly T[]): T[] {
  const byId = new Map(found.map((one) => [one.profileId, one]));
  return idsIn(list).map((id, i) => {
    const one = byId.get(id);
    if (!one) throw notInScope(`${field}.unique_ids[${i}]`, "profile", id);
    return one;
  });
}

/** Those of these ids that exist, in any order. Reading thousands of prints takes a while, so it stops when the caller cancels. */
async function profilesAmong(
  { deps, options: { signal }, scopeId }: CallScope,
  ids: readonly Id[],
): Promise<FoundProfile[]> {
  const prints = await deps.prints.get(scopeId, ids);
  signal?.throwIfAborted();
  const trained = new Set(prints.map((print) => print.profileId));
  const untrained = ids.filter((id) => !trained.has(id));
  const others = untrained.length > 0 ? await deps.store.profiles.getMany(scopeId, untrained) : [];
  signal?.throwIfAborted();
  return [...prints.map(foundPrint), ...others.map(asFound)];
}

export function candidatesOf(scope: CallScope, kind: OwnerKind, profiles: readonly NamedProfile[]): Candidates {
  const unique = eachOnce(profiles);
  const ids = new Set<Id>();
  const revisions = new Set<string>();
  for (const { profileId, revision } of unique) {
    if (revision === null || !scope.deps.models.has(revision)) continue;
    ids.add(profileId);
    revisions.add(revision);
  }
  const whyNone = (set: ConfigurationSet) => reasonForNone(scope, unique, set);
  return candidatesIn(scope, kind, ids, leftOutAmong(scope, unique), revisions, whyNone);
}

const leftOutAmong = ({ deps: { models } }: CallScope, profiles: readonly NamedProfile[]): LeftOut[] =>
  profiles.flatMap(({ profileId: id, listed, revision }): LeftOut[] => {
    if (revision !== null) return models.has(revision) ? [] : [{ id, damage: null }];
    return listed && "damage" in listed && mayBeUsed(listed) ? [listed] : [];
  });

/** The members of a group or watchlist, plus the profiles in `also`. */
export async function candidatesByGroup(
  scope: CallScope,
  kind: OwnerKind,
  target: UniqueIdAndTag,
  field: string,
  also: readonly NamedProfile[] = [],
): Promise<Candidates> {
  const { groups, tag } = await findGroups(scope, kind === "person" ? "group" : "watchlist", target, field);
  if (groups.reduce((sum, group) => sum + group.profileIds.length + group.ownerIds.length, 0) <= mostScoredDirectly)
    return candidatesOf(scope, kind, [...(await membersOf(scope, groups, tag)), ...also]);
  const given = also.map(({ profileId }) => profileId);
  const { valid, leftOut, revisions } = await scope.deps.galleries.search(scope.scopeId, kind, (loaded) => {
    const key = [tag, ...groups.map((group) => group.id)].join();
    const of = groups.flatMap((group) => [group.profileIds, group.ownerIds]);
    const { scored, leftOut } = loaded.remembered(key, of, () => printsIn(loaded, groups, tag));
    const more = given.filter((id) => loaded.members.has(id) && !scored.has(id));
    const found = more.length === 0 ? scored : new Set([...scored, ...more]);
    const leftOutOnce = new Map([...leftOutAmong(scope, also), ...leftOut].map((one) => [one.id, one]));
    return { valid: found, leftOut: [...leftOutOnce.values()], revisions: revisionsOf(loaded, found) };
  });
  return candidatesIn(scope, kind, valid, leftOut, revisions, async () => DecisionReason.NO_SCORES);
}

/** The prints of these groups with the tag, if one is given. */
function printsIn({ members, leftOut }: LoadedGallery, groups: readonly Group[], tag: string): GroupPrints {
  const named = new Set(groups.flatMap((group) => group.profileIds));
  const owners = new Set(groups.flatMap((group) => group.ownerIds));
  const idsIn = (prints: ReadonlyMap<Id, Pick<GalleryMember, "ownerId" | "tag">>): Id[] => {
    const isMember = (id: Id) => {
      const print = prints.get(id);
      return print && (tag === "" || print.tag === tag) && (named.has(id) || owners.has(print.ownerId));
    };
    return [...(owners.size === 0 && named.size < prints.size ? named : prints.keys())].filter(isMember);
  };
  return { scored: new Set(idsIn(members)), leftOut: idsIn(leftOut).map((id) => leftOut.get(id)!) };
}

/** When all prints of the scope are of one model, there is no need to look at each member. */
function revisionsOf({ galleries, members }: LoadedGallery, ids: ReadonlySet<Id>): ReadonlySet<string> {
  if (galleries.size <= 1) return new Set(galleries.keys());
  return new Set([...ids].map((id) => members.get(id)!.revision));
}

/** The group with the given id, its prints filtered by the tag; or, without an id, every group with that tag. */
export async function findGroups(
  { deps, scopeId }: CallScope,
  kind: GroupKind,
  target: UniqueIdAndTag,
  field: string,
): Promise<{ groups: Group[]; tag: string }> {
  const id = target.uniqueId?.value;
  if (id) {
    const group = await deps.groups.get(scopeId, kind, id);
    if (!group) throw notInScope(`${field}.unique_id`, kind, id);
    return { groups: [group], tag: target.tag };
  }
  if (target.tag === "") throw invalid(`${field}.unique_id`, "missing", `the id or the tag of a ${kind} is required`);
  const ids = await deps.store.groups.withTag(scopeId, kind, target.tag, mostGroupsWithTag + 1);
  if (ids.length > mostGroupsWithTag)
    throw invalid(
      `${field}.tag`,
      "too_many",
      `more than ${mostGroupsWithTag} of this scope's ${kind}s have the tag "${target.tag}"; select one by its id`,
    );
  const groups: Group[] = [];
  for (const id of ids) {
    const group = await deps.groups.get(scopeId, kind, id);
    if (group) groups.push(group);
  }
  if (groups.length === 0)
    throw notFound(`${field}.tag`, `there is no ${kind} with the tag "${target.tag}" in this scope`);
  return { groups, tag: "" };
}

/** Every profile of these groups with the tag, if one is given, trained or not. Members that have been erased are left out. */
export async function membersOf(scope: CallScope, groups: readonly Group[], tag: string): Promise<FoundProfile[]> {
  const { deps, scopeId } = scope;
  const owners = groups.flatMap((group) => group.ownerIds);
  const found = await profilesAmong(scope, [...new Set(groups.flatMap((group) => group.profileIds))]);
  const owned = owners.length > 0 ? await deps.store.profiles.ofOwners(scopeId, owners) : [];
  return [...found, ...owned.map(asFound)].filter((one) => tag === "" || one.tag === tag);
}

function asFound(listed: ListedProfile): FoundProfile {
  const template = "template" in listed && mayBeUsed(listed) ? listed.template : null;
  return template ? foundPrint(printOf(listed, template)) : { ...printOf(listed, null), revision: null, listed };
}

const foundPrint = (print: Print): FoundProfile => ({ ...print, revision: print.template.revision });

function candidatesIn(
  scope: CallScope,
  kind: OwnerKind,
  valid: ReadonlySet<Id>,
  leftOut: readonly LeftOut[],
  revisions: ReadonlySet<string>,
  whyNone: Candidates["whyNone"],
): Candidates {
  const { deps, scopeId } = scope;
  /** The gallery's best of these prints. */
  const likeliest = async (analyzed: JointAnalysis): Promise<Id[]> => {
    const hits = await deps.galleries.search(scopeId, kind, ({ galleries, members }) =>
      [...galleries].flatMap(([revision, gallery]) => {
        const embedding = analysisBy(analyzed, revision)?.embedding;
        return embedding ? gallery.top(embedding, exactlyScored, members.size === valid.size ? undefined : valid) : [];
      }),
    );
    return hits.map((hit) => hit.id).filter((id) => valid.has(id));
  };
  return {
    kind,
    count: valid.size,
    leftOut,
    revisions,
    async score(analyzed) {
      const ids = valid.size > mostScoredDirectly ? await likeliest(analyzed) : [...valid];
      return scoreExactly(scope, ids, analyzed);
    },
    async whyNone(set) {
      const damaged = leftOut.find(({ damage }) => damage);
      if (damaged) throw damaged.damage;
      return whyNone(set);
    },
  };
}

/**
 * Scores the prints as they are in the store now. A call may have lasted minutes since they were looked up, and a print
 * that was erased since then must not be scored.
 */
async function scoreExactly(
  { deps, options, scopeId }: CallScope,
  ids: readonly Id[],
  analyzed: JointAnalysis,
): Promise<ScoredPrint[]> {
  const byRevision = new Map<string, Print[]>();
  for (const print of await deps.prints.get(scopeId, ids)) {
    const { revision } = print.template;
    const alike = byRevision.get(revision);
    if (alike) alike.push(print);
    else if (deps.models.has(revision)) byRevision.set(revision, [print]);
  }
  const scored: ScoredPrint[] = [];
  for (const [revision, prints] of byRevision) {
    // A print that moved to another model during the call has no analysis by that model.
    const analysis = analysisBy(analyzed, revision);
    if (!analysis?.embedding) continue;
    const engine = await deps.models.open(revision);
    const templates = prints.map((print) => print.template);
    const scores = await engine.score(templates, voiceOf(analysis, analysis.embedding), engineOptions(options));
    scored.push(...prints.map((print, i) => ({ print, score: scores[i]! })));
  }
  if (scored.some(({ score }) => !score || Number.isNaN(score.llr) || Number.isNaN(score.reliability)))
    throw new Error("the engine gave no score for a print");
  // Equal scores are ordered by id, so that the answer does not depend on the order in which prints were read.
  return scored.sort(
    (one, other) => other.score.llr - one.score.llr || (one.print.profileId < other.print.profileId ? -1 : 1),
  );
}

/** NOT_ENOUGH_SEGMENTS if that is why every profile cannot be scored; otherwise NO_SCORES. */
async function reasonForNone(
  { deps, scopeId }: CallScope,
  profiles: readonly NamedProfile[],
  set: ConfigurationSet,
): Promise<DecisionReason> {
  if (profiles.length === 0 || profiles.length > mostScoredDirectly) return DecisionReason.NO_SCORES;
  for (const found of profiles) {
    // More segments would not help a print that is obsolete or whose consent is withdrawn.
    if (!found.listed || !mayBeUsed(found.listed)) return DecisionReason.NO_SCORES;
    const segments = (await deps.store.profiles.segments(scopeId, found.profileId)).map(({ processed }) =>
      audioModel(processed),
    );
    const status = enrollStatus(segments, deps.models.of(scopeId).model.revision, set);
    if (segments.length === 0 || status !== EnrollStatus.TRAIN_NOT_POSSIBLE) return DecisionReason.NO_SCORES;
  }
  return DecisionReason.NOT_ENOUGH_SEGMENTS;
}
