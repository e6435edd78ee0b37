/** Profiles for the operator: search, list and details. Never a template. */
import { VoiceprintProfileStatus } from "../../contract/index.js";
import { profilesOfOwner } from "../../processor/listing.js";
import { type Id, type ListedProfile, mayBeUsed, type Store } from "../../store/port.js";
import { holds, page, searched } from "./page.js";
import type { OWNER_KINDS, PROFILE_STATES } from "./search.js";
import type { Page, ProcessedSession, ProfileDetail, ProfileView } from "./view.js";

export interface ProfileSearch {
  /** The id of the profile or of its owner, or a part of either; empty for all. */
  readonly text: string;
  readonly state: (typeof PROFILE_STATES)[number] | null;
  readonly kind: (typeof OWNER_KINDS)[number] | null;
}

/** The most that are read for one page: reading unseals their templates. */
const MOST_LOOKED_AT = 2_000;

export class Profiles {
  constructor(
    readonly store: Pick<Store, "profiles" | "owners" | "groups">,
    /** Whether prints of a model with this revision are scored here. */
    readonly canBeScored: (revision: string) => boolean,
  ) {}

  async find(scope: Id, search: ProfileSearch, after: Id | null, limit: number): Promise<Page<ProfileView>> {
    const { text, state, kind } = search;
    const { profiles } = this.store;
    const view = (profile: ListedProfile) => this.#view(profile);
    if (text === "" && !state) return page(await profiles.list(scope, after, limit + 1, kind), limit, view);
    const wanted = (shown: ProfileView) =>
      (state === null || shown.state === state) && (kind === null || shown.kind === kind);
    const exact = text === "" ? [] : await this.#exactly(scope, text);
    if (exact.length > 0) {
      const found = exact.map(view).filter((shown) => wanted(shown) && (after === null || shown.id > after));
      return page(found, limit, (shown) => shown);
    }
    return searched(
      (from, most) => profiles.list(scope, from, most, kind),
      after,
      limit,
      MOST_LOOKED_AT,
      (profile) => {
        const shown = view(profile);
        return wanted(shown) && holds(text, shown.ownerId, shown.tag, shown.id) ? shown : null;
      },
    );
  }

  async detail(scope: Id, id: Id): Promise<ProfileDetail | null> {
    const { profiles, groups } = this.store;
    const [listed] = await profiles.getMany(scope, [id]);
    const profile = listed ?? (await profiles.get(scope, id));
    if (!profile) return null;
    const { owner, consent } = profile;
    const template = templateOf(profile);
    const segments = "damage" in profile ? [] : await profiles.segments(scope, id);
    const lists = await groups.holding(scope, id, owner.id);
    return {
      ...this.#view(profile),
      printType: profile.printType,
      model: template && { revision: template.revision, calibrationModelId: template.calibrationModelId ?? null },
      snrDb: template?.snrDb ?? null,
      bandwidthHz: template?.bandwidthHz ?? null,
      consent: consent ?? null,
      enrolled: segments.map(({ addedAt, processed }) => added(addedAt, processed.sessionId, processed.measures)),
      learned: (template?.grown?.sessions ?? []).map((one) => added(one.at, one.sessionId, one)),
      lists: lists.map(({ id: listId, kind, tag }) => ({ id: listId, kind, tag })),
    };
  }

  /** The profile with this id, or those of the person or fraudster with this name. */
  async #exactly(scope: Id, text: string): Promise<ListedProfile[]> {
    const byId = await this.store.profiles.getMany(scope, [text]);
    return byId.length > 0 ? byId : profilesOfOwner(this.store, scope, text);
  }

  #view(profile: ListedProfile): ProfileView {
    const template = templateOf(profile);
    const status = VoiceprintProfileStatus[profile.status] ?? String(profile.status);
    const obsolete = template !== null && !this.canBeScored(template.revision);
    return {
      id: profile.id,
      kind: profile.owner.kind,
      ownerId: profile.owner.externalId,
      tag: profile.tag,
      state: "damage" in profile ? "DAMAGED" : !mayBeUsed(profile) ? "WITHDRAWN" : obsolete ? "OBSOLETE" : status,
      printVersion: profile.printVersion,
      netSpeechSeconds: template?.netSpeechSeconds ?? null,
      createdAt: profile.createdAt,
    };
  }
}

const templateOf = (profile: ListedProfile) => ("damage" in profile ? null : profile.template);

/** What a session added to a print. */
const added = (
  at: number,
  sessionId: Id,
  { netSpeechSeconds, snrDb }: Pick<ProcessedSession, "netSpeechSeconds" | "snrDb">,
): ProcessedSession => ({ at, sessionId, netSpeechSeconds, snrDb });
