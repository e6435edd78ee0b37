/** Everything that is kept of one profile, for its owner: plain values that JSON can carry. */
import type { Measures } from "../engine/port.js";
import type { Id } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";

export interface ExportedProfile {
  readonly profileId: Id;
  readonly owner: { readonly kind: string; readonly externalId: string };
  readonly tag: string;
  readonly printType: string | null;
  readonly printVersion: number;
  readonly createdAt: string;
  readonly template: {
    readonly revision: string;
    readonly netSpeechSeconds: number;
    readonly embedding: number[];
  } | null;
  readonly segments: readonly {
    readonly mediaSegmentId: Id;
    readonly addedAt: string;
    readonly revision: string;
    readonly voiceClass: number | null;
    readonly measures: Measures;
    readonly embedding: number[] | null;
  }[];
}

export async function exportProfile(deps: Dependencies, scopeId: Id, profileId: Id): Promise<ExportedProfile | null> {
  const profile = await deps.store.profiles.get(scopeId, profileId);
  if (!profile) return null;
  const segments = await deps.store.profiles.segments(scopeId, profileId);
  const { template, owner } = profile;
  return {
    profileId,
    owner: { kind: owner.kind, externalId: owner.externalId },
    tag: profile.tag,
    printType: profile.printType,
    printVersion: profile.printVersion,
    createdAt: new Date(profile.createdAt).toISOString(),
    template: template && {
      revision: template.revision,
      netSpeechSeconds: template.netSpeechSeconds,
      embedding: Array.from(template.embedding),
    },
    segments: segments.map(({ processed, addedAt }) => ({
      mediaSegmentId: processed.mediaSegmentId,
      addedAt: new Date(addedAt).toISOString(),
      revision: processed.revision,
      voiceClass: processed.voiceClass,
      measures: processed.measures,
      embedding: processed.voice.embedding && Array.from(processed.voice.embedding),
    })),
  };
}
