/** Everything that is kept of one profile, for its owner: plain values that JSON can carry. */
import type { Template, VoiceWindow } from "../engine/port.js";
import type { Id, ProcessedAudio } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";

export interface ExportedProfile {
  readonly profileId: Id;
  readonly owner: { readonly kind: string; readonly externalId: string };
  readonly tag: string;
  readonly printType: string | null;
  readonly printVersion: number;
  readonly createdAt: string;
  readonly template: ExportedTemplate | null;
  readonly segments: readonly ExportedSegment[];
}

interface ExportedSegment extends Omit<ProcessedAudio, "id" | "scopeId" | "createdAt" | "voice"> {
  readonly processedAudioId: Id;
  readonly createdAt: string;
  readonly addedAt: string;
  readonly embedding: number[] | null;
  readonly windows: readonly Exported<VoiceWindow>[];
}

type Grown = NonNullable<Template["grown"]>;

interface ExportedTemplate extends Exported<Omit<Template, "grown">> {
  readonly grown?: {
    readonly enrolled: Exported<Grown["enrolled"]>;
    readonly sessions: readonly Exported<Grown["sessions"][number]>[];
  };
}

/** An embedding as JSON can carry it, and what it came with. */
type Exported<T extends { readonly embedding: Float32Array }> = Omit<T, "embedding"> & { readonly embedding: number[] };

const exported = <T extends { readonly embedding: Float32Array }>(one: T): Exported<T> => ({
  ...one,
  embedding: Array.from(one.embedding),
});

const exportedTemplate = ({ grown, ...template }: Template): ExportedTemplate => ({
  ...exported(template),
  ...(grown && { grown: { enrolled: exported(grown.enrolled), sessions: grown.sessions.map(exported) } }),
});

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
    template: template && exportedTemplate(template),
    segments: segments.map(({ processed: { id, scopeId: _, createdAt, voice, ...kept }, addedAt }) => ({
      processedAudioId: id,
      ...kept,
      createdAt: new Date(createdAt).toISOString(),
      addedAt: new Date(addedAt).toISOString(),
      embedding: voice.embedding && Array.from(voice.embedding),
      windows: voice.windows.map(exported),
    })),
  };
}
