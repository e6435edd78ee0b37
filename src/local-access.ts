/** What the easy door needs beyond the contract, from the processor and the store of this process. */
import type { VoiceprintsProcessor } from "./processor/voiceprints-processor.js";
import type { Profile, Store } from "./store/port.js";
import type { LocalAccess, NamedProfile } from "./voiceprints.js";

const PAGE = 512;

export function localAccess(processor: VoiceprintsProcessor, store: Store, scope: string): LocalAccess {
  return {
    async profiles(kind) {
      const found: Profile[] = [];
      for (let after: string | null = null; ; ) {
        const page: Profile[] = await store.profiles.list(scope, after, PAGE);
        found.push(...page.filter((profile) => profile.owner.kind === kind));
        if (page.length < PAGE) return found.map(named);
        after = page.at(-1)!.id;
      }
    },
    async profilesOf(kind, name) {
      const owner = await store.owners.find(scope, kind, name);
      return owner ? (await store.profiles.ofOwners(scope, [owner.id])).map(named) : [];
    },
    listen: (request, options) => processor.openLiveAnalysis(request, options),
    listenToEnroll: (request, options) => processor.openLiveEnrollment(request, options),
    exportProfile: (profileId) => processor.exportProfile(scope, profileId),
    close: () => processor.close(),
  };
}

const named = ({ id, owner, tag }: Profile): NamedProfile => ({ id, name: owner.externalId, tag });
